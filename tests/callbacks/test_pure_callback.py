"""`pure_callback`: the same calls and results as jax under every transformation, and errors that say what is wrong."""

from __future__ import annotations

import gc
import traceback
import weakref

import jax
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.xla import compiler

X = np.arange(6, dtype=np.float32).reshape(2, 3)
METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def struct(m, shape, dtype=np.float32):
    return m.ShapeDtypeStruct(shape, dtype)


class Recorder:
    """Adds its arguments, and remembers their shapes."""

    def __init__(self):
        self.shapes = []

    def __call__(self, a, b):
        self.shapes.append((np.shape(a), np.shape(b)))
        return np.asarray(a) * 2 + np.asarray(b)


def call(m, recorder, method):
    def f(a, b):
        shape = np.broadcast_shapes(a.shape, b.shape)
        return m.pure_callback(recorder, struct(m, shape), a, b, vmap_method=method)

    return f


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 1)], ids=str)
def test_vmap_calls_the_function_with_the_shapes_that_jax_does(method, axes, compiled):
    if method == "legacy_vectorized" and axes != (0, 0):
        axes = (0, 0)  # without a batch axis shapes do not broadcast in general
    other = X + 1 if axes[1] is not None else X[0]
    first = X if axes[0] is not None else X[0]
    found = {}
    for m in (purax, jax):
        recorder = Recorder()
        f = m.vmap(call(m, recorder, method), in_axes=axes)
        found[m] = np.asarray((m.jit(f) if compiled else f)(first, other)), recorder.shapes
    np.testing.assert_array_equal(found[purax][0], found[jax][0])
    assert found[purax][1] == found[jax][1]


@pytest.mark.parametrize("method", ["sequential", "broadcast_all"])
def test_vmap_of_vmap(method):
    recorder = Recorder()
    f = purax.jit(purax.vmap(purax.vmap(call(purax, recorder, method), in_axes=(0, None)), in_axes=(0, 0)))
    a, b = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(f(a, b), a * 2 + b[:, None])
    assert len(recorder.shapes) == (6 if method == "sequential" else 1)


DTYPES = (
    "bool",
    "int8",
    "uint16",
    "int32",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "int64",
)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_arrays_of_every_dtype_and_shape_pass_unchanged(compiled):
    with purax.enable_x64(True):
        for dtype in map(jnp.dtype, DTYPES):
            for shape in ((), (3,), (2, 3), (0, 2)):
                value = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
                seen = []

                def f(x, seen=seen):
                    def function(v):
                        seen.append(v)
                        return v

                    return purax.pure_callback(function, struct(purax, x.shape, x.dtype), x)

                result = (purax.jit(f) if compiled else f)(jnp.asarray(value))
                assert result.dtype == dtype and result.shape == shape
                np.testing.assert_array_equal(np.asarray(result), value)
                if value.size:  # the compiler leaves a call out whose result has no elements
                    assert type(seen[0]) is np.ndarray and seen[0].dtype == dtype
                    assert not seen[0].flags.writeable


def test_trees_keywords_and_other_values_reach_the_function():
    def function(tree, label, *, scale):
        assert label == "name"
        return {"sum": tree["a"] + scale, "more": (tree["b"][0] * 2,)}

    @purax.jit
    def f(a, b, scale):
        shapes = {"sum": struct(purax, (3,)), "more": (struct(purax, ()),)}
        return purax.pure_callback(function, shapes, {"a": a, "b": [b]}, "name", scale=scale)

    result = f(jnp.ones(3), jnp.float32(4), 2.0)
    np.testing.assert_array_equal(result["sum"], [3, 3, 3])
    assert float(result["more"][0]) == 8


def test_results_of_another_width_are_converted_and_other_types_refused():
    for f in (lambda f: f, purax.jit):
        assert f(lambda: purax.pure_callback(lambda: 2.5, struct(purax, ())))().dtype == jnp.float32
        assert f(lambda: purax.pure_callback(lambda: 2, struct(purax, (), np.int32)))().dtype == jnp.int32
        for result, promised, words in [
            (np.zeros(4, np.float32), struct(purax, (3,)), ("(4,)", "f32[3]")),
            (np.zeros(3, np.int32), struct(purax, (3,), np.bool_), ("int32", "bool[3]")),
            (np.zeros(3), (struct(purax, (3,)), struct(purax, ())), ("1 arrays", "2")),
            ("text", struct(purax, ()), ("dtype",)),
        ]:
            with pytest.raises(TypeError) as info:
                purax.block_until_ready(f(lambda r=result, p=promised: purax.pure_callback(lambda: r, p))())
            assert all(word in str(info.value) for word in words), str(info.value)


