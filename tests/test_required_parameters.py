"""What must be given to a public function in jax must be given here, too, and nothing else."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import jax
import pytest

from tests.fuzz.function_options import STATISTICS
from tests.fuzz.function_rules_table import MODULES
from tests.test_public_surface import JAX_VERSION

# Parameters that are optional here, with the reason.
OPTIONAL = {
    "checkpoint.fun": "checkpoint(policy=...) is a decorator, as jit(static_argnums=...)",
    "remat.fun": "as checkpoint",
    "numpy.expand_dims.axis": "the array API standard says 0",
    "lax.cond.false_fun": "the other form of the arguments; the error says more",
    "transfer_guard.new_val": "as of the contexts of all flags, whose error lists the values",
}
REQUIRED = {
    "debug.log.fmt": "nothing is logged without it",
    "Shard.data": "shards are made by arrays",
    "smap.in_axes": "they are not inferred",
}
OTHERS = (
    "",
    "tree",
    "tree_util",
    "ops",
    "image",
    "debug",
    "custom_derivatives",
    "flatten_util",
    "ad_checkpoint",
)


def pairs() -> Iterator[tuple[str, dict, dict]]:
    """The parameters of each public function in both libraries."""
    for module in dict.fromkeys([*OTHERS, *MODULES, *(f"scipy.stats.{name}" for name in STATISTICS)]):
        ours, theirs = (importlib.import_module(f"{m}.{module}".rstrip(".")) for m in ("purax", "jax"))
        for name in sorted(set(dir(ours)) & set(dir(theirs))):
            if name.startswith("_"):
                continue
            try:
                own, other = (dict(inspect.signature(getattr(m, name)).parameters) for m in (ours, theirs))
            except (TypeError, ValueError):
                continue
            yield f"{module}.{name}".lstrip("."), own, other


def test_the_same_parameters_are_required():
    if jax.__version__ != JAX_VERSION:
        pytest.skip(f"compared with jax {JAX_VERSION}, this is {jax.__version__}")
    wrong, compared = [], 0
    for path, own, other in pairs():
        compared += 1
        for name in own.keys() & other.keys():
            kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            if own[name].kind in kinds or other[name].kind in kinds:
                continue
            needed, needed_there = (p.default is inspect.Parameter.empty for p in (own[name], other[name]))
            known = REQUIRED if needed else OPTIONAL
            if needed != needed_there and f"{path}.{name}" not in known:
                wrong.append(f"{path}({name}) is {'required' if needed else 'optional'}")
    assert compared > 1000
    assert not wrong, wrong
