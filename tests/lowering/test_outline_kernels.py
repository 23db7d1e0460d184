"""Arrays that products made are joined by a native kernel in functions with several calls, with the same results."""

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.config import config
from purax.core.jaxpr import ClosedJaxpr
from purax.execution import compiled_program
from purax.lowering.cpu.outline_kernels import joined_p
from purax.xla import native

needs_library = pytest.mark.skipif(native.build() is None, reason="the native kernels were not built")
GENERATOR = np.random.default_rng(3)
WIDTH, LAYERS = 8, 4


def network(ws, x, act=lambda x: x):
    for w in ws:
        q, k, v = jnp.split(x @ w, 3, axis=-1)
        x = x + px.nn.softmax(q @ k.T) @ act(v)
    return x


def training_step(ws, x, **options):
    value, gradients = px.value_and_grad(lambda ws: jnp.sum(network(ws, x, **options) ** 2))(ws)
    return px.tree.map(lambda w, g: w - 0.1 * g, ws, gradients), value


WS = [0.3 * GENERATOR.normal(size=(WIDTH, 3 * WIDTH)).astype(np.float32) for _ in range(LAYERS)]
X = GENERATOR.normal(size=(4, WIDTH)).astype(np.float32)


def text(function, *args):
    return px.jit(function).lower(*args).as_text()


@needs_library
def test_cotangents_of_a_split_are_joined_by_one_kernel():
    lowered = text(training_step, WS, X)
    assert lowered.count("purax_concatenate") == 1  # in the function that all layers call
    assert "stablehlo.concatenate" not in lowered


@needs_library
def test_a_function_under_jit_that_is_called_often_does_so_too():
    block = px.jit(lambda x, w: jnp.concatenate([x @ w, x @ (2 * w)], axis=1) @ jnp.ones((6 * WIDTH, WIDTH)))

    def repeated(count):
        def function(x, w):
            for _ in range(count):
                x = jnp.tanh(block(x, w))
            return x

        return text(function, X, WS[0])

    assert repeated(4).count("purax_concatenate") == 1
    assert "purax_concatenate" not in repeated(2)  # XLA compiles two kernels, and may fuse them


@needs_library
@pytest.mark.parametrize(
    "body",
    [
        lambda x, w: jnp.concatenate([x[:, 4:], x[:, :4]], axis=1) @ w[:, :WIDTH],
        lambda x, w: jnp.concatenate([x @ w[:, :4], x @ w[:, 4:8]], axis=1) * x,
    ],
    ids=["made by slices", "taken elementwise"],
)
def test_what_can_be_fused_stays(body):
    def function(x, ws):
        for w in ws:
            x = x + body(x, w)
        return x

    lowered = text(function, X, WS)
    assert "purax_concatenate" not in lowered
    assert "stablehlo.concatenate" in lowered


def test_results_are_those_without_native_kernels():
    with px.enable_x64(True):  # products are native, too, and add in another order
        weights, x = px.tree.map(lambda leaf: np.asarray(leaf, np.float64), (WS, X))
        with_kernels = px.tree.map(np.asarray, px.jit(training_step)(weights, x))
        with config.override(native_kernels=False):
            assert "purax_" not in text(training_step, weights, x)
            without = px.tree.map(np.asarray, px.jit(training_step)(weights, x))
    px.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12), with_kernels, without)


@needs_library
def test_the_kernel_joins_arrays_of_all_dtypes_and_shapes():
    cases = []
    for dtype in ("bool", "int8", "uint16", "bfloat16", "float32", "int64", "complex128"):
        for shapes, axis in [
            (((2, 3), (2, 1), (2, 5)), 1),
            (((4, 3), (1, 3)), 0),
            (((2, 0, 3), (2, 4, 3), (2, 1, 3)), 1),
            (((5,), (7,)), 0),
            (((3, 2, 2, 1), (3, 2, 2, 4)), -1),
        ]:
            arrays = [GENERATOR.integers(0, 2 if dtype == "bool" else 100, shape) for shape in shapes]
            cases.append(([np.asarray(jnp.asarray(x, dtype)) for x in arrays], axis))
    # Several tasks, which begin and end in the midst of rows.
    cases.append(([GENERATOR.normal(size=(3, size)) for size in (70_001, 33, 50_000)], 1))

    with px.enable_x64():
        results = run_joined(cases)
    for (arrays, axis), result in zip(cases, results, strict=True):
        expected = np.concatenate(arrays, axis)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(result), expected)


def run_joined(cases):
    """The arrays of each case joined by the kernel, in one program."""
    operands = [arrays for arrays, _ in cases]
    traced = px.jit(
        lambda operands: [jnp.concatenate(x, axis) for x, (_, axis) in zip(operands, cases, strict=True)]
    ).trace(operands)
    jaxpr = traced.jaxpr.jaxpr
    eqns = [
        eqn.replace(primitive=joined_p) if eqn.primitive.name == "concatenate" else eqn for eqn in jaxpr.eqns
    ]
    assert sum(eqn.primitive is joined_p for eqn in eqns) == len(cases)
    leaves = [jnp.asarray(x) for arrays in operands for x in arrays]
    return compiled_program.run(ClosedJaxpr(jaxpr.replace(eqns=eqns), traced.jaxpr.consts), leaves)
