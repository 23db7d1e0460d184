"""Native kernels without memory: each of their allocations fails once, which is an error, and the next call is right.

The library that is tried is the one that is shipped: `faulty_memory.cc` replaces the functions by which it asks for
memory while it is loaded.
"""

import ctypes
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import native
from tests.xla import native_calls
from tests.xla.conftest import ROOT

COMPILER = shutil.which("c++")
pytestmark = [
    pytest.mark.skipif(native.build() is None, reason="the native kernels were not built"),
    pytest.mark.skipif(COMPILER is None, reason="there is no compiler for what makes allocations fail"),
]
CALLS = native_calls.calls()
FEW = 12


def chosen(count):
    """Numbers below `count`: the first and the last ones and some between, or all of them."""
    if os.environ.get("ALL_CASES", "0") not in ("", "0") or count <= 3 * FEW:
        return range(count)
    between = np.random.default_rng(count).choice(range(FEW, count - FEW), FEW, replace=False)
    return [*range(FEW), *sorted(map(int, between)), *range(count - FEW, count)]


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """`fail_after(count)` lets an allocation of the kernels fail, `asked()` counts them."""
    path = tmp_path_factory.mktemp("faults") / "faulty_memory.so"
    source = ROOT / "tests/xla/faulty_memory.cc"
    subprocess.run([COMPILER, "-std=c++17", "-O1", "-shared", "-fPIC", source, "-o", path], check=True)
    library = ctypes.CDLL(str(path))
    library.fail_after.argtypes, library.fail_after.restype = [ctypes.c_long], None
    library.asked.restype = ctypes.c_long
    assert library.watch(str(native.FOLDER / "kernels.so").encode()) >= 2  # compilers put some in place of others
    yield library
    library.fail_after(-1)


def computed(function, arguments):
    return [np.asarray(y) for y in px.tree.leaves(function(*arguments))]


def computed_without(memory, count, function, arguments):
    """The results where an allocation fails, or None if that is an error."""
    memory.fail_after(count)
    try:
        return computed(function, arguments)
    except px.errors.OutOfMemoryError as error:
        assert "RESOURCE_EXHAUSTED" in str(error)
        return None
    finally:
        memory.fail_after(-1)


@pytest.mark.parametrize("name", CALLS)
def test_every_allocation_may_fail(name, memory):
    function, arguments = px.jit(CALLS[name][0]), [jnp.asarray(x) for x in CALLS[name][1]]
    for count in (0, 1, 1, 1):  # of memory that a thread keeps, only the first call asks for
        computed_without(memory, count, function, arguments)
    memory.fail_after(-1)
    expected = computed(function, arguments)
    for count in chosen(memory.asked()):
        for results in (computed_without(memory, count, function, arguments), computed(function, arguments)):
            for result, own in zip(results or expected, expected, strict=True):
                np.testing.assert_array_equal(result, own)


def test_arrays_of_numpy(memory):
    x = np.arange(5000.0)[::-1].reshape(50, 100).copy()
    for function in (native.sorted_array, native.stable_order):
        for axis in (0, 1):
            expected = function(x, axis)
            for count in range(20):
                memory.fail_after(count)
                try:
                    np.testing.assert_array_equal(function(x, axis), expected)
                except MemoryError:
                    assert memory.asked() > count
            memory.fail_after(-1)
    memory.fail_after(0)
    with pytest.raises(MemoryError, match="no memory"):
        jnp.sort(jnp.asarray(np.random.default_rng(0).random(3000))).block_until_ready()


def test_every_kernel_is_among_the_calls():
    called = {
        name: set(re.findall(r'@purax_(\w+)_[0-9a-f]+', px.jit(function).lower(*arguments).as_text()))
        for name, (function, arguments) in CALLS.items()
    }
    assert [name for name, kernels in called.items() if not kernels] == []
    assert set().union(*called.values()) == set(native.KERNELS)
