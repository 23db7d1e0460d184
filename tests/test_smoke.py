"""purax in one sitting: read from top to bottom, each test shows one idea and checks that it is true.

For the laws that every operation obeys, see the other files; this one is for a first acquaintance.
"""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp


def close(actual, expected, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tolerance, atol=tolerance)


# --- arrays ---------------------------------------------------------------------------------------------------


def test_arrays_look_like_numpy():
    x = jnp.arange(6.0).reshape(2, 3)
    assert x.shape == (2, 3) and x.ndim == 2 and x.size == 6 and len(x) == 2
    assert x.dtype == jnp.float32
    close(x + 1, [[1, 2, 3], [4, 5, 6]])
    close(x.T @ x, [[9, 12, 15], [12, 17, 22], [15, 22, 29]])
    close(x.sum(axis=0), [3, 5, 7])
    close(jnp.where(x > 2, x, -x), [[0, -1, -2], [3, 4, 5]])
    close(x[1, ::2], [3, 5])


def test_numpy_arrays_come_in_and_go_out():
    inside = jnp.asarray(np.array([1.0, 2.0], np.float32))
    assert isinstance(inside, px.Array)
    outside = np.asarray(inside * 2)
    assert isinstance(outside, np.ndarray) and outside.tolist() == [2.0, 4.0]
    assert float(inside[0]) == 1.0
    assert [float(each) for each in inside] == [1.0, 2.0]


def test_arrays_never_change_but_changed_copies_are_easy():
    x = jnp.zeros(3)
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1.0
    close(x.at[0].set(1.0), [1, 0, 0])
    close(x.at[1:].add(2.0), [0, 2, 2])
    close(x, [0, 0, 0])


def test_python_numbers_adapt_to_the_arrays_they_meet():
    half = jnp.ones(2, jnp.float16)
    assert (half * 2.5).dtype == jnp.float16
    assert (half + jnp.ones(2)).dtype == jnp.float32
    assert (jnp.arange(3) / 2).dtype == jnp.float32


# --- grad -----------------------------------------------------------------------------------------------------


def test_grad_of_a_function_is_a_function():
    cube = lambda x: x**3  # noqa: E731
    close(px.grad(cube)(2.0), 12.0)
    close(px.grad(px.grad(cube))(2.0), 12.0)
    close(px.grad(px.grad(px.grad(cube)))(2.0), 6.0)


def test_grad_follows_python_control_flow():
    def power(x, n):
        result = 1.0
        while n > 0:
            result, n = result * x, n - 1
        return result if x > 0 else -result

    close(px.grad(power)(2.0, 5), 80.0)
    close(px.grad(power)(-2.0, 2), 4.0)


def test_grad_of_a_tree_is_a_tree():
    def loss(parameters, x):
        return jnp.sum(jnp.tanh(x @ parameters["weights"] + parameters["bias"]))

    parameters = {"weights": jnp.ones((3, 2)), "bias": jnp.zeros(2)}
    x = jnp.array([[0.1, 0.2, -0.3]])
    value, gradient = px.value_and_grad(loss)(parameters, x)
    assert px.tree.structure(gradient) == px.tree.structure(parameters)
    slope = 1 - np.tanh(0.0) ** 2
    close(value, 0.0)
    close(gradient["bias"], [slope, slope])
    close(gradient["weights"], np.asarray(x).T * slope * np.ones((1, 2)))


def test_forward_and_reverse_mode_agree():
    def f(x):
        return jnp.sin(x) * jnp.exp(-x[::-1])

    x, direction = jnp.array([0.3, 1.2, -0.7]), jnp.array([1.0, -2.0, 0.5])
    value, tangent = px.jvp(f, (x,), (direction,))
    close(value, f(x))
    _, pull_back = px.vjp(f, x)
    cotangent = jnp.array([0.2, 0.4, -1.0])
    close(jnp.vdot(tangent, cotangent), jnp.vdot(direction, pull_back(cotangent)[0]))
    close(px.jacfwd(f)(x), px.jacrev(f)(x))


def test_hessian_of_a_quadratic_is_its_matrix():
    matrix = jnp.array([[2.0, 1.0], [1.0, 3.0]])
    close(px.hessian(lambda x: 0.5 * x @ matrix @ x)(jnp.array([5.0, -4.0])), matrix)


# --- vmap -----------------------------------------------------------------------------------------------------


def test_vmap_is_a_loop_that_is_not_run():
    def dot(x, y):
        return jnp.sum(x * y)

    xs, ys = jnp.arange(12.0).reshape(4, 3), jnp.ones((4, 3))
    close(px.vmap(dot)(xs, ys), jnp.stack([dot(x, y) for x, y in zip(xs, ys, strict=True)]))
    close(px.vmap(dot, in_axes=(0, None))(xs, ys[0]), [3, 12, 21, 30])
    close(px.vmap(px.vmap(dot, (None, 0)), (0, None))(xs, ys), xs @ ys.T)