MISTAKES = [
    (lambda: purax.pure_callback(3, struct(purax, ())), TypeError, "needs a function"),
    (lambda: purax.pure_callback(np.sin, (3,), 1.0), TypeError, "must have a shape and a dtype"),
    (
        lambda: purax.pure_callback(np.sin, struct(purax, ()), 1.0, vmap_method="all"),
        ValueError,
        "vmap_method must be",
    ),
    (
        lambda: purax.vmap(lambda x: purax.pure_callback(np.sin, struct(purax, ()), x))(X[0]),
        NotImplementedError,
        "vmap_method",
    ),
    (
        lambda: purax.grad(lambda x: purax.pure_callback(np.sin, struct(purax, ()), x))(1.0),
        ValueError,
        "custom_jvp",
    ),
    (
        lambda: purax.jvp(lambda x: purax.pure_callback(np.sin, struct(purax, ()), x), (1.0,), (1.0,)),
        ValueError,
        "custom_jvp",
    ),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_are_named(number):
    function, kind, words = MISTAKES[number]
    with pytest.raises(kind, match=words) as info:
        function()
    assert "test_pure_callback.py" in str(info.value)


def test_a_custom_rule_makes_it_differentiable_and_it_works_in_loops_and_branches():
    @purax.custom_jvp
    def sine(x):
        return purax.pure_callback(np.sin, struct(purax, x.shape), x, vmap_method="broadcast_all")

    @sine.defjvp
    def rule(primals, tangents):
        return sine(*primals), jnp.cos(primals[0]) * tangents[0]

    def loss(x):
        y, _ = purax.lax.scan(lambda c, v: (sine(c) + v, None), x, jnp.arange(3.0))
        y = purax.lax.cond(y > 0, sine, lambda v: v, y)
        return purax.checkpoint(sine)(purax.lax.fori_loop(0, 2, lambda i, v: sine(v), y))

    def plain(x):
        y, _ = purax.lax.scan(lambda c, v: (jnp.sin(c) + v, None), x, jnp.arange(3.0))
        y = purax.lax.cond(y > 0, jnp.sin, lambda v: v, y)
        return jnp.sin(purax.lax.fori_loop(0, 2, lambda i, v: jnp.sin(v), y))

    x = jnp.float32(0.3)
    for form in (lambda f: f, purax.grad, purax.jit, lambda f: purax.jit(purax.grad(f)), purax.jacfwd):
        np.testing.assert_allclose(form(loss)(x), form(plain)(x), rtol=1e-5)
    xs = jnp.arange(3.0)
    np.testing.assert_allclose(purax.vmap(purax.grad(loss))(xs), purax.vmap(purax.grad(plain))(xs), rtol=1e-5)


def failing(v):
    raise LookupError("only mine")


@pytest.mark.parametrize("form", [lambda f: f, purax.jit, purax.vmap], ids=["eager", "jit", "vmap"])
def test_an_exception_keeps_its_type_and_traceback(form):
    f = form(lambda x: purax.pure_callback(failing, struct(purax, ()), x, vmap_method="sequential"))
    for _ in range(2):
        with pytest.raises(LookupError, match="only mine") as info:
            f(jnp.ones(2) if form is purax.vmap else jnp.float32(1)).block_until_ready()
        assert isinstance(info.value, purax.errors.JaxRuntimeError)  # whether it was compiled or not
        names = [frame.name for frame in traceback.extract_tb(info.value.__traceback__)]
        assert names[0].startswith("test_an_exception") and names[-1] == "failing"


def test_unneeded_callbacks_are_not_called():
    calls = []
    f = purax.jit(
        lambda x: (purax.pure_callback(lambda v: calls.append(1) or v, struct(purax, ()), x), x + 1)[1]
    )
    assert float(f(1.0)) == 2 and calls == []


def test_a_new_function_is_never_taken_for_an_old_one():
    for n in range(5):
        f = purax.jit(lambda x, n=n: purax.pure_callback(lambda v: v + np.float32(n), struct(purax, ()), x))
        assert float(f(1.0)) == 1 + n


def test_equal_callbacks_share_a_program_and_none_is_kept():
    def make():
        def function(v):
            return v * 2

        first = purax.jit(lambda x: purax.pure_callback(function, struct(purax, (3,)), x))
        first(jnp.ones(3))
        compiles = compiler.stats.compiles
        second = purax.jit(lambda x: purax.pure_callback(function, struct(purax, (3,)), x))
        np.testing.assert_array_equal(second(jnp.ones(3)), 2)
        assert compiler.stats.compiles == compiles
        return weakref.ref(function)

    reference = make()
    gc.collect()
    purax.jit(lambda x: x - 7)(jnp.ones(5)).block_until_ready()  # XLA lets go when it is used next
    gc.collect()
    assert reference() is None


@pytest.mark.cpu_only("programs for accelerators that call Python are not kept on disk")
def test_programs_on_disk_call_the_functions_of_the_process_that_loads_them(tmp_path):
    with purax.config.override(
        compilation_cache_dir=str(tmp_path), persistent_cache_min_compile_time_secs=0.0
    ):
        for function in (np.cos, np.sin):
            f = purax.jit(
                lambda x, function=function: purax.pure_callback(function, struct(purax, (7,)), x) + 3
            )
            np.testing.assert_allclose(f(jnp.ones(7)), function(np.ones(7)) + 3, rtol=1e-6)
        assert len(list(tmp_path.rglob("*.purax"))) == 1


def test_scikit_learn_inside_of_jit():
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(40, 3)).astype(np.float32)
    model = linear_model.LogisticRegression().fit(inputs, inputs @ [1.0, -2.0, 0.5] > 0)

    @purax.jit
    def predict(x):
        shape = struct(purax, (x.shape[0], 2))
        probabilities = purax.pure_callback(model.predict_proba, shape, x)
        return jnp.argmax(probabilities * 2, axis=1)

    np.testing.assert_array_equal(predict(jnp.asarray(inputs)), model.predict(inputs))


def test_an_array_that_the_program_reads_can_be_deleted():
    given = jnp.ones(3) * 2 + 1

    def delete(a):
        given.delete()
        return a

    result = purax.jit(lambda x: purax.pure_callback(delete, x, x) * 2)(given)
    assert np.asarray(result).tolist() == [6.0, 6.0, 6.0]
    assert given.is_deleted()
