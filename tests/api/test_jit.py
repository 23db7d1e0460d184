"""`jit`: which arguments are static, donated, kept; what is traced, compiled and found again; its neighbours
`eval_shape`, `make_jaxpr`, `disable_jit`, `ensure_compile_time_eval`, `named_scope`.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
import weakref

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import compiler


def counting(function):
    """`function`, and a list that grows whenever its body runs."""
    runs = []

    @functools.wraps(function)
    def counted(*args, **kwargs):
        runs.append(1)
        return function(*args, **kwargs)

    return counted, runs


# --- tracing once


def test_traces_once_per_types_and_structure():
    f, runs = counting(lambda x: x["a"] * 2)
    g = px.jit(f)
    assert float(g({"a": 1.0})) == 2.0
    assert float(g({"a": 3.0})) == 6.0
    assert len(runs) == 1
    g({"a": jnp.ones(3)})
    g({"a": jnp.zeros(3)})
    assert len(runs) == 2
    g({"a": np.ones(3, np.float32)})
    assert len(runs) == 2, "a NumPy array has the type of the purax array it becomes"
    g({"a": 1})
    g({"a": jnp.ones(3, jnp.float16)})
    assert len(runs) == 4


def test_a_weak_type_is_another_type():
    f, runs = counting(lambda x: x + jnp.ones(2, jnp.float16))
    g = px.jit(f)
    assert g(1.0).dtype == jnp.float16
    assert g(jnp.float32(1.0)).dtype == jnp.float32
    assert len(runs) == 2


def test_jit_of_the_same_function_again_traces_nothing():
    f, runs = counting(lambda x: x + 1)
    for _ in range(3):
        px.jit(f)(1.0)
    assert len(runs) == 1


def test_configuration_is_part_of_the_key():
    f, runs = counting(lambda x: jnp.asarray(x))
    g = px.jit(f)
    assert g(1.0).dtype == jnp.float32
    with px.enable_x64(True):
        assert g(1.0).dtype == jnp.float64
    assert g(1.0).dtype == jnp.float32
    assert len(runs) == 2


def test_a_fresh_lambda_with_an_equal_body_compiles_once():
    px.clear_caches()
    before = compiler.stats.compiles
    for _ in range(4):
        px.jit(lambda x: jnp.sin(x) * 2.5 + x)(jnp.ones(7))
    assert compiler.stats.compiles - before <= 1


def test_captured_arrays_are_arguments():
    px.clear_caches()
    before = compiler.stats.compiles
    for scale in range(3):
        captured = jnp.full(1000, float(scale))
        lowered = px.jit(lambda x: (x * captured).sum()).lower(jnp.ones(1000))  # noqa: B023
        assert len(lowered.as_text()) < 2000, "the captured array is written into the program"
        assert float(lowered.compile()(jnp.ones(1000))) == 1000.0 * scale
    assert compiler.stats.compiles - before <= 1


def test_captured_numpy_arrays_are_arguments_and_copied():
    captured = np.ones(1000, np.float32)
    f = px.jit(lambda x: x * captured)
    assert len(f.lower(1.0).as_text()) < 2000
    assert float(f(2.0)[0]) == 2.0
    captured[:] = 5.0  # purity is another room's business: here the traced value must not tear
    assert float(f(2.0)[0]) in (2.0, 10.0)


def test_methods_partials_and_callable_objects():
    class Scale:
        def __init__(self, n):
            self.n = n

        @functools.partial(px.jit, static_argnums=0)
        def times(self, x, offset=0.0):
            return x * self.n + offset

        @staticmethod
        @px.jit
        def doubled(x):
            return 2 * x

        def __call__(self, x):
            return x - self.n

    three, four = Scale(3), Scale(4)
    assert float(three.times(2.0)) == 6.0
    assert float(four.times(2.0)) == 8.0
    assert float(four.times(x=2.0, offset=1.0)) == 9.0
    assert float(Scale.doubled(2.0)) == 4.0
    assert float(px.jit(three.times)(2.0)) == 6.0
    assert float(px.jit(three)(5.0)) == 2.0
    assert float(px.jit(functools.partial(lambda a, b, c: a * b + c, 2.0, c=1.0))(5.0)) == 11.0
    assert float(px.jit(functools.partial(lambda n, x: x**n, 2))(5.0)) == 25.0


def test_the_wrapped_function_can_be_seen():
    @px.jit
    def documented(x):
        """What it does."""
        return x

    assert documented.__name__ == "documented" and documented.__doc__ == "What it does."
    assert documented.__wrapped__(3) == 3
    assert "documented" in repr(documented)


def test_decorator_with_options():
    @px.jit(static_argnames="n")
    def power(x, n):
        return x**n

    assert float(power(3.0, 2)) == 9.0
    assert float(power(3.0, n=3)) == 27.0


# --- static arguments

STATIC = {
    "by number": dict(static_argnums=1),
    "by a tuple of numbers": dict(static_argnums=(1,)),
    "by a negative number": dict(static_argnums=-1),
    "by name": dict(static_argnames="n"),
    "by a list of names": dict(static_argnames=["n"]),
    "by both": dict(static_argnums=1, static_argnames="n"),
}


@pytest.mark.parametrize("options", STATIC.values(), ids=STATIC.keys())
def test_static_arguments(options):
    f, runs = counting(lambda x, n: [x] * n)
    g = px.jit(f, **options)
    assert len(g(1.0, 3)) == 3
    assert len(g(2.0, 3)) == 3
    assert len(runs) == 1
    assert len(g(1.0, 2)) == 2
    assert len(runs) == 2
    assert len(g(1.0, n=2)) == 2, "a static argument may be passed by its name"


def test_static_values_compare_by_type_too():
    f = px.jit(
        lambda x, n: x + (10 if isinstance(n, bool) else 20 if isinstance(n, float) else 30), static_argnums=1
    )
    assert [float(f(0.0, n)) for n in (True, 1.0, 1)] == [10, 20, 30]


def test_static_arguments_of_variadic_functions():
    f = px.jit(lambda x, *rest: x * len(rest) + rest[-1].real, static_argnums=-1)
    assert float(f(1.0, 2.0, 3.0, 5)) == 8.0
    g = px.jit(lambda *args, **options: args[0] ** options["n"], static_argnames="n")
    assert float(g(3.0, n=2)) == 9.0


def test_static_defaults_need_not_be_passed():
    f = px.jit(lambda x, n=2, *, shift=1: x**n + shift, static_argnames=("n", "shift"))
    assert float(f(3.0)) == 10.0
    assert float(f(3.0, shift=2)) == 11.0


def test_static_objects_of_any_hashable_kind():
    f = px.jit(lambda x, g, names: {name: g(x) for name in names}, static_argnums=(1, 2))
    assert sorted(f(1.0, jnp.sin, ("a", "b"))) == ["a", "b"]


# --- donation


@pytest.mark.parametrize("size", [3, 300_000])
def test_a_donated_array_is_gone(size):
    f = px.jit(lambda x: x * 2, donate_argnums=0)
    x = jnp.ones(size) + 1
    y = f(x)
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(RuntimeError, match="deleted or donated.*donate_argnums"):
        x + 1
    with pytest.raises(RuntimeError, match="donated"):
        f(x)
    with pytest.raises(RuntimeError, match="donated"):
        np.asarray(x)
    assert float(y[0]) == 4.0
    assert "deleted" in repr(x)


@pytest.mark.parametrize(
    "options", [dict(donate_argnums=(1,)), dict(donate_argnums=-1), dict(donate_argnames="state")]
)
def test_which_arguments_are_donated(options):
    f = px.jit(lambda x, state: {"a": x + state["a"], "b": state["b"]}, **options)
    x, state = jnp.ones(4) + 0, {"a": jnp.ones(4) + 1, "b": jnp.ones(2) + 1}
    result = f(x, state)
    assert state["a"].is_deleted() and state["b"].is_deleted() and not x.is_deleted()
    assert result["a"].tolist() == [3.0] * 4 and result["b"].tolist() == [2.0] * 2
    state = {"a": jnp.ones(4) + 1, "b": jnp.ones(2) + 1}
    f(x, state=state)
    assert state["a"].is_deleted()


def test_views_of_donated_memory_stay_as_they_were():
    produce, consume = px.jit(lambda: jnp.arange(100_000.0)), px.jit(lambda x: x * 0 - 1, donate_argnums=0)
    x = produce()
    view = np.asarray(x)
    source = np.arange(5.0, dtype=np.float32)
    y = jnp.asarray(source)
    consume(x)
    consume(y)
    assert view[:3].tolist() == [0.0, 1.0, 2.0]
    assert source.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_donation_saves_memory():
    x = jnp.ones(1000)
    plain = px.jit(lambda x: x + 1).lower(x).compile().memory_analysis()
    donated = px.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile().memory_analysis()
    assert plain.alias_size_in_bytes == 0
    assert donated.alias_size_in_bytes == 4000


@pytest.mark.parametrize("shape", [(), (3,), (1000,)])
def test_a_result_takes_over_the_memory_whose_address_was_asked_for(shape):
    x = jnp.array(np.zeros(shape, np.float32))
    address = x.unsafe_buffer_pointer()
    y = px.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(y, np.ones(shape))
    assert y.unsafe_buffer_pointer() == address


def test_an_array_that_no_result_can_take_over_is_not_donated():
    x = jnp.ones(3) + 1
    with pytest.warns(UserWarning, match=r"no result can take the memory of.*f32\[3\]") as record:
        px.jit(lambda x: x.sum(), donate_argnums=0)(x)
    assert record[0].filename == __file__
    assert not x.is_deleted()


@pytest.mark.parametrize("size", [3, 300_000])
def test_an_array_cannot_be_donated_and_read(size):
    x = jnp.ones(size) + 1
    with pytest.raises(ValueError, match="donated and passed as another argument"):
        px.jit(lambda a, b: a + b, donate_argnums=0)(x, x)
    assert not x.is_deleted()


def test_donated_python_numbers_can_be_passed_again():
    f = px.jit(lambda x: x + 1, donate_argnums=0)
    assert [float(f(2.0)), float(f(2.0)), int(f(2)), int(f(2))] == [3.0, 3.0, 3, 3]


def test_static_and_donated_is_refused():
    with pytest.raises(ValueError, match="both static and donated"):
        px.jit(lambda a, b: a, static_argnums=0, donate_argnums=0)


# --- results


def test_results_that_are_arguments_are_forwarded():
    f = px.jit(lambda x, y: (x, x + y, y, 2.5, None))
    x, y = jnp.ones(3) + 0, jnp.zeros(3) + 0
    first, total, last, number, nothing = f(x, y)
    assert first is x and last is y and nothing is None
    assert total.tolist() == [1.0] * 3 and float(number) == 2.5
    assert len(f.lower(x, y).compile().runtime_executable().out_avals) == 1, (
        "only x + y goes through XLA"
    )


def test_a_literal_result_is_a_new_array_each_time():
    f = px.jit(lambda x: (x, 1.5))
    f(1.0)[1].delete()
    assert float(f(1.0)[1]) == 1.5


def test_unused_arguments_are_not_passed_unless_wanted():
    f = lambda x, y: x + 1  # noqa: E731
    assert "%arg1" not in px.jit(f).lower(1.0, 2.0).as_text()
    assert "%arg1" in px.jit(f, keep_unused=True).lower(1.0, 2.0).as_text()
    assert float(px.jit(f, keep_unused=True)(1.0, 2.0)) == 2.0


def test_results_keep_weak_types_and_structure():
    result = px.jit(lambda x: {"weak": x * 2, "strong": x + jnp.ones(1), "list": [x], "none": None})(1.0)
    assert result["weak"].weak_type and not result["strong"].weak_type
    assert result["none"] is None and len(result["list"]) == 1


def test_large_work_returns_before_it_is_done():
    f = px.jit(lambda x: x @ x @ x @ x)
    x = jnp.ones((1500, 1500)) / 1500
    f(x).block_until_ready()

    def returned_early() -> bool:
        start = time.perf_counter()
        y = f(x)
        called = time.perf_counter() - start
        ready = y.is_ready()
        y.block_until_ready()
        return not ready and called < (time.perf_counter() - start) / 2

    assert any(returned_early() for _ in range(20))  # once is enough: the machine may be busy with other work
    y = f(x)
    np.testing.assert_allclose(np.asarray(y)[0, 0], 1 / 1500, rtol=1e-5)


def test_an_error_of_the_compiler_names_what_failed():
    with pytest.raises(px.errors.JaxRuntimeError, match="no_such_option"):
        px.jit(lambda x: x + 1, compiler_options={"no_such_option": 1})(1.0)


# --- nesting


def test_nested_jit_is_one_equation_and_inline_is_none():
    inner = px.jit(lambda x: jnp.sin(x) * 2)
    merged = px.jit(lambda x: jnp.sin(x) * 2, inline=True)
    assert [eqn.primitive.name for eqn in px.make_jaxpr(lambda x: inner(x) + 1)(1.0).eqns] == ["jit", "add"]
    assert [eqn.primitive.name for eqn in px.make_jaxpr(lambda x: merged(x) + 1)(1.0).eqns] == [
        "sin",
        "mul",
        "add",
    ]
    np.testing.assert_allclose(px.jit(lambda x: inner(x) + merged(x))(1.0), 4 * np.sin(1.0), rtol=1e-6)


def test_a_function_called_often_is_emitted_once():
    block = px.jit(lambda x, w: jnp.tanh(x @ w))

    def model(x, weights):
        for w in weights:
            x = block(x, w)
        return x

    text = px.jit(model).lower(jnp.ones((2, 3)), [jnp.ones((3, 3))] * 6).as_text()
    assert text.count("stablehlo.dot_general") == 1
    assert text.count("call @") == 6


def test_inner_functions_that_capture_tracers_are_right_each_time():
    @px.jit
    def outer(x):
        return px.jit(lambda y: y * x)(2.0) + px.jit(lambda y: y + x)(1.0)

    assert float(outer(3.0)) == 10.0
    assert float(outer(4.0)) == 13.0


def test_grad_of_jit_traces_once():
    f, runs = counting(lambda x: jnp.sum(jnp.sin(x) ** 2))
    g = px.jit(f)
    for _ in range(3):
        px.grad(g)(jnp.ones(3))
        px.vmap(g)(jnp.ones((2, 3)))
        px.jvp(g, (jnp.ones(3),), (jnp.ones(3),))
    assert len(runs) == 1


def test_the_programs_of_a_dead_function_die_with_it():
    function = lambda x: x + 1  # noqa: E731
    jitted = px.jit(function)
    jitted(1.0)
    reference = weakref.ref(function)
    del function, jitted
    gc.collect()
    assert reference() is None


# --- threads and neighbours


def test_threads_share_a_function():
    px.clear_caches()
    f, runs = counting(lambda x: jnp.sin(x).sum() * 3.75)
    g = px.jit(f)
    before = compiler.stats.compiles
    results, errors = [], []
    barrier = threading.Barrier(6)

    def work(number):
        try:
            barrier.wait()
            results.extend((number, float(g(jnp.full(11, float(number))))) for _ in range(10))
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(results) == 60
    for number, value in results:
        np.testing.assert_allclose(value, 11 * np.sin(number) * 3.75, rtol=1e-5, atol=1e-5)
    assert compiler.stats.compiles - before <= 1


def test_transformations_of_threads_do_not_meet():
    errors = []

    def work(number):
        try:
            for step in range(20):
                x = jnp.full(3, float(step))
                gradient = px.grad(lambda v: (jnp.sin(v) * number).sum())(x)
                np.testing.assert_allclose(
                    gradient, np.cos(np.float32(step)) * number * np.ones(3), atol=1e-5
                )
                assert px.make_jaxpr(lambda v: v * number)(x).eqns[0].primitive.name == "mul"
                assert px.vmap(lambda v: v * number)(x).tolist() == [step * number] * 3
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_arrays_of_jax_are_arguments_and_the_other_way_round():
    jax = pytest.importorskip("jax")
    theirs = jax.numpy.arange(3.0)
    ours = px.jit(lambda x: x + 1)(theirs)
    assert isinstance(ours, px.Array) and ours.tolist() == [1.0, 2.0, 3.0]
    back = jax.jit(lambda x: x * 2)(np.asarray(ours))
    assert isinstance(back, jax.Array) and back.tolist() == [2.0, 4.0, 6.0]
    assert float(jax.grad(lambda x: x**2)(3.0)) == float(px.grad(lambda x: x**2)(3.0)) == 6.0


def test_disable_jit_runs_the_function_as_it_is():
    seen = []

    @px.jit
    def f(x):
        seen.append(type(x).__name__)
        return x if x > 0 else -x

    with px.disable_jit():
        assert float(f(jnp.float32(-3.0))) == 3.0
        total, _ = px.lax.scan(lambda c, x: (c + x if x > 0 else c, x), 0.0, jnp.array([1.0, -2.0, 3.0]))
        assert float(total) == 4.0
        assert px.lax.cond(True, lambda: "a string is fine here", lambda: 1) == "a string is fine here"
        assert float(px.lax.fori_loop(0, 3, lambda i, c: c + i, 0.0)) == 3.0
        assert float(px.lax.while_loop(lambda c: c < 3, lambda c: c + 2, 0.0)) == 4.0
    assert "Tracer" not in seen[0]
    assert float(f(jnp.float32(-3.0))) == 3.0
    assert "Tracer" in seen[1]


def test_clear_caches_traces_again():
    f, runs = counting(lambda x: x + 1)
    g = px.jit(f)
    g(1.0)
    g.clear_cache()
    g(1.0)
    assert len(runs) == 2
    px.clear_caches()
    g(1.0)
    assert len(runs) == 3


def test_compile_time_evaluation():
    @px.jit
    def f(x):
        with px.ensure_compile_time_eval():
            table = jnp.cumsum(jnp.arange(4))
            n = int(table[-1])
        return x * n, jnp.zeros(n)

    value, zeros = f(2.0)
    assert float(value) == 12.0 and zeros.shape == (6,)


def test_named_scopes_reach_the_compiled_program():
    def attention(x):
        with px.named_scope("scores"):
            return jnp.sin(x) @ x

    f = px.named_call(attention, name="attention")
    eqns = px.make_jaxpr(lambda x: f(x) + 1)(jnp.ones(3)).eqns
    assert [eqn.scope for eqn in eqns] == ["attention/scores", "attention/scores", ""]
    assert "attention/scores/sin" in px.jit(f).lower(jnp.ones(3)).as_text(debug_info=True)
    assert "attention/scores" in px.jit(f).lower(jnp.ones(3)).compile().as_text()
    with pytest.raises(TypeError, match="named_scope needs a string"), px.named_scope(3):
        pass


def test_placement():
    device = px.devices()[0]
    assert px.jit(lambda x: x + 1, device=device)(1.0).devices() == {device}
    assert px.jit(lambda x: x + 1, backend="cpu")(1.0).devices() == {device}
    committed = px.device_put(jnp.ones(3), device)
    result = px.jit(lambda x: (x, x + 1))(committed)
    assert all(y.committed for y in result)


# --- eval_shape and make_jaxpr


def test_eval_shape_computes_nothing():
    struct = px.ShapeDtypeStruct((10**6, 10**6), jnp.bfloat16)
    result = px.eval_shape(lambda x, y: {"sum": x.sum(0), "same": y}, struct, 2.0)
    assert result["sum"] == px.ShapeDtypeStruct((10**6,), jnp.bfloat16)
    assert result["same"].weak_type and result["same"].shape == ()
    assert px.jit(lambda x: x @ x.T).eval_shape(px.ShapeDtypeStruct((3, 2), "float32")).shape == (3, 3)
    with pytest.raises(TypeError, match="incompatible shapes"):
        px.eval_shape(jnp.add, px.ShapeDtypeStruct((3,), "float32"), px.ShapeDtypeStruct((4,), "float32"))


def test_shape_dtype_struct_is_a_value():
    a, b = px.ShapeDtypeStruct((2, 3), jnp.float32), px.ShapeDtypeStruct([2, 3], "float32")
    assert a == b and hash(a) == hash(b) and a != px.ShapeDtypeStruct((2, 3), jnp.float16)
    assert (a.shape, a.ndim, a.size, len(a)) == ((2, 3), 2, 6, 2)
    assert a.update(shape=(4,)).shape == (4,)
    assert repr(a) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    with pytest.raises(ValueError, match="needs a dtype"):
        px.ShapeDtypeStruct((2,), None)


def test_make_jaxpr():
    closed = px.make_jaxpr(lambda x, n: x**n, static_argnums=1)(2.0, 3)
    assert str(closed) == "{ lambda ; a:f32[]. let b:f32[] = integer_pow[y=3] a in (b,) }"
    closed, shape = px.make_jaxpr(lambda x: {"y": x.sum()}, return_shape=True)(
        px.ShapeDtypeStruct((3,), jnp.float32)
    )
    assert shape == {"y": px.ShapeDtypeStruct((), jnp.float32)}
    closed = px.make_jaxpr(lambda x: px.lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert closed.eqns[-1].primitive.name == "psum"
    with pytest.raises(NameError, match="unbound axis name: 'i'"):
        px.make_jaxpr(lambda x: px.lax.psum(x, "i"))(1.0)


def test_make_jaxpr_of_a_derivative_is_readable():
    text = str(px.make_jaxpr(px.grad(lambda x: jnp.sin(x) * 3.0))(1.0))
    assert [eqn.primitive.name for eqn in px.make_jaxpr(px.grad(lambda x: jnp.sin(x) * 3.0))(1.0).eqns] == [
        "cos",
        "mul",
    ], text


def test_running_out_of_memory_is_an_error_of_purax():
    f = px.jit(lambda x: jnp.broadcast_to(x, (10**8, 10**7)) * 2)  # more than can be addressed
    with pytest.raises(px.errors.JaxRuntimeError, match="(?i)out of memory"):
        f(jnp.float32(1.0)).block_until_ready()
