"""Settings of a test run; they are made before purax is imported, and the workers of a parallel run inherit them.

Every jaxpr is checked against the specification in `purax.core.jaxpr_check`, both libraries run on the CPU unless
`TEST_PLATFORM` says otherwise (`tests.platforms`), and compiled programs go to a folder that is removed at the end, so
that a run neither reads nor fills the user's own cache. What a test finds does not depend on those that ran before it
in its process: generators of random numbers start anew, and programs are forgotten before there are too many.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.platforms import slice_of

os.environ.setdefault("PURAX_CHECK_JAXPRS", "1")
# What purax runs on. jax is the reference, on the CPU: for some of its programs XLA's compiler for GPUs crashes.
PLATFORM = os.environ.get("TEST_PLATFORM") or "cpu"
os.environ.setdefault("PURAX_PLATFORMS", PLATFORM if PLATFORM == "cpu" else f"{PLATFORM},cpu")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if PLATFORM != "cpu":
    os.environ.setdefault("PURAX_DEFAULT_MATMUL_PRECISION", "highest")
# Programs over several devices are tested on eight of the CPU's.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

_own_cache = None
if "PURAX_COMPILATION_CACHE_DIR" not in os.environ:
    _own_cache = os.environ["PURAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="purax-test-cache-")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so all processes that they start; tests
# that interrupt themselves would wait forever.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples on every run: a failure that hypothesis finds once must be found again by whoever looks into it.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Imports what is collected for its examples as programs do: pytest's own way passes by the guards of tracebacks.

    Ends a run for a platform that is not there: it would test the CPU in its place.
    """
    import purax

    if session.config.option.doctestmodules:
        for module in pkgutil.walk_packages(purax.__path__, "purax."):
            if not module.name.startswith("purax.compat") and not module.name.endswith(("_main__", "_worker")):
                importlib.import_module(module.name)
    if PLATFORM == "cpu":
        return

    try:
        wanted, default = purax.devices(PLATFORM)[0], purax.devices()[0]
    except RuntimeError as error:
        pytest.exit(f"no {PLATFORM} device to run the tests on: {error}", returncode=3)
    if default != wanted:
        names = f"{PLATFORM}, but the default device is {default}: PURAX_PLATFORMS={os.environ['PURAX_PLATFORMS']!r}"
        pytest.exit(f"the tests are to run on {names}", returncode=3)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Any:
    """The garbage collector, for which some tests ask, passes over what is collected and what earlier files left."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def for_platform(items: list[pytest.Item], root: Path) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests to run on another platform than the CPU, and those that are left out (`tests.platforms`)."""
    chosen: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        is_tried = slice_of(item.path.relative_to(root).as_posix()) is not None
        is_tried = is_tried and item.get_closest_marker("cpu_only") is None
        (chosen if is_tried else left).append(item)
    return chosen, left


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes a part of the cases of wide tests, unless all are asked for, and says which warnings are no errors."""
    if PLATFORM != "cpu":
        chosen, left = for_platform(items, config.rootpath)
        config.hook.pytest_deselected(items=left)
        items[:] = chosen
    if os.environ.get("ALL_CASES", "0") in ("", "0"):
        chosen, left = sampled(items)
        config.hook.pytest_deselected(items=left)
        items[:] = chosen
    for item in items:
        # Many tests count traces by a side effect; only those of purity care about the warning.
        if "purity" not in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("ignore::purax.errors.ImpureFunctionWarning"))


def sampled(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests to run, and those to leave out: one of n cases of a test that is marked `sampled(n)`.

    Which they are follows from their names: always the same, and not all with the same argument. The first always runs.
    """
    seen: set[tuple[str, str]] = set()
    chosen: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            name = (str(item.path), getattr(item, "originalname", item.name))
            if name in seen and zlib.crc32(item.name.encode()) % marker.args[0]:
                left.append(item)
                continue
            seen.add(name)
        chosen.append(item)
    return chosen, left


_states: dict[np.random.Generator, Any] = {}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The generators of a test's module are as the module made them."""
    module = getattr(item, "module", None)
    for value in list(vars(module).values()) if module is not None else ():
        if isinstance(value, np.random.Generator):
            if value in _states:
                value.bit_generator.state = _states[value]
            else:
                _states[value] = value.bit_generator.state


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    """What a thread has in effect, the test that changes it puts back: else a later one fails, far from the cause."""
    from purax.core.source import names
    from purax.core.trace import current

    before = {**vars(current), **vars(names)}
    yield
    after = {**vars(current), **vars(names)}
    for key in before.keys() | after.keys():
        was, now = (x.get(key, _default(current, names, key)) for x in (before, after))
        assert now is was or now == was, f"{key} was {was!r} before the test and is {now!r} after it"


@pytest.fixture(autouse=True)
def _flags_are_put_back():
    """A test that sets a flag for all does not decide what later ones find."""
    from purax.config import config

    before = dict(config.values)
    yield
    for name, value in before.items():
        if config.values[name] is not value:
            try:
                config.update(name, value)
            except RuntimeError:  # of a client that is running: the test asked for what it has
                config.values[name] = value


def _default(current: Any, names: Any, key: str) -> Any:
    return getattr(type(current), key, getattr(type(names), key, None))


# Linux gives a process 65,530 mappings of memory. A compiled program has ten and more, and all of them, after an hour
# of tests, fill gigabytes, in which everything is found more slowly.
MOST_MAPPINGS = 12_000


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Programs of one file are of little use to the next."""
    if nextitem is None or nextitem.path == item.path:
        return
    if _mappings() > MOST_MAPPINGS:
        gc.unfreeze()
        for name in ("purax", "jax"):
            if name in sys.modules:
                sys.modules[name].clear_caches()
    gc.collect()
    gc.freeze()


def _mappings() -> int:
    try:
        with open("/proc/self/maps", "rb") as file:
            return file.read().count(b"\n")
    except OSError:
        return 0  # not on Linux


def pytest_unconfigure(config: pytest.Config) -> None:
    if _own_cache is not None:
        shutil.rmtree(_own_cache, ignore_errors=True)
