"""Calls that find their program: what tells them apart, in Python and in C.

Where the versions in C are not installed they are compiled, if there is a compiler, and tried in another process.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core import primitive
from purax.errors import JaxRuntimeError
from purax.execution import dispatch

SOURCES = {
    "purax.execution._dispatch": Path(dispatch.__file__).with_name("_dispatch.c"),
    "purax.core._bind": Path(primitive.__file__).with_name("_bind.c"),
}
COMPILER = shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0])


def both(function, *calls):
    """Each call twice, so that the second one finds what the first made; the second results."""
    for args, kwargs in calls:
        function(*args, **kwargs)
    return [function(*args, **kwargs) for args, kwargs in calls]


def counted(function, **options):
    """`function` compiled, and a list that grows each time it is traced."""
    traced: list[int] = []

    @functools.wraps(function)
    def watched(*args, **kwargs):
        traced.append(1)
        return function(*args, **kwargs)

    return px.jit(watched, purity="off", **options), traced


def test_static_values_are_told_apart_by_type_and_value():
    f, traced = counted(lambda x, n: x + (10 if type(n) is bool else n), static_argnums=1)
    x = jnp.zeros(2)
    results = both(f, *[((x, n), {}) for n in (1, 1.0, True, 2)])
    assert [float(r[0]) for r in results] == [1, 1, 10, 2]
    assert len(traced) == 4


def test_static_values_by_name_and_from_the_end():
    f, _ = counted(lambda x, mode: x + 1 if mode == "up" else x - 1, static_argnames="mode")
    x = jnp.zeros(())
    calls = [((x,), {"mode": m}) for m in ("up", "down")] + [((x, m), {}) for m in ("up", "down")]
    assert [float(r) for r in both(f, *calls)] == [1, -1, 1, -1]
    g, _ = counted(lambda *args: args[0] * args[-1], static_argnums=-1)
    calls = [((x + 1, 3), {}), ((x + 2, x, 4), {}), (({"a": x + 1}["a"], [x], 5), {})]
    assert [float(r) for r in both(g, *calls)] == [3, 8, 5]


def test_names_are_sorted_and_matched():
    f, traced = counted(lambda x, y, z=0.0: x - 2 * y + z)
    x, y = jnp.asarray(5.0), jnp.asarray(1.0)
    calls = [
        ((), {"x": x, "y": y}),
        ((), {"y": y, "x": x}),
        ((x,), {"y": y}),
        ((x, y), {}),
        ((x,), {"z": y, "y": y}),
    ]
    assert [float(r) for r in both(f, *calls)] == [3, 3, 3, 3, 4]
    assert len(traced) == 4


def test_many_names():
    f, traced = counted(lambda **named: sum(named.values()))
    named = {f"x{i}": jnp.asarray(float(i)) for i in range(40)}
    assert float(both(f, ((), named))[0]) == sum(range(40))
    assert len(traced) == 1


def test_trees_with_static_arguments():
    f, traced = counted(lambda tree, n, scale: (tree["a"] * n + scale, {"b": tree["b"][0]}), static_argnums=1)
    tree = {"a": jnp.ones(2), "b": [jnp.zeros(1)]}
    (first, second), (third, _) = both(f, ((tree, 2, 0.5), {}), ((tree, 3), {"scale": np.float32(1)}))
    assert first.tolist() == [2.5, 2.5] and third.tolist() == [4, 4] and second["b"].tolist() == [0]
    assert len(traced) == 2


def test_numbers_and_numpy_arrays():
    f, traced = counted(lambda x: x * 2)
    values = [1.5, -0.0, 0.0, 3, True, np.arange(3.0), np.float32(2), np.ones(2, np.int8)]
    for x, y in zip(values, both(f, *[((x,), {}) for x in values]), strict=True):
        expected = jnp.asarray(x) * 2
        assert (y.dtype, y.weak_type) == (expected.dtype, expected.weak_type)
        assert np.array_equal(y, expected) and np.array_equal(np.signbit(y), np.signbit(expected))
    assert len(traced) == 6  # the three floats are one program


def test_a_numpy_argument_may_change_after_the_call():
    f = px.jit(lambda x: x + 1)
    for size in (4, 100_000):
        x = np.zeros(size, np.float32)
        results = []
        for i in range(20):
            x[:] = i
            results.append(f(x))
        assert [float(r[0]) for r in results] == [float(r[-1]) for r in results] == list(range(1, 21))


def test_a_donated_number_can_be_passed_again():
    f = px.jit(lambda s, x: (s * 2, x), donate_argnums=0)
    g = px.jit(lambda s: s + 1)
    for _ in range(3):
        assert float(f(3.5, jnp.ones(2))[0]) == 7
        assert float(g(3.5)) == 4.5


def test_donated_arrays_are_gone():
    f = px.jit(lambda state, x: {k: v + x for k, v in state.items()}, donate_argnums=0)
    state, x = {"a": jnp.ones(3), "b": jnp.zeros(3)}, jnp.ones(3)
    for _ in range(3):
        before, view = state, np.asarray(state["a"])
        kept = view.copy()
        state = f(state, x)
        assert all(v.is_deleted() for v in before.values()) and not x.is_deleted()
        assert np.array_equal(view, kept)  # NumPy's view is of memory that nobody takes over
    assert state["a"].tolist() == [4, 4, 4] and state["b"].tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="deleted or donated"):
        f(before, x)
    for _ in range(2):
        with pytest.raises(ValueError, match="donated and passed as another argument"):
            f({"a": x, "b": jnp.ones(3)}, x)
        with pytest.raises(ValueError, match="donated and passed as another argument"):
            f({"a": x, "b": x}, jnp.ones(3))
    assert not x.is_deleted()


def test_what_is_no_array_or_not_hashable_is_named():
    f = px.jit(lambda x, n=1: x * n, static_argnames="n")
    f(jnp.ones(2))
    for _ in range(2):
        with pytest.raises(TypeError, match="argument x of .* is 'text' of type str"):
            f("text")
        with pytest.raises(ValueError, match="static argument n .* is unhashable"):
            f(jnp.ones(2), n=[1])
        with pytest.raises(OverflowError, match="does not fit"):
            f(2**70)


def test_arguments_that_are_passed_through_or_not_used():
    f = px.jit(lambda x, unused, y: (y, x + 1, 2.0, [y]))
    x, y = jnp.zeros(2), jnp.ones(3)
    for _ in range(3):
        same, one, two, (again,) = f(x, np.ones(1000), y)
        assert same is y and one.tolist() == [1, 1] and float(two) == 2
        assert again is not y and again.tolist() == [1, 1, 1]  # a copy: both results may be donated
    assert px.jit(lambda x: ())(x) == () and px.jit(lambda x: None)(x) is None


def test_changed_captures_are_seen():
    scale, box = 2.0, [jnp.ones(2)]

    def f(x):
        return x * scale + box[0]

    g = px.jit(f)
    assert [g(jnp.ones(2)).tolist() for _ in range(5)][-1] == [3, 3]
    scale = 5.0
    assert [g(jnp.ones(2)).tolist() for _ in range(5)] == [[6, 6]] * 5
    box[0] = jnp.zeros(2)
    assert [g(jnp.ones(2)).tolist() for _ in range(5)] == [[5, 5]] * 5


def test_settings_and_other_threads_have_programs_of_their_own():
    f, traced = counted(lambda x: x * 2)
    x = np.arange(3)
    for _ in range(2):
        assert f(x).dtype == jnp.int32
        with px.enable_x64(True):
            assert f(x).dtype == jnp.int64
    seen = []
    thread = threading.Thread(target=lambda: seen.extend(f(x).dtype for _ in range(3)))
    with px.enable_x64(True):
        thread.start()
        thread.join()
    assert seen == [jnp.int32] * 3 and len(traced) == 2


def test_inside_other_transformations():
    f = px.jit(lambda x: x * x)
    x = jnp.asarray(3.0)
    f(x), f(x)
    assert float(px.grad(f)(x)) == 6
    assert px.vmap(f)(jnp.arange(3.0)).tolist() == [0, 1, 4]
    assert float(px.jit(lambda x: f(x) + 1)(x)) == 10


def test_errors_of_the_engine_are_explained():
    f = px.jit(lambda x: x + 1)
    x = px.jit(lambda: jnp.ones(3))()
    f(x), f(x)
    x._buffer.delete()  # behind the back of the array
    with pytest.raises(JaxRuntimeError, match="was deleted, or donated to an earlier call"):
        f(x)


def test_methods_and_weak_references():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(px.jit, static_argnums=0)
        def apply(self, x):
            return x * self.scale

    assert [float(Model(2.0).apply(jnp.ones(()))) for _ in range(3)] == [2, 2, 2]
    f = px.jit(lambda x: x)
    f.note = f  # a cycle, which the collector must see through
    f(jnp.ones(2))
    alive = weakref.ref(f)
    del f
    gc.collect()
    assert alive() is None


@pytest.mark.skipif(dispatch.native is not None, reason="it is what the other tests use already")
@pytest.mark.skipif(COMPILER is None, reason="needs a compiler")
def test_the_versions_in_c(tmp_path):
    """These tests and those of eager operations, with the extensions of `transforms` and `core`."""
    load = ["import importlib.util, sys"]
    for name, source in SOURCES.items():
        library = tmp_path / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
        flags = ["-O2", "-Wall", "-Werror", "-fPIC", "-shared", f"-I{sysconfig.get_path('include')}"]
        built = subprocess.run([COMPILER, *flags, source, "-o", library], capture_output=True, text=True)
        if "Python.h" in built.stderr:
            pytest.skip("needs the headers of Python")
        assert built.returncode == 0, built.stderr
        load += [
            f"spec = importlib.util.spec_from_file_location({name!r}, {str(library)!r})",
            f"sys.modules[{name!r}] = importlib.util.module_from_spec(spec)",
            f"spec.loader.exec_module(sys.modules[{name!r}])",
        ]
    files = [__file__, str(Path(__file__).with_name("test_eager.py"))]
    load += [
        "import pytest",
        f"status = pytest.main(['-q', '-p', 'no:cacheprovider', *{files!r}])",
        "from purax.core import primitive",
        "from purax.execution import dispatch",
        "assert dispatch.native is not None and primitive.native is not None",
        "sys.exit(status)",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", "\n".join(load)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr


# --- NumPy arguments, whose memory is used again by later calls


def slowly_zero():
    """So much work that XLA does it in a thread of its own."""
    y = jnp.ones((400, 400))
    for _ in range(6):
        y = jnp.sin(y @ y)
    return jnp.minimum(jnp.abs(y[0, 0]), 0)


LENT = {
    "computed": lambda x: x + 1,
    "the argument itself": lambda x: x,
    "the argument and more": lambda x: (x, x * 2),
    "in another shape": lambda x: x.reshape(2, 2),
    "in another type": lambda x: px.lax.bitcast_convert_type(x, jnp.int32),
    "a part of it": lambda x: (x[1:3], x[::-1]),
    "large": lambda x: jnp.zeros((200, 200)) + x[0],
    "after a while": lambda x: slowly_zero() + x,
    "in a callback": lambda x: px.pure_callback(lambda x: x, px.ShapeDtypeStruct((4,), np.float32), x),
}


@pytest.mark.parametrize("name", LENT)
def test_results_stay_when_later_calls_use_the_memory_of_their_arguments(name):
    f = px.jit(LENT[name])
    arguments = [np.arange(4, dtype=np.float32) + i for i in range(30)]
    x = np.empty(4, np.float32)
    results = []
    for argument in arguments:
        x[:] = argument
        results.append(f(x))
        x[:] = -1  # the argument is the caller's again as soon as the call returns
    for argument, actual in zip(arguments, results, strict=True):
        for y, expected in zip(px.tree.leaves(actual), px.tree.leaves(f(jnp.asarray(argument))), strict=True):
            np.testing.assert_array_equal(y, expected)


def test_several_numpy_arguments_of_all_kinds():
    f = px.jit(lambda x, y, *rest, scale: (x - y) * scale + sum(z.sum() for z in rest))
    one, two = np.arange(6.0, dtype=np.float32), np.ones(6, np.float32)
    rest = (np.arange(3), np.ones((2, 2), np.float64), np.zeros((0, 3), np.float32), np.arange(12.0)[::5])
    rest = (
        *rest,
        np.asfortranarray(np.arange(6.0, dtype=np.float32).reshape(2, 3)),
        np.arange(4, dtype=">f4"),
    )
    expected = (one - two) * 2 + sum(z.sum() for z in rest)
    for _ in range(4):
        result = f(one, two, *rest, scale=np.float32(2))
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, 1e-6)
    np.testing.assert_array_equal(px.jit(lambda tree: tree["a"] + tree["b"])({"a": one, "b": one}), 2 * one)


def test_numpy_arguments_in_many_threads():
    f = px.jit(lambda x, y: (x * y, x - y))
    wrong = []

    def work(number):
        for i in range(200):
            x = np.full(50, number * 1000 + i, np.float32)
            product, difference = f(x, x)
            if (np.asarray(product) != x * x).any() or np.asarray(difference).any():
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_numpy_arguments_of_functions_that_donate_and_results_that_are_deleted():
    f, give = px.jit(lambda x: x + 1), px.jit(lambda x: x * 2, donate_argnums=0)
    x = np.arange(4, dtype=np.float32)
    for i in range(5):
        np.testing.assert_array_equal(give(f(x + i)), 2 * (x + i + 1))
        f(x).delete()
        np.testing.assert_array_equal(give(x), 2 * x)


# --- arguments that are built as those of the calls before


def test_structures_that_come_again_and_again():
    f = px.jit(lambda tree, rest: (tree["b"] * 2 - tree["a"], [x + 1 for x in px.tree.leaves(rest)]))
    one, two, three = (jnp.full(2, float(i)) for i in (1, 2, 3))
    calls = [
        ({"a": one, "b": two}, [three, (one, None)]),
        ({"b": two, "a": one}, [three, (one, None)]),  # the other order
        ({"b": one, "a": one}, [two, (two, None)]),  # the same array twice
        ({"".join(["a"]): one, "b": two}, [three, (one, None)]),
        ({"a": one, "b": two}, (three, [one])),
        ({"a": one, "b": two}, {2: three, 1: one}),
        ({"a": one, "b": two, "c": None}, []),
        ({"a": np.ones(2, np.float32), "b": 2.0}, {"z": {"y": {"x": 3}}}),
        ({"a": one, "b": two}, [three] * 50),
    ]
    for order in (range(len(calls)), [0, 0, 0, 1, 1, 1, 0, 0, 0], [8, 8, 8, 5, 5, 5], [7, 7, 7]):
        for i in order:
            tree, rest = calls[i]
            first, others = f(tree, rest)
            np.testing.assert_array_equal(first, np.asarray(tree["b"]) * 2 - np.asarray(tree["a"]))
            expected = [np.asarray(x) + 1 for x in px.tree.leaves(rest)]
            assert len(others) == len(expected)
            for y, wanted in zip(others, expected, strict=True):
                np.testing.assert_array_equal(y, wanted)


def test_a_structure_that_is_changed_between_calls():
    f = px.jit(lambda tree: {name: value * 2 for name, value in tree.items()})
    tree = {"x": jnp.ones(2), "y": jnp.zeros(2)}
    for _ in range(3):
        f(tree)
    tree["z"] = tree.pop("x")
    assert list(f(tree)) == ["y", "z"] and float(f(tree)["z"][0]) == 2
    tree["y"] = {"inside": jnp.ones(2)}
    with pytest.raises(TypeError):
        f(tree)
    tree["y"] = "no array"
    with pytest.raises(TypeError, match="no array"):
        f(tree)


def test_a_structure_keeps_no_arrays():
    f = px.jit(lambda tree: tree["x"] + 1)
    tree = {"x": jnp.ones(2) * 1}
    gone = weakref.ref(tree["x"])
    for _ in range(4):
        f(tree)
    del tree
    gc.collect()
    assert gone() is None


def test_very_large_structures_are_worked_out():
    f = px.jit(lambda tree: tree[-1])
    tree = [1.0] * 3000 + [2.0]
    for _ in range(3):
        assert float(f(tree)) == 2
