"""The names and parameters of jax's public modules exist in the import mode, but for those listed in `surface_left`."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat import surface_left

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "surface.py"


def ask(*words: str) -> dict:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout[done.stdout.index('{"version"') :])


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    theirs = ask()
    if theirs["version"] != surface_left.VERSION:
        pytest.skip(f"compared with jax {surface_left.VERSION}, this is {theirs['version']}")
    file = tmp_path_factory.mktemp("surface") / "names.json"
    file.write_text(json.dumps(theirs))
    return theirs["names"], ask("purax", str(file))["names"]


def test_every_public_name_exists_or_is_listed_with_a_reason(surfaces):
    theirs, ours = surfaces
    missing = {f"{m}.{name}" for m, names in theirs.items() for name in names if name not in ours[m]}
    listed = {
        f"{module}.{name}"
        for modules in surface_left.NAMES.values()
        for module, names in modules.items()
        for name in names.split()
    }
    assert not missing - listed, f"missing without a reason: {sorted(missing - listed)}"
    # Modules that need what is not installed here have no names.
    known = {x for x in listed if x.rpartition(".")[2] in theirs.get(x.rpartition(".")[0], ())}
    assert not known - missing, f"these exist now; take them off the list: {sorted(known - missing)}"


def obstacles(theirs: list, ours: list) -> list[str]:
    """What a call that fits jax's parameters meets in ours: names, positions, and what must be given."""
    by_name = {name: (kind, needed) for name, kind, needed in ours}
    takes_positions, takes_names = (any(kind == k for _, kind, _ in ours) for k in (2, 4))
    positions = [p for p in ours if p[1] in (0, 1)]
    found = []
    for i, (name, kind, needed) in enumerate(theirs):
        if name.startswith("_") or kind in (2, 4):
            continue
        own = by_name.get(name)
        if kind != 0 and (own is None or own[0] == 0) and not takes_names:
            found.append(f"{name} cannot be given by name")
        if kind == 1 and i < len(positions) and positions[i][0] != name and not takes_positions:
            found.append(f"{name} is not number {i}")
        if kind in (0, 1) and i >= len(positions) and not takes_positions:
            found.append(f"{name} cannot be given by position")
        if not needed and own is not None and own[1]:
            found.append(f"{name} must be given")
    names = {name for name, _, _ in theirs}
    if not any(kind == 2 for _, kind, _ in theirs):
        found += [
            f"{n} is wanted" for n, kind, needed in ours if needed and kind not in (2, 4) and n not in names
        ]
    return found


def test_every_call_that_fits_jax_fits_here_or_is_listed_with_a_reason(surfaces):
    theirs, ours = surfaces
    found = {
        f"{module}.{name}": obstacles(parameters, ours[module][name])
        for module, names in theirs.items()
        for name, parameters in names.items()
        if parameters is not None and ours[module].get(name) is not None
    }
    differing = {name: what for name, what in found.items() if what}
    listed = {name for names in surface_left.PARAMETERS.values() for name in names.split()}
    assert not {n: w for n, w in differing.items() if n not in listed}
    assert not listed - set(differing), "these fit now; take them off the list"


def test_obstacles_are_found():
    """Planted differences: each is one that would break a call."""
    plain = [["x", 1, True], ["axis", 3, False]]
    assert not obstacles(plain, plain)
    assert not obstacles(plain, [*plain, ["more", 3, False]])
    assert obstacles(plain, [["operand", 1, True], ["axis", 3, False]])
    assert obstacles(plain, [["x", 0, True], ["axis", 3, False]])
    assert obstacles(plain, [["x", 1, True], ["axis", 3, True]])
    assert obstacles(plain, [["x", 1, True]])
    assert obstacles(plain, [*plain, ["more", 3, True]])
    assert obstacles([["x", 1, True], ["y", 1, True]], [["y", 1, True], ["x", 1, True]])
