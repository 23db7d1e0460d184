"""`reduce` and `reduce_window` with any computation, against jax and NumPy, under all transformations."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import lax
from tests.against_jax import NOT_DIFFERENTIATED, ONCE, Program, numbers
from tests.lax.together import check_together

matrix = numbers((3, 4))
integers = np.arange(12, dtype=np.int32).reshape(3, 4)
WINDOWS = {
    "plain": dict(window_dimensions=(2, 2)),
    "strided": dict(window_dimensions=(2, 3), window_strides=(1, 2), padding="SAME"),
    "lower": dict(window_dimensions=(2, 2), window_strides=(2, 2), padding="SAME_LOWER"),
    "dilated": dict(
        window_dimensions=(2, 2), padding=((1, 0), (2, 1)), base_dilation=(2, 1), window_dilation=(1, 2)
    ),
}
PROGRAMS = [
    *(
        Program(f"reduce by {name} over {axes}", lambda m, a, n=name, s=start, x=axes: m.lax.reduce(
            a, s, getattr(m.lax, n), x), (matrix,), ONCE)
        for name, start in (("add", 0.0), ("mul", 1.0), ("max", -np.inf), ("min", np.inf))
        for axes in ((0,), (0, 1))
    ),
    # The jvp of jax gives a value without the 1.
    Program("reduce from 1", lambda m, a: m.lax.reduce(a, 1.0, m.lax.add, (1,)), (matrix,), ("value", "vjp", "vmap")),
    Program("reduce by or", lambda m, a: m.lax.reduce(a > 0, False, m.lax.bitwise_or, (1,)),
            (matrix,), NOT_DIFFERENTIATED),
    Program("reduce integers", lambda m, a: m.lax.reduce(a, 0, m.lax.max, (1,)), (integers,), NOT_DIFFERENTIATED),
    Program("reduce by a function", lambda m, a: m.lax.reduce(
        a, 0.0, lambda x, y: x + y + x * y, (1,)), (matrix / 4,), ONCE),
    Program("reduce pairs", lambda m, a: m.lax.reduce(
        (a, a * 2), (0.0, 1.0), lambda x, y: (x[0] + y[0], x[1] * y[1]), (0, 1)), (matrix,), ONCE),
    Program("reduce a pair of dtypes", lambda m, a: m.lax.reduce(
        {"x": a, "n": m.numpy.arange(12).reshape(3, 4)}, {"x": -np.inf, "n": 0},
        lambda x, y: {"x": m.lax.max(x["x"], y["x"]), "n": m.lax.select(x["x"] >= y["x"], x["n"], y["n"])},
        (1,)), (matrix,), NOT_DIFFERENTIATED),
    *(
        Program(f"{name} of {kind} windows", lambda m, a, n=name, s=start, w=window: m.lax.reduce_window(
            a, s, getattr(m.lax, n), **w), (matrix,), ONCE if name == "add" else ("value", "vmap"))
        for name, start in (("add", 0.0), ("max", -np.inf), ("min", np.inf), ("mul", 1.0))
        for kind, window in WINDOWS.items()
    ),
    *(
        Program(f"derivatives of max of {kind} windows", lambda m, a, w=window: m.lax.reduce_window(
            a, -np.inf, m.lax.max, **w), (matrix,), ONCE)
        for kind, window in WINDOWS.items() if kind != "dilated"  # jax has none for dilated operands
    ),
    Program("windows from 1", lambda m, a: m.lax.reduce_window(a, 1.0, m.lax.max, (2, 2), (1, 1), "SAME"),
            (matrix,), ("value", "vmap")),
    Program("windows of integers", lambda m, a: m.lax.reduce_window(a, 3, m.lax.add, (2, 2), (1, 1), "SAME"),
            (integers,), ("value", "vmap")),
    Program("windows of pairs", lambda m, a: m.lax.reduce_window(
        (a, a), (0.0, 1.0), lambda x, y: (x[0] + y[0], x[1] * y[1]), (2, 2)), (matrix,), ("value", "vmap")),
]  # fmt: skip


def test_agree_with_jax():
    check_together(PROGRAMS)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_products_of_windows_are_differentiated(window):
    """jax has no derivative here; the logarithm of a product is a sum."""
    x = jnp.asarray(np.abs(matrix) + 0.5)
    product = lambda v: lax.reduce_window(v, 1.0, lax.mul, **window)  # noqa: E731
    summed = lambda v: jnp.exp(lax.reduce_window(jnp.log(v), 0.0, lax.add, **window))  # noqa: E731
    weights = jnp.arange(1.0, product(x).size + 1).reshape(product(x).shape)
    ours, theirs = (purax.grad(lambda v, f=f: (f(v) * weights).sum())(x) for f in (product, summed))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    np.testing.assert_allclose(purax.jvp(product, (x,), (x,))[1], purax.jvp(summed, (x,), (x,))[1], rtol=1e-4)


def test_first_of_equal_elements_has_the_derivative():
    x = jnp.zeros(4)
    np.testing.assert_array_equal(
        purax.grad(lambda v: lax.reduce_window(v, -jnp.inf, lax.max, (2,)).sum())(x), [1, 1, 1, 0]
    )
    np.testing.assert_array_equal(
        purax.grad(lambda v: lax.reduce_window(v, jnp.inf, lax.min, (2,), padding="SAME").sum())(x),
        [1, 1, 1, 1],
    )


def test_nan_is_passed_on_with_its_derivative():
    x = jnp.array([1.0, jnp.nan, 3.0, 2.0])
    out, tangent = purax.jvp(
        lambda v: lax.reduce_window(v, -jnp.inf, lax.max, (2,)), (x,), (jnp.arange(1.0, 5.0),)
    )
    np.testing.assert_array_equal(out, [np.nan, np.nan, 3])
    np.testing.assert_array_equal(tangent, [2, 2, 3])


@pytest.mark.parametrize("captured", ["array", "tracer"])
def test_computations_may_capture_arrays(captured):
    def function(c, x):
        combined = lax.reduce(x, 0.0, lambda a, b: a + b + c * a * b, (0,))
        return combined, lax.reduce_window(x, 0.0, lambda a, b: a + b + c * a * b, (2, 1))

    c, x = jnp.float32(0.5), jnp.asarray(matrix)
    run = (lambda c, x: function(c, x)) if captured == "array" else purax.jit(function)

    def fold(rows):
        total = rows[0]
        for row in rows[1:]:
            total = total + row + 0.5 * total * row
        return total

    total, windows = run(c, x)
    np.testing.assert_allclose(total, fold(list(matrix)), rtol=1e-5)
    np.testing.assert_allclose(windows, [fold(list(matrix[i : i + 2])) for i in range(2)], rtol=1e-5)
    slope = purax.grad(lambda c: function(c, x)[0].sum())(c)
    step = 1e-2
    difference = (function(c + step, x)[0].sum() - function(c - step, x)[0].sum()) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-3)


def test_initial_values_may_be_batched_and_differentiated():
    x = jnp.arange(1.0, 4.0)
    combine = lambda a, b: a + b + a * b  # noqa: E731
    reduce = lambda start: lax.reduce(x, start, combine, (0,))  # noqa: E731
    starts = jnp.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(purax.vmap(reduce)(starts), [reduce(s) for s in starts])
    np.testing.assert_allclose(purax.grad(reduce)(0.5), 24.0)
    windows = lambda start: lax.reduce_window(x, start, combine, (2,))  # noqa: E731
    np.testing.assert_allclose(purax.vmap(windows)(starts), [windows(s) for s in starts])


def test_nothing_to_reduce_gives_the_initial_value():
    empty = jnp.zeros((0, 2))
    np.testing.assert_array_equal(lax.reduce(empty, 3.0, lambda a, b: a + b + a * b, (0,)), [3, 3])
    np.testing.assert_array_equal(lax.reduce(empty, 0.0, lax.add, (0,)), [0, 0])
    assert lax.reduce_window(empty, 0.0, lax.add, (1, 2)).shape == (0, 1)


def test_recognized_operations_use_their_primitives():
    text = lambda f: str(purax.make_jaxpr(f)(jnp.ones((3, 4))))  # noqa: E731
    assert "reduce_sum" in text(lambda x: lax.reduce(x, 0.0, jnp.add, (0,)))
    assert "reduce_max" in text(lambda x: lax.reduce(x, -jnp.inf, lambda a, b: lax.max(b, a), (0,)))
    assert "reduce_window_sum" in text(lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2)))
    assert "reduce_window[" in text(lambda x: lax.reduce_window(x, 1.0, lax.add, (2, 2)))


def test_results_of_another_type_are_refused():
    with pytest.raises(TypeError, match=r"must return what it combines.*f32\[\].*i32\[\]"):
        lax.reduce(jnp.ones(3), 0.0, lambda a, b: a.astype(int), (0,))
    with pytest.raises(TypeError, match="structure"):
        lax.reduce_window(jnp.ones(3), 0.0, lambda a, b: (a, b), (2,))
    with pytest.raises(ValueError, match="initial value for each"):
        lax.reduce((jnp.ones(3), jnp.ones(3)), 0.0, lambda a, b: a, (0,))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32])
@pytest.mark.parametrize("operation, start", [(lax.max, -np.inf), (lax.min, np.inf)])
def test_an_extremum_of_integers_starts_from_an_infinity_and_nothing_else_from_a_fraction(
    operation, start, dtype
):
    x = jnp.array([3, 1, 2], dtype)
    expected = lax.reduce_window(x, x[0], operation, (3,))
    for number in (start, jnp.array(start)):
        np.testing.assert_array_equal(lax.reduce_window(x, number, operation, (3,)), expected)
        np.testing.assert_array_equal(lax.reduce(x, number, operation, (0,)), expected[0])
    for wrong in (-start, 1.5, jnp.array(1.5)):
        with pytest.raises(TypeError, match="initial value of that dtype"):
            lax.reduce_window(x, wrong, operation, (3,))
        with pytest.raises(TypeError, match="initial value of that dtype"):
            lax.reduce(x, wrong, operation, (0,))


@pytest.mark.parametrize(
    "combine",
    [
        lambda x, y: lax.while_loop(lambda pair: pair[1] > pair[0], lambda pair: (pair[1], pair[0]), (x, y))[0],
        lambda x, y: lax.scan(lambda c, _: (jnp.maximum(c, y), None), x, None, length=3)[0],
        lambda x, y: lax.switch((x > y).astype(int) + (x > y), [lambda: y, lambda: x, lambda: x]),
        lambda x, y: jnp.sort(jnp.stack([x, y]))[1],
        lambda x, y: purax.jit(lambda x, y: lax.cond(x > y, lambda: x, lambda: y))(x, y),
    ],
    ids=["while_loop", "scan", "switch", "sort", "cond"],
)
def test_computations_with_loops_and_branches(combine):
    """Which XLA does not compile inside of a reduction: it ends the process."""
    x, least = jnp.asarray(integers), np.int32(-1)
    whole = purax.jit(lambda x: lax.reduce(x, least, combine, (1,)))
    assert whole(x).tolist() == [3, 7, 11]
    windows = purax.jit(purax.vmap(lambda x: lax.reduce_window(x, least, combine, (2,))))
    assert windows(x).tolist() == [[1, 2, 3], [5, 6, 7], [9, 10, 11]]


def test_special_functions_are_loops_too():
    x = jnp.array([0.5, 1.5])
    found = purax.jit(lambda x: lax.reduce(x, np.float32(0.5), lax.igamma, (0,)))(x)
    assert found.shape == () and 0 < found < 1
