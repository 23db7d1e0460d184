"""What `purax.lax` refuses, and how: jax refuses the same with an error of the same type; the messages of purax name
the function, all shapes and dtypes, and the user's line.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax
import purax.numpy as jnp

# Calls that both libraries refuse: the source, and what purax's message must contain.
REFUSED = {
    "lax.add(f, i)": ("lax.add", "float32[3]", "int32[3]"),
    "lax.add(f, 1)": ("float32[3]", "int32[]"),
    "lax.add(1.0, i)": ("float32[]", "int32[3]"),
    "lax.add(h, 1.0)": ("float16[3]", "float32[]"),
    "lax.add(f, column)": ("float32[3]", "float32[3,1]", "expand_dims"),
    "lax.add(f, f[:2])": ("incompatible shapes", "float32[3]", "float32[2]"),
    "lax.add(f, [1.0, 2.0, 3.0])": ("list", "position 1", "jnp.asarray"),
    "lax.add(b, b)": ("add", "bool"),
    "lax.sin(i)": ("sin", "int32"),
    "lax.sin(1)": ("sin", "int32"),
    "lax.pow(i, 2)": ("lax.pow", "int32[3]"),
    "lax.bitwise_and(f, f)": ("and", "float32"),
    "lax.abs(i.astype('uint8'))": ("uint8",),
    "lax.clamp(0, f, 1)": ("lax.clamp", "float32[3]"),
    "lax.clamp(f[:2], f, f)": ("clamp", "(3,)", "(2,)"),
    "lax.select(b, f, 1.0)": ("select", "float32[3]", "float32[]"),
    "lax.select(b, f, i)": ("select", "float32[3]", "int32[3]"),
    "lax.select(b[:2], f, f)": ("select", "(2,)", "(3,)"),
    "lax.integer_pow(i, -1)": ("negative",),
    "lax.full((2,), f)": ("lax.full", "scalar"),
    "lax.iota(bool, 3)": ("iota", "bool"),
    "lax.iota(int, -1)": ("iota", "-1"),
    "lax.broadcasted_iota(int, (2, 2), 2)": ("iota", "(2, 2)"),
    "lax.dtype([1])": ("list",),
    "lax.broadcast_shapes((3,), (2,))": ("(3,)", "(2,)"),
    "lax.expand_dims(f, (0, 0))": ("expand_dims", "(0, 0)"),
    "lax.squeeze(column, (0,))": ("squeeze", "(3, 1)"),
    "lax.transpose(column, (0,))": ("permutation", "(3, 1)"),
    "lax.concatenate([f, i], 0)": ("lax.concatenate", "float32[3]", "int32[3]"),
    "lax.concatenate([f, column], 0)": ("lax.concatenate", "float32[3]", "float32[3,1]"),
    "lax.concatenate([], 0)": ("concatenate", "non-empty"),
    "lax.stack([f, i])": ("lax.stack", "float32[3]", "int32[3]"),
    "lax.split(f, (1, 1))": ("split", "(1, 1)", "(3,)"),
    "lax.index_in_dim(f, 3)": ("3", "(3,)"),
    "lax.slice_in_dim(f, 0, 9)": ("slice", "(3,)", "9"),
    "lax.pad(f, 0, [(1, 1, 0)])": ("lax.pad", "float32[3]", "int32[]"),
    "lax.pad(f, 0.0, [(1, 1)])": ("padding_config", "(3,)"),
    "lax.dynamic_slice(f, (1.0,), (2,))": ("dynamic_slice", "float32"),
    "lax.dynamic_slice(f, (1,), (4,))": ("dynamic_slice", "(4,)", "(3,)"),
    "lax.dynamic_slice(f, 1, (2,))": ("dynamic_slice", "1"),
    "lax.dynamic_slice(f, (-1,), (2,), allow_negative_indices=False)": ("allow_negative_indices",),
    "lax.dynamic_update_slice(f, f[0], (1,))": ("float32[3]", "float32[]"),
    "lax.dynamic_update_slice(f, i, (1,))": ("float32[3]", "int32[3]"),
    "lax.reduce_sum(f, (-1,))": ("reduce_sum", "(-1,)", "(3,)"),
    "lax.reduce_sum(f, (0, 0))": ("reduce_sum", "(0, 0)"),
    "lax.reduce_and(f, (0,))": ("reduce_and", "f32[3]"),
    "lax.argmax(f, 1, int)": ("argmax", "(3,)"),
    "lax.argmax(f, 0, float)": ("index_dtype", "float32"),
    "lax.cumsum(f, 1)": ("cumsum", "(3,)"),
    "lax.sort((f, f[:2]))": ("lax.sort", "float32[3]", "float32[2]"),
    "lax.sort(())": ("sort",),
    "lax.top_k(f, 9)": ("top_k", "9", "[3]"),
    "lax.approx_max_k(i, 2)": ("approx_max_k", "i32[3]"),
    "lax.dot(column, column)": ("lax.dot", "float32[3,1]"),
    "lax.dot(f, 1.0)": ("lax.dot", "float32[3]", "float32[]"),
    "lax.dot_general(f, f, (((1,), (0,)), ((), ())))": ("dot_general", "(3,)"),
    "lax.batch_matmul(column, f)": ("batch_matmul", "float32[3,1]", "float32[3]"),
    "lax.scaled_dot(column.T, column, lhs_scale=jnp.ones((1, 2)))": ("lhs_scale", "(1, 2)", "(1, 3)"),
    "lax.reduce_precision(f, 0, 3)": ("exponent_bits",),
    "lax.convert_element_type(f, None)": ("dtype",),
    "lax.scatter_add(f, i[:, None], i, lax.ScatterDimensionNumbers((), (0,), (0,)))": ("float32[3]", "int32[3]"),
    "lax.reduce(f, f, lax.add, (0,))": ("lax.reduce", "f32[3]"),
    "lax.reduce_window(f, 0.0, lax.add, (2, 2))": ("window_dimensions", "(3,)"),
    "lax.reduce_window(f, 0.0, lax.add, (0,))": ("window_dimensions", "(0,)"),
    "lax.rng_uniform(0, 1.0, (2,))": ("rng_uniform", "int32[]", "float32[]"),
    "lax.ragged_dot(column, jnp.ones((3, 1, 5)), i[:2])": ("group_sizes is for 2", "rhs has 3"),
    "lax.while_loop(lambda x: x < 3, lambda x: (x, x), 1)": ("while_loop",),
    "lax.fori_loop(0, 3, lambda i, x: x.astype('float16'), f)": ("f16[3]", "f32[3]"),
}  # fmt: skip


def arrays(m):
    return {
        "lax": m.lax,
        "jnp": m.numpy,
        "f": m.numpy.ones(3),
        "i": m.numpy.arange(3),
        "h": m.numpy.ones(3, np.float16),
        "b": m.numpy.array([True, False, True]),
        "column": m.numpy.ones((3, 1)),
    }


@pytest.mark.parametrize("call", list(REFUSED))
def test_refused_as_by_jax(call):
    with pytest.raises(Exception) as theirs:
        eval(call, arrays(jax))
    with pytest.raises(
        theirs.type if issubclass(theirs.type, TypeError | ValueError | IndexError) else Exception
    ) as ours:
        eval(call, arrays(purax))
    message = str(ours.value)
    missing = [part for part in REFUSED[call] if part not in message]
    assert not missing, f"{missing} not in: {message}"
    assert "<string>" in message or "test_strictness" in message, f"no line of the user in: {message}"


@pytest.mark.parametrize(
    ("call", "parts"),
    {
        "lax.squeeze(column, 1)": ("lax.squeeze", "sequence", "1"),
        "lax.split(f, (1, 2), axis=0.5)": ("lax.split", "axis", "0.5"),
        "lax.cummax(f, axis=np.nan)": ("lax.cummax", "axis", "nan"),
        "lax.cumsum(f, axis=0.5)": ("lax.cumsum", "axis", "0.5"),
        "lax.argmin(f, [], int)": ("lax.argmin", "axis", "[]"),
        "lax.reduce_precision(f, None, 3)": ("lax.reduce_precision", "exponent_bits", "None"),
        "lax.ragged_dot(column, f, i)": ("lax.ragged_dot", "axis"),
        "lax.ragged_dot_general(column, f, i, 3)": (
            "lax.ragged_dot_general",
            "RaggedDotDimensionNumbers",
            "3",
        ),
    }.items(),
)
def test_arguments_that_are_no_axes(call, parts):
    names = {"f": jnp.arange(3.0), "i": jnp.arange(3), "column": jnp.ones((3, 1)), "lax": purax.lax, "np": np}
    with pytest.raises((TypeError, ValueError)) as caught:
        eval(call, names)
    assert all(part in str(caught.value) for part in (*parts, "at <string>"))


def test_refused_while_tracing():
    """With the same message, from inside of a transformed function."""
    with pytest.raises(
        TypeError, match=r"lax.add requires arguments to have the same dtypes, got float32, int32"
    ):
        purax.jit(lambda x: purax.lax.add(x, 1))(purax.numpy.ones(3))


@pytest.mark.parametrize(
    "accuracy", [1e-3, "highest", purax.lax.Tolerance(rtol=-1.0)], ids=["number", "string", "negative"]
)
def test_accuracy_is_checked(accuracy):
    with pytest.raises((TypeError, ValueError)):
        purax.lax.exp(1.0, accuracy=accuracy)


def test_what_is_no_sharding_is_refused():
    with pytest.raises(TypeError, match=r"out_sharding must be a sharding"):
        purax.lax.reshape(purax.numpy.ones(4), (2, 2), out_sharding=object())


def test_a_window_has_a_place_along_each_axis():
    """Also one that is the whole array."""
    x = jnp.arange(5)
    with pytest.raises(TypeError, match=r"slice needs a start.*start_indices \(0, 0\)"):
        purax.lax.slice(x, (0, 0), (5,))
    numbers = purax.lax.GatherDimensionNumbers((), (1, 0), (0, 1))
    with pytest.raises(TypeError, match="collapsed_slice_dims in gather op must be sorted"):
        purax.lax.gather(jnp.ones((2, 3)), jnp.array([[0, 1]]), numbers, (1, 1))