def test_vmap_of_grad_gives_a_gradient_per_example():
    def loss(weights, x):
        return jnp.tanh(weights @ x) ** 2

    weights, xs = jnp.array([0.5, -0.25]), jnp.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    per_example = px.vmap(px.grad(loss), in_axes=(None, 0))(weights, xs)
    close(per_example, jnp.stack([px.grad(loss)(weights, x) for x in xs]))
    close(jnp.sum(per_example, axis=0), px.grad(lambda w: jnp.sum(px.vmap(loss, (None, 0))(w, xs)))(weights))


# --- jit ------------------------------------------------------------------------------------------------------


def test_jit_changes_nothing_but_the_speed():
    def f(x):
        return jnp.sin(x) @ x.T + 1

    x = jnp.arange(6.0).reshape(2, 3)
    close(px.jit(f)(x), f(x))


def test_jit_traces_once_per_shape():
    traced = []

    @px.jit
    def f(x):
        traced.append(x.shape)
        return x * 2

    for argument in (jnp.ones(3), jnp.zeros(3), jnp.ones(4), jnp.ones(4)):
        f(argument)
    assert traced == [(3,), (4,)]


def test_static_arguments_are_python_values_inside():
    @px.jit
    def total(x):
        return jnp.sum(x)

    def repeat(x, times):
        for _ in range(times):
            x = x + total(x)
        return x

    compiled = px.jit(repeat, static_argnames="times")
    close(compiled(jnp.ones(2), times=2), [9.0, 9.0])
    close(compiled(jnp.ones(2), times=0), [1.0, 1.0])


def test_a_traced_value_cannot_decide_python_branches():
    @px.jit
    def f(x):
        return len([x] * int(x))

    with pytest.raises(px.errors.ConcretizationTypeError):
        f(3)


def test_every_order_of_transformations():
    def f(x):
        return jnp.sum(jnp.exp(jnp.sin(x)) * x)

    x = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)
    expected = jnp.stack([px.grad(f)(row) for row in x])
    close(px.jit(px.vmap(px.grad(f)))(x), expected)
    close(px.vmap(px.jit(px.grad(f)))(x), expected)
    close(px.vmap(px.grad(px.jit(f)))(x), expected)
    close(px.grad(lambda x: jnp.sum(px.jit(px.vmap(f))(x)))(x), expected)


def test_programs_can_be_looked_at():
    def f(x):
        return jnp.sin(x) * 2.0

    assert "sin" in str(px.make_jaxpr(f)(1.0)) and "mul" in str(px.make_jaxpr(f)(1.0))
    lowered = px.jit(f).lower(jnp.ones(4))
    assert "stablehlo" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] > 0
    close(compiled(jnp.ones(4)), f(jnp.ones(4)))
    shape = px.eval_shape(f, px.ShapeDtypeStruct((7,), jnp.float32))
    assert shape.shape == (7,) and shape.dtype == jnp.float32


# --- trees, random numbers, devices ---------------------------------------------------------------------------


def test_trees_of_arrays():
    tree = {"a": [1, 2], "b": (3, None)}
    assert px.tree.leaves(tree) == [1, 2, 3]
    assert px.tree.map(lambda x: x * 10, tree) == {"a": [10, 20], "b": (30, None)}
    leaves, structure = px.tree.flatten(tree)
    assert px.tree.unflatten(structure, leaves) == tree


def test_random_numbers_come_from_keys():
    key = px.random.PRNGKey(0)
    first, second = px.random.split(key)
    draws = px.random.normal(first, (1000,))
    close(draws, px.random.normal(first, (1000,)))
    assert not np.allclose(draws, px.random.normal(second, (1000,)))
    assert abs(float(jnp.mean(draws))) < 0.15 and abs(float(jnp.std(draws)) - 1) < 0.1
    close(px.jit(lambda key: px.random.uniform(key, (3,)))(key), px.random.uniform(key, (3,)))
    assert sorted(px.random.permutation(key, 5).tolist()) == [0, 1, 2, 3, 4]


def test_arrays_live_on_devices():
    device = px.devices()[0]
    x = px.device_put(np.arange(3.0, dtype=np.float32), device)
    assert x.devices() == {device}
    assert px.device_get(x).tolist() == [0.0, 1.0, 2.0]
    assert x.block_until_ready() is x


# --- a first program ------------------------------------------------------------------------------------------


def test_gradient_descent_finds_the_line():
    x = jnp.linspace(-1.0, 1.0, 50)
    y = 3.0 * x - 0.5

    def loss(parameters):
        return jnp.mean((parameters["slope"] * x + parameters["offset"] - y) ** 2)

    @px.jit
    def step(parameters):
        return px.tree.map(lambda p, g: p - 0.5 * g, parameters, px.grad(loss)(parameters))

    parameters = {"slope": jnp.zeros(()), "offset": jnp.zeros(())}
    for _ in range(100):
        parameters = step(parameters)
    close(parameters["slope"], 3.0, tolerance=1e-4)
    close(parameters["offset"], -0.5, tolerance=1e-4)
