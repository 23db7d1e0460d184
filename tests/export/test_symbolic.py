"""Exported functions with symbolic shapes: one artifact for all sizes, also in transformations and other functions."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import export, lax, nn
from purax.errors import InconclusiveDimensionOperation
from purax.xla import jaxlib_api

F32 = np.float32


def spec(text, dtype=F32, **options):
    return px.ShapeDtypeStruct(export.symbolic_shape(text, **options), dtype)


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F32)


def attention(q, k, v):
    mask = jnp.tril(jnp.ones((q.shape[0], k.shape[0]), bool))
    weights = nn.softmax(jnp.where(mask, q @ k.T / jnp.sqrt(k.shape[1]), -jnp.inf))
    return weights @ v


def recurrent(xs):
    def step(state, x):
        state = jnp.tanh(state * 0.5 + x)
        return state, state * 2

    return lax.scan(step, xs[0], xs)


def solutions(x):
    q, r = jnp.linalg.qr(x)
    return jnp.linalg.inv(x), jnp.linalg.solve(x, x[..., :1]), jnp.linalg.slogdet(x), jnp.linalg.det(x), q @ r


PROGRAMS = {
    "dense": (lambda x: jnp.tanh(x @ jnp.ones((4, 3))).mean(axis=0), "b, 4", (5, 4)),
    "attention": (lambda x: attention(x, x + 1, x * 2), "s, 4", (6, 4)),
    "flatten": (lambda x: x.reshape(x.shape[0], -1) @ jnp.ones((12, 2)), "b, 3, 4", (5, 3, 4)),
    "merge": (lambda x: x.reshape(-1, 4).sum(axis=1), "b, s, 4", (2, 3, 4)),
    "arange": (lambda x: x + jnp.arange(x.shape[0]) / x.shape[0], "b", (7,)),
    "concatenate": (lambda x: jnp.concatenate([x, x[1:], jnp.zeros(2)]), "b", (7,)),
    "halves": (lambda x: x[: x.shape[0] // 2] - x[x.shape[0] // 2 :], "2*b", (8,)),
    "strides": (lambda x: (x[::2].sum(), x[::-1], x[-1], jnp.roll(x, 2)), "b", (7,)),
    "sort": (lambda x: (jnp.sort(x), jnp.argmax(x), jnp.argsort(x), jnp.median(x)), "b", (7,)),
    "cumulative": (lambda x: (jnp.cumsum(x), lax.cummax(x, reverse=True)), "b", (7,)),
    "scan": (recurrent, "s, 3", (5, 3)),
    "while": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0), "b", (6,)),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: -y, x), "b", (6,)),
    "gather": (lambda x: x[jnp.arange(3) % x.shape[0]], "b, 2", (4, 2)),
    "scatter": (lambda x: x.at[-1].set(5.0).at[jnp.array([0])].add(1.0), "b, 2", (4, 2)),
    "dynamic_slice": (lambda x: lax.dynamic_slice_in_dim(x, 1, x.shape[0] - 1), "b", (6,)),
    "einsum": (lambda x: jnp.einsum("bi,bj->ij", x, x), "b, 3", (4, 3)),
    "outer": (lambda x: x[:, None] * x[None, :], "b", (4,)),
    "pad": (lambda x: jnp.pad(x, (1, x.shape[0]), constant_values=3.0), "b", (4,)),
    "convolution": (
        lambda x: lax.conv_general_dilated(x, jnp.ones((2, 3, 3)), (2,), "SAME"),
        "b, 3, s",
        (2, 3, 7),
    ),
    "pool": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID"),
        "b, s",
        (3, 8),
    ),
    "random": (lambda x: x + px.random.normal(px.random.key(3), x.shape), "b, 3", (5, 3)),
    "vmap": (lambda x: px.vmap(lambda row: row / row.sum())(x), "b, 3", (5, 3)),
    "grad": (lambda x: px.grad(lambda y: jnp.sum(jnp.sin(y) ** 2) / y.shape[0])(x), "b", (5,)),
    "nested jit": (lambda x: px.jit(lambda y: y * y.shape[0])(x), "b", (5,)),
    "kron": (lambda x: jnp.kron(x, jnp.ones(3)), "b", (4,)),
    "tile": (lambda x: jnp.tile(x, 3), "b", (4,)),
    "samples": (lambda x: jnp.linspace(0, 1, x.shape[0]) + jnp.logspace(0, x[0], x.shape[0], False), "b", (4,)),
    "classes": (lambda x: px.nn.one_hot(jnp.arange(3), x.shape[0]), "b", (4,)),
    "polynomial": (lambda x: jnp.polyval(jnp.array([1.0, 2.0, 3.0]), x), "b", (4,)),
    "differences": (lambda x: (jnp.diff(x), jnp.ediff1d(x), jnp.trapezoid(x), jnp.trapezoid(x, x**2)), "b", (5,)),
    "quantiles": (lambda x: (jnp.quantile(x, jnp.array([0.2, 0.5])), jnp.percentile(x, 30)), "b", (5,)),
    "medians": (lambda x: jnp.nanmedian(x, axis=1), "b, c", (3, 4)),
    "membership": (lambda x: (jnp.isin(x, x[:1]), jnp.isin(jnp.round(x), jnp.arange(x.shape[0]))), "b", (5,)),
    "diagonal": (lambda x: (jnp.trace(x), jnp.diagonal(x, 1)), "b, 4", (3, 4)),
    "spectrum": (lambda x: jnp.abs(jnp.fft.rfft(x, 8)), "b", (5,)),
    "longer spectrum": (lambda x: jnp.abs(jnp.fft.fft(x, 3)), "b", (5,)),
    "solutions": (lambda x: solutions(x @ x.mT + 3 * jnp.eye(x.shape[-1])), "n, n", (5, 5)),
    "solutions of a batch": (lambda x: solutions(x @ x.mT + 3 * jnp.eye(x.shape[-1])), "b, n, n", (2, 3, 3)),
    "cholesky": (lambda x: jnp.linalg.cholesky(x @ x.mT + jnp.eye(3)), "b, 3, 3", (4, 3, 3)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_artifact_gives_what_the_program_gives(name):
    function, text, shape = PROGRAMS[name]
    exported = export.export(px.jit(function))(spec(text))
    x = numbers(*shape)
    got, expected = exported.call(x), px.jit(function)(x)
    for a, b in zip(px.tree.leaves(got), px.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


# --- the programs of the public guide to shape polymorphism


def test_the_guide_first_program():
    f = lambda x: x.reshape((x.shape[0] * x.shape[1],))  # noqa: E731
    exported = export.export(px.jit(f))(spec("a, b", np.int32))
    assert str(exported.in_avals) == "(ShapedArray(int32[a,b]),)"
    assert str(exported.out_avals) == "(ShapedArray(int32[a*b]),)"
    np.testing.assert_array_equal(exported.call(np.ones((3, 4), np.int32)), np.ones(12))


def test_the_guide_several_arguments():
    exported = export.export(px.jit(lambda x, y: jnp.concatenate([x, y])))(
        *export.symbolic_args_specs((numbers(3), numbers(4)), ("k", "m"))
    )
    assert str(exported.out_avals) == "(ShapedArray(float32[m + k]),)"
    assert exported.call(numbers(2), numbers(5)).shape == (7,)


def test_the_guide_computing_with_dimensions():
    f = lambda x: (jnp.mean(x, axis=0), jnp.sum(x, axis=0) / x.shape[0])  # noqa: E731
    one, other = export.export(px.jit(f))(spec("b, 4")).call(numbers(3, 4))
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert isinstance(5 + jnp.asarray(3), px.Array)


def test_the_guide_errors_of_comparisons():
    with pytest.raises(InconclusiveDimensionOperation, match=r"'b \+ 1' >= '4' is inconclusive"):
        export.export(px.jit(lambda x: 0 if x.shape[0] + 1 >= 4 else 1))(spec("b, 3"))
    exported = export.export(px.jit(lambda x: 0 if x.shape[0] + 1 >= 4 else 1))(
        spec("b, 3", constraints=["b >= 4"])
    )
    assert int(exported.call(numbers(5, 3))) == 0
    with pytest.raises(ValueError, match="do not match the symbolic shape constraint b >= 4"):
        exported.call(numbers(3, 3))
    with pytest.raises(TypeError, match="add got incompatible shapes .*the sizes v and w differ"):
        export.export(px.jit(lambda x, y: x + y))(*export.symbolic_args_specs((X := numbers(4), X), ("v", "w")))


def test_the_guide_constraints():
    a, b = export.symbolic_shape("a, b", constraints=("a >= b",))
    assert (a >= b) is True
    (c,) = export.symbolic_shape("c", constraints=("mod(c, 2) == 0",))
    half = export.export(px.jit(lambda x: x.reshape(2, -1)))(px.ShapeDtypeStruct((c,), F32))
    assert half.call(numbers(6)).shape == (2, 3)
    with pytest.raises(ValueError, match="constraint mod\\(c, 2\\) == 0"):
        half.call(numbers(5))


def test_the_guide_solving_for_variables():
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables \{'a', 'b'\}"):
        export.export(px.jit(lambda x: x[0]))(spec("a*b"))
    exported = export.export(px.jit(lambda x: x[: x.shape[0] // 2]))(spec("2*b"))
    with pytest.raises(ValueError, match="Division had remainder 1 when computing the value of 'b'"):
        exported.call(numbers(5))


def test_arguments_of_other_ranks_are_refused():
    exported = export.export(px.jit(lambda x: x + 1))(spec("n, n"))
    with pytest.raises(ValueError, match=r"Rank mismatch for args\[0\]: expected \(n, n\) and called with \(4,\)"):
        exported.call(numbers(4))


def test_the_guide_inconsistent_sizes():
    like = numbers(3, 3, 3), numbers(3, 3)
    exported = export.export(px.jit(lambda x, y: x @ y))(*export.symbolic_args_specs(like, ("b, b, b", "b, b")))
    with pytest.raises(ValueError, match=r"inconsistency between dimension size args\[0\]\.shape\[1\] \(= 4\)"):
        exported.call(numbers(3, 4, 5), numbers(3, 3))


def test_the_guide_refinement_of_a_model():
    """An export for any batch, called with other symbolic sizes: constraints are checked there."""
    inner = export.export(px.jit(lambda x: x.sum(axis=1)))(spec("b, 4", constraints=["b >= 2"]))
    outer = export.export(px.jit(lambda x: inner.call(x[1:]) * 2))(spec("c, 4", constraints=["c >= 3"]))
    assert str(outer.out_avals) == "(ShapedArray(float32[c - 1]),)"
    x = numbers(5, 4)
    np.testing.assert_allclose(outer.call(x), x[1:].sum(1) * 2, rtol=1e-5)
    with pytest.raises(InconclusiveDimensionOperation):
        export.export(px.jit(lambda x: inner.call(x)))(spec("c, 4"))


# --- derivatives and transformations


@pytest.mark.parametrize("is_read", [False, True])
def test_derivatives_and_transformations_of_calls(is_read):
    function = px.jit(lambda x, w: jnp.sum(jnp.tanh(x @ w) ** 2, axis=1))
    exported = export.export(function)(spec("b, 4"), px.ShapeDtypeStruct((4, 3), F32))
    if is_read:
        exported = export.deserialize(exported.serialize(vjp_order=2))
        assert str(exported.in_avals[0]) == "ShapedArray(float32[b,4])"
    x, w = numbers(3, 4), numbers(4, 3, seed=1)

    def of(f):
        def penalty(x, w):
            return px.grad(lambda y: f(y, w).sum())(x).sum()

        gradients = px.grad(lambda x, w: f(x, w).sum(), argnums=(0, 1))(x, w)
        both = px.vmap(lambda y: f(y, w))(np.stack([x, x + 1]))
        return [*gradients, px.grad(penalty)(x, w), px.jit(f)(x, w), both]

    for a, b in zip(of(exported.call), of(function), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_platforms_and_keys():
    function = px.jit(lambda key, x: px.random.uniform(key, x.shape) + x)
    key = px.random.key(0)
    exported = export.export(function, platforms=["cpu", "tpu", "cuda"])(key, spec("b"))
    assert exported.mlir_module("cpu") == exported.mlir_module("tpu")
    x = numbers(5)
    np.testing.assert_allclose(export.deserialize(exported.serialize()).call(key, x), function(key, x), rtol=1e-6)


def test_the_module_is_the_dynamic_stablehlo_that_serving_systems_read():
    text = export.export(px.jit(lambda x: jnp.ones(x.shape) + x.reshape(-1)[0]))(
        spec("b, 4", constraints=["b <= 100"])
    ).mlir_module()
    assert "func.func public @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32>" in text
    for operation in ("get_dimension_size", "dynamic_broadcast_in_dim", "dynamic_reshape", "@shape_assertion"):
        assert operation in text
    assert "do not match the symbolic shape constraint b <= 100" in text


def test_what_cannot_be_exported_names_the_operation_and_the_line():
    with pytest.raises(NotImplementedError, match=r"`eigh` of f32\[b,b\].*depends on the sizes") as raised:
        export.export(px.jit(lambda x: jnp.linalg.eigh(x)))(spec("b, b"))
    assert "test_symbolic.py" in str(raised.value)


def test_types_in_files_are_checked():
    exported = export.export(px.jit(lambda x: x + 1))(spec("b, 2*c"))
    data = exported.serialize()
    for old, new in ((b'"2*c"', b'"2^c"'), (b'"b"', b'" "'), (b'"constraints":[]', b'"constraints":3 ')):
        assert old in data
        changed = bytes(data[:-32]).replace(old, new)
        with pytest.raises(ValueError, match="not a function that `serialize` wrote"):
            export.deserialize(changed + hashlib.sha256(changed).digest())


def test_eval_shape_of_a_layer_as_keras_asks_it():
    (d,) = export.symbolic_shape("(d)", constraints=["d>=2"])
    out = px.eval_shape(lambda x: nn.relu(x @ jnp.ones((4, 3))), px.ShapeDtypeStruct((d, 4), F32))
    assert str(out.shape) == "(d, 3)"
    with pytest.raises(InconclusiveDimensionOperation, match="requires a constant"):
        int(out.shape[0])


def test_modules_are_read_by_jax_and_those_of_jax_here():
    jax = pytest.importorskip("jax")
    theirs = jax.export.export(jax.jit(lambda x: jax.numpy.tanh(x) @ jax.numpy.ones((4, 2))))(
        jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, 4"), F32)
    )
    refined = jaxlib_api.refined(theirs.mlir_module_serialized, ["tensor<3x4xf32>"])
    assert jaxlib_api.types_of_main(refined) == (("tensor<3x4xf32>",), ("tensor<3x2xf32>",))
    ours = export.export(px.jit(lambda x: jnp.tanh(x) @ jnp.ones((4, 2))))(spec("b, 4"))
    run = dataclasses.replace(theirs, mlir_module_serialized=ours.mlir_module_serialized)
    for n in (3, 5):
        x = numbers(n, 4)
        np.testing.assert_allclose(run.call(x), ours.call(x), rtol=1e-6)
