"""What users get wrong: each mistake raises the exception that says what, with which shapes, and in which line.

A row is a function that makes the mistake, the type of the exception, and a pattern of its message. Every message names
the line of this file, except where Python itself raises at that line (`DIRECT`).
"""

from __future__ import annotations

import functools
import itertools
import operator
import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import errors

x, matrix = jnp.ones(3), jnp.ones((2, 3))


def deleted():
    y = jnp.ones(3) * 2
    y.delete()
    return y


def donated():
    y = jnp.ones(3) * 2
    px.jit(lambda v: v + 1, donate_argnums=0)(y)
    return y


def leaked():
    kept = []
    px.jit(lambda v: kept.append(v) or v)(1.0)
    return kept[0]


def assign(array):
    array[0] = 1.0


def add_in_place(array):
    array[0] += 1.0


SHAPES = {
    "conv strides": (
        lambda: px.lax.conv(jnp.ones((1, 1, 4, 4)), jnp.ones((1, 1, 2, 2)), (1,), "SAME"),
        ValueError,
        r"window_strides must be a positive integer for each of the 2 spatial axes, such as \(1, 1\), got \(1,\)",
    ),
    "conv stride of zero": (
        lambda: px.lax.conv(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (0,), "SAME"),
        ValueError,
        r"window_strides must be a positive integer for each of the 1 spatial axes, such as \(1,\), got \(0,\)",
    ),
    "conv dilation": (
        lambda: px.lax.conv_general_dilated(
            jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), "SAME", rhs_dilation=2
        ),
        ValueError,
        r"rhs_dilation must be a positive integer for each of the 1 spatial axes, such as \(1,\), got 2",
    ),
    "conv padding": (
        lambda: px.lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), 3),
        ValueError,
        r"padding must be a name such as 'SAME', or a pair .* such as \[\(1, 1\)\], got 3",
    ),
    "conv padding name": (
        lambda: px.lax.conv(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), "SOME"),
        ValueError,
        "expected 'VALID', 'SAME', or 'SAME_LOWER', or pairs of integers, got 'SOME'",
    ),
    "conv letters": (
        lambda: px.lax.conv_general_dilated(
            jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), "SAME", dimension_numbers=("NH", "OIH", "NCH")
        ),
        TypeError,
        r"got 2 for lhs and rhs shapes \(1, 1, 4\) and \(1, 1, 2\): .* 'NH', must be 3 distinct letters",
    ),
    "conv_transpose strides": (
        lambda: px.lax.conv_transpose(jnp.ones((1, 4, 1)), jnp.ones((2, 1, 1)), (2, 2), "SAME"),
        ValueError,
        r"conv_transpose .*: strides must be a positive integer for each of the 1 spatial axes",
    ),
    "softmax axis": (lambda: px.nn.softmax(x, axis=7), ValueError, "softmax: axis 7 is out of bounds"),
    "logsumexp axis": (lambda: px.nn.logsumexp(x, 7), ValueError, "logsumexp: axis 7 is out of bounds"),
    "fori_loop carry": (
        lambda: px.lax.fori_loop(0, 3, lambda i, v: (v, v), x),
        TypeError,
        r"fori_loop body .* the carry .*\n  initial: PyTreeDef\(\*\)\n  returned: PyTreeDef\(\(\*, \*\)\)",
    ),
    "fori_loop carry, traced": (
        lambda: px.jit(lambda n: px.lax.fori_loop(0, n, lambda i, v: {"a": v["a"].sum()}, {"a": x}))(3),
        TypeError,
        r"fori_loop body .* must have equal types, but they differ in .*:\n  carry\['a'\] is f32\[3\]",
    ),
    "x + y": (
        lambda: x + jnp.ones(4),
        TypeError,
        r"add got incompatible shapes for broadcasting: \(3,\), \(4,\)",
    ),
    "x @ y": (lambda: matrix @ matrix, TypeError, r"\(2, 3\) and \(2, 3\)"),
    "dot": (lambda: jnp.dot(x, jnp.ones(4)), TypeError, r"\(3,\) and \(4,\)"),
    "where": (lambda: jnp.where(x > 0, x, jnp.ones(4)), ValueError, r"\(3,\), \(4,\)"),
    "concatenate": (lambda: jnp.concatenate([x, matrix]), (TypeError, ValueError), r"\(3,\), \(2, 3\)"),
    "stack": (lambda: jnp.stack([x, jnp.ones(4)]), ValueError, r"\(3,\), \(4,\)"),
    "reshape": (lambda: x.reshape(2, 2), TypeError, r"\(3,\).*\(2, 2\)"),
    "reshape to negative": (lambda: x.reshape(-2, 2), (TypeError, ValueError), r"\(-2, 2\)"),
    "broadcast_to": (lambda: jnp.broadcast_to(x, (2,)), ValueError, r"\(3,\).*\(2,\)"),
    "negative dimension": (
        lambda: jnp.zeros((-1, 2)),
        (TypeError, ValueError),
        r"negative dimensions.*\(-1, 2\)",
    ),
    "fractional dimension": (lambda: jnp.zeros(2.5), TypeError, "got 2.5"),
    "too large": (lambda: jnp.zeros((2**40, 2**40)), OverflowError, "more than can be addressed"),
    "far too large": (lambda: jnp.ones(10**30), OverflowError, "more than can be addressed"),
    "too large a window": (
        lambda: px.lax.reduce_window(x, 0.0, px.lax.add, (2**62,), (1,), "SAME"),
        OverflowError,
        "more elements than can be addressed",
    ),
    "too large a window of a computation": (
        lambda: px.lax.reduce_window(matrix, 0.0, lambda a, b: a * b + a, (2**32, 2**32), (1, 1), "SAME"),
        OverflowError,
        "more elements than can be addressed",
    ),
    "too large under jit": (
        lambda: px.jit(lambda: jnp.zeros((2**40, 2**40)))(),
        OverflowError,
        "more than can be",
    ),
    "axis": (lambda: x.sum(axis=1), ValueError, "axis 1 is out of bounds"),
    "axis twice": (lambda: matrix.sum(axis=(0, 0)), ValueError, r"axis=\(0, 0\)"),
    "axis is text": (lambda: x.sum(axis="a"), TypeError, "axis must be an integer, got 'a'"),
    "transpose": (lambda: matrix.transpose(0, 0), ValueError, r"\(0, 0\)"),
    "einsum": (lambda: jnp.einsum("ij,jk", x, matrix), ValueError, "operand 0, which has 1 axes"),
    "under jit": (lambda: px.jit(lambda v: v + jnp.ones(4))(x), TypeError, "incompatible shapes"),
    "under vmap": (lambda: px.vmap(lambda v: v @ jnp.ones(2))(matrix), TypeError, r"\(3,\) and \(2,\)"),
    "under grad": (lambda: px.grad(lambda v: (v + jnp.ones(4)).sum())(x), TypeError, "incompatible shapes"),
    "under scan": (
        lambda: px.lax.scan(lambda c, v: (c + jnp.ones(4), v), x, x),
        TypeError,
        "incompatible shapes",
    ),
}

VALUES = {
    "ragged lists": (lambda: jnp.array([[1, 2], [3]]), ValueError, r"\[\[1, 2\], \[3\]\]"),
    "objects": (lambda: jnp.array([object()]), TypeError, "takes numbers"),
    "a dictionary": (lambda: jnp.asarray({"a": 1}), TypeError, "type dict"),
    "text": (lambda: jnp.array("abc"), TypeError, "'abc'"),
    "None": (lambda: jnp.array([None]), (TypeError, ValueError), "None"),
    "a list as operand": (lambda: jnp.sin([1.0, 2.0]), TypeError, r"list.*jnp.array"),
    "text as operand": (lambda: jnp.sin("a"), TypeError, "'a'"),
    "unknown dtype": (lambda: jnp.zeros(3, "float33"), TypeError, "'float33'. Did you mean 'float32'"),
    "dtype of objects": (lambda: jnp.zeros(3, object), TypeError, "dtype 'object' is not supported"),
    "bits of floats": (lambda: x & x, TypeError, "bool or integer arrays, got dtype float32"),
    "too large an integer": (lambda: jnp.array(2**40), OverflowError, "int32"),
    "too large an integer beside an array": (lambda: jnp.arange(3) + 2**40, OverflowError, "1099511627776"),
    "too large an integer for jit": (
        lambda: px.jit(lambda n: n)(2**40),
        OverflowError,
        "argument n of .* int32",
    ),
    "negative for unsigned": (lambda: jnp.zeros(2, jnp.uint8) + (-1), OverflowError, "uint8"),
    "different dtypes, strictly": (
        lambda: strictly(lambda: x + jnp.ones(3, jnp.float16)),
        ValueError,
        "float32 and float16",
    ),
    "device_put of text": (lambda: px.device_put({"a": "text"}), TypeError, "device_put: 'text'"),
}


def strictly(run):
    with px.numpy_dtype_promotion("strict"):
        return run()


INDICES = {
    "out of range": (lambda: x[5], IndexError, "index 5 is out of bounds for axis 0 with size 3"),
    "far below": (lambda: x[-4], IndexError, "index -4 is out of bounds"),
    "too many": (lambda: x[0, 0], IndexError, r"too many indices: the array of shape \(3,\)"),
    "a float": (lambda: x[1.5], TypeError, "got 1.5 of type float"),
    "text": (lambda: x["a"], TypeError, "string indexing"),
    "an axis of glu": (lambda: px.nn.glu(jnp.ones((2, 4)), axis=3), ValueError, r"nn\.glu.*axis 3"),
    "points of a Fourier transform": (
        lambda: jnp.fft.rfft(x, n=(3, 3)),
        TypeError,
        r"fft\.rfft.*points.*\(3, 3\)",
    ),
    "sizes of a Fourier transform": (
        lambda: jnp.fft.fft2(jnp.ones((2, 2)), s=3),
        TypeError,
        r"fft\.fft2.* s .*3",
    ),
    "update out of range": (lambda: x.at[7].set(1.0), IndexError, "index 7 is out of bounds"),
    "update of another shape": (lambda: x.at[:2].set(jnp.ones(3)), ValueError, r"\(3,\).*\(2,\)"),
    "a mask of another shape": (lambda: x[jnp.array([True, False])], IndexError, r"\(2,\).*\(3,\)"),
    "a traced mask": (
        lambda: px.jit(lambda v: v[v > 0])(x),
        errors.NonConcreteBooleanIndexError,
        "jnp.where",
    ),
    "assignment": (lambda: assign(x), TypeError, r"x\.at\[idx\]\.set"),
    "assignment in place": (lambda: add_in_place(x), TypeError, r"x\.at\[idx\]\.set"),
    "assignment under jit": (lambda: px.jit(lambda v: assign(v))(x), TypeError, r"x\.at\[idx\]\.set"),
}


def stuck(v):
    """A function whose control flow cannot be recorded: a library asks, and the results are not built alike."""
    return v if operator.truth(v > 0) else (v, -v)


TRACERS = {
    "if": (lambda: px.jit(stuck)(1.0), errors.TracerBoolConversionError, "cond"),
    "while": (
        lambda: px.jit(lambda v: [0 for _ in iter(lambda: bool(v > 0), False)])(1.0),
        errors.TracerBoolConversionError,
        "while_loop",
    ),
    "complex": (
        lambda: px.jit(lambda n: [*map(complex, [n])])(3),
        errors.ConcretizationTypeError,
        r"i32\[\], n of",
    ),
    "range": (
        lambda: px.jit(lambda n: list(range(n)))(3),
        errors.TracerIntegerConversionError,
        "static_argnames",
    ),
    "a shape": (
        lambda: px.jit(lambda n: jnp.zeros(n))(3),
        errors.TracerIntegerConversionError,
        "static_argnames",
    ),
    "arange": (lambda: px.jit(lambda n: jnp.arange(n))(3), errors.ConcretizationTypeError, "stop"),
    "numpy": (
        lambda: px.jit(lambda v: np.random.default_rng(0).normal(v))(1.0),
        errors.TracerArrayConversionError,
        "purax",
    ),
    "a list": (
        lambda: px.jit(lambda i: [1, 2].pop(i))(0),
        errors.TracerIntegerConversionError,
        "jnp.asarray",
    ),
    "if under vmap": (
        lambda: px.vmap(stuck)(x),
        errors.TracerBoolConversionError,
        "batch of 3",
    ),
    "if under grad of jit": (
        lambda: px.grad(px.jit(stuck))(1.0),
        errors.TracerBoolConversionError,
        r"f32\[\]|bool\[\]",
    ),
    "after its trace": (
        lambda: leaked() + 1,
        errors.UnexpectedTracerError,
        "f32.*v of `<lambda>` was used after",
    ),
    "after its trace, in jit": (
        lambda: px.jit(lambda v: v)(leaked()),
        errors.UnexpectedTracerError,
        "was used after",
    ),
    "after its trace, captured": (
        lambda: (lambda old: px.jit(lambda v: v + old)(1.0))(leaked()),
        errors.UnexpectedTracerError,
        "was used after",
    ),
}

BUFFERS = {
    "deleted": (lambda: deleted() + 1, RuntimeError, r"f32\[3\] array has been deleted or donated"),
    "deleted, read": (lambda: np.asarray(deleted()), RuntimeError, "deleted or donated"),
    "deleted, jit": (lambda: px.jit(lambda v: v * 2)(deleted()), RuntimeError, "deleted|donated"),
    "deleted, forwarded": (lambda: px.jit(lambda v: v)(deleted()), RuntimeError, "deleted|donated"),
    "deleted, grad": (lambda: px.grad(lambda v: v.sum())(deleted()), RuntimeError, "deleted or donated"),
    "donated": (lambda: donated() + 1, RuntimeError, "Use that call's result"),
    "donated and read": (
        lambda: px.jit(lambda a, b: a + b, donate_argnums=0)(x, x),
        ValueError,
        "donated and passed as another argument",
    ),
}

JIT = {
    "unhashable": (
        lambda: px.jit(lambda v, n: v, static_argnums=1)(x, [1]),
        ValueError,
        r"static argument n of .*unhashable: \[1\]",
    ),
    "unhashable by name": (
        lambda: px.jit(lambda v, n: v, static_argnames="n")(x, n={}),
        ValueError,
        "static argument n",
    ),
    "an array": (
        lambda: px.jit(lambda v, n: v, static_argnums=1)(x, x),
        ValueError,
        "static argument n.*tuple",
    ),
    "static number": (
        lambda: px.jit(lambda v: v, static_argnums=3),
        ValueError,
        "static_argnums=3 .* 1 positional",
    ),
    "static name": (
        lambda: px.jit(lambda v: v, static_argnames="w"),
        ValueError,
        "names 'w', but the arguments .* are v",
    ),
    "static text": (lambda: px.jit(lambda v: v, static_argnums="v"), TypeError, "must be an integer"),
    "an object": (
        lambda: px.jit(lambda p: p)({"a": [1.0, object()]}),
        TypeError,
        r"argument p\['a'\]\[1\] of .*static",
    ),
    "a struct": (
        lambda: px.jit(lambda v: v)(px.ShapeDtypeStruct((3,), "float32")),
        TypeError,
        "argument v of",
    ),
    "text": (lambda: px.jit(lambda v, *rest: v)(1.0, "text"), TypeError, r"argument args\[1\] of .* 'text'"),
    "returns text": (lambda: px.jit(lambda v: {"y": "text"})(1.0), TypeError, r"result\['y'\] is 'text'"),
}

GRAD = {
    "of an array": (
        lambda: px.grad(lambda v: v * 2)(x),
        TypeError,
        r"returns a scalar.*shape \(3,\).*jacrev",
    ),
    "of a tree": (lambda: px.grad(lambda v: {"a": v})(1.0), TypeError, "returned a structure"),
    "of nothing": (lambda: px.grad(lambda v: None)(1.0), TypeError, "returned a structure"),
    "of an integer": (lambda: px.grad(lambda v: v * 2.0)(3), TypeError, r"argument 0 is i32\[\].*allow_int"),
    "of an integer in a tree": (
        lambda: px.grad(lambda p: p["a"][1])({"a": [1.0, 2]}),
        TypeError,
        r"argument 0\['a'\]\[1\]",
    ),
    "of a truth value": (lambda: px.grad(lambda v: v * 1.0)(True), TypeError, "dtype bool"),
    "with an integer result": (lambda: px.grad(lambda v: 3)(1.0), TypeError, r"real-valued outputs.*i32\[\]"),
    "with a complex result": (lambda: px.grad(lambda v: v * 1j)(1.0), TypeError, "holomorphic=True"),
    "holomorphic, real": (lambda: px.grad(lambda v: v, holomorphic=True)(1.0), TypeError, "must be complex"),
    "argnums": (lambda: px.grad(lambda v: v, argnums=1)(1.0), ValueError, "argument 1 .* 1 positional"),
    "argnums is text": (
        lambda: px.grad(lambda v: v, argnums="v")(1.0),
        TypeError,
        "argnums must be an integer",
    ),
    "by keyword": (lambda: px.grad(lambda v: v)(v=1.0), ValueError, "by position"),
    "text": (lambda: px.grad(lambda v: 1.0)("text"), TypeError, "argument 0 is not an array.*'text'"),
    "has_aux": (lambda: px.grad(lambda v: v, has_aux=True)(1.0), TypeError, "must return a pair"),
    "tangent shape": (
        lambda: px.jvp(jnp.sin, (x,), (jnp.ones(4),)),
        ValueError,
        r"tangent of argument 0 has shape \(4,\)",
    ),
    "tangent shape in a tree": (
        lambda: px.jvp(lambda p: p["a"], ({"a": x},), ({"a": jnp.ones(4)},)),
        ValueError,
        r"tangent of argument 0\['a'\]",
    ),
    "tangent dtype": (
        lambda: px.jvp(jnp.sin, (x,), (jnp.ones(3, jnp.float16),)),
        TypeError,
        "dtype float16, but dtype float32",
    ),
    "tangent structure": (lambda: px.jvp(jnp.sin, (x,), ({"a": x},)), TypeError, "one structure"),
    "tangent of an integer": (lambda: px.jvp(lambda n: n, (1,), (1,)), TypeError, "must have dtype float0"),
    "no tuple": (lambda: px.jvp(jnp.sin, x, x), TypeError, "primals must be a tuple or list"),
    "cotangent shape": (
        lambda: px.vjp(jnp.sin, x)[1](jnp.ones(4)),
        ValueError,
        r"cotangent for `sin` has shape \(4,\)",
    ),
    "cotangent structure": (
        lambda: px.vjp(lambda v: (v, v), x)[1](x),
        TypeError,
        "must have the structure of its result",
    ),
    "cotangent dtype": (lambda: px.vjp(jnp.sin, x)[1](jnp.ones(3, jnp.float16)), TypeError, "dtype float16"),
    "pushforward": (lambda: px.linearize(jnp.sin, x)[1](jnp.ones(4)), ValueError, r"\(4,\)"),
    "not linear": (lambda: px.linear_transpose(lambda v: v * v, x)(x), TypeError, "not linear"),
}

keys = px.random.split(px.random.key(0), 3)


def along_i(function):
    return px.vmap(function, axis_name="i")(x)


TRANSFORMS = {
    **{
        f"no function for {name}": (run, TypeError, f"{name} needs a function: .*, got 3 of type int")
        for name, run in {
            "eval_shape": lambda: px.eval_shape(3, x),
            "closure_convert": lambda: px.closure_convert(3, x),
            "named_call": lambda: px.named_call(3),
            "custom_vjp": lambda: px.custom_vjp(3),
            "custom_jvp": lambda: px.custom_jvp(3),
            "checkpoint": lambda: px.checkpoint(3),
            "map": lambda: px.lax.map(3, x),
            "scan": lambda: px.lax.scan(3, x, x),
        }.items()
    },
    "argnums is None": (lambda: px.grad(lambda v: v, argnums=None), TypeError, "grad: argnums .* got None"),
    "a number as static name": (lambda: px.jit(lambda v: v, static_argnames=3), TypeError, "string.* got 3"),
    "a policy": (
        lambda: px.checkpoint(lambda v: v, policy=3),
        TypeError,
        "checkpoint_policies or None, got 3",
    ),
    "a negative length": (
        lambda: px.lax.scan(lambda c, y: (c, y), x, None, length=-1),
        ValueError,
        "scan: length must not be negative, got -1",
    ),
    "batch_size": (lambda: px.lax.map(lambda v: v, x, batch_size="a"), TypeError, "batch_size .* got 'a'"),
    "out_axes": (lambda: px.vmap(lambda v: v, out_axes="a")(x), TypeError, "out_axes .* got 'a'"),
    "axis_size": (lambda: px.vmap(lambda: x, axis_size=-1)(), TypeError, "axis_size .* got -1"),
    "branches": (lambda: px.lax.switch(0, 3, x), TypeError, "branches must be a list of functions, got 3"),
    "an axis name": (
        lambda: along_i(lambda v: px.lax.psum(v, {})),
        TypeError,
        r"psum: axis_name .* got \{\}",
    ),
    "a permutation": (
        lambda: along_i(lambda v: px.lax.ppermute(v, "i", [3])),
        TypeError,
        r"pairs .* got \[3\]",
    ),
    "a shuffle": (
        lambda: along_i(lambda v: px.lax.pshuffle(v, "i", [0, 1])),
        ValueError,
        r"0 … 2 once.*\[0, 1\]",
    ),
    "pairs to send": (lambda: along_i(lambda v: px.lax.psend(v, "i", 3)), TypeError, "psend: perm .* got 3"),
    "the padding of patches": (
        lambda: px.lax.conv_general_dilated_patches(jnp.ones((1, 1, 4)), (2,), (1,), 3),
        TypeError,
        "padding must be a name .* got 3",
    ),
    "the size of patches": (
        lambda: px.lax.conv_general_dilated_patches(jnp.ones((1, 1, 4)), (2, 2), (1,), "SAME"),
        ValueError,
        r"filter_shape .* 1 spatial axes, got \(2, 2\)",
    ),
    "letters of axes": (
        lambda: px.lax.conv_transpose_shape_tuple((1, 2), (1, 2), (1,), "SAME", None),
        TypeError,
        "three strings .* got None",
    ),
    "strides of a shape": (
        lambda: px.lax.conv_shape_tuple((1, 2), (1, 2), (1,), "SAME"),
        ValueError,
        r"as many strides, got \(1,\)",
    ),
    "an index of a key": (lambda: keys[0][0], IndexError, r"shape \(\) has 0 axes"),
    "weights of choices": (lambda: px.random.choice(keys[0], 3, p="a"), TypeError, "choice: p .* got 'a'"),
    "a negative number of classes": (
        lambda: px.nn.one_hot(jnp.arange(3), -3),
        ValueError,
        "num_classes.* -3",
    ),
}

TABLES = {
    "shapes": SHAPES,
    "values": VALUES,
    "indices": INDICES,
    "tracers": TRACERS,
    "buffers": BUFFERS,
    "jit": JIT,
    "grad": GRAD,
    "transforms": TRANSFORMS,
}
ROWS = {f"{table}: {name}": row for table, rows in TABLES.items() for name, row in rows.items()}


@pytest.mark.parametrize("name", ROWS)
def test_mistake(name):
    run, kind, message = ROWS[name]
    with pytest.raises(kind, match=re.compile(message, re.DOTALL)) as error:
        run()
    assert re.search(rf"at {re.escape(__file__)}:\d+", str(error.value)), (
        f"no line of this file in: {error.value}"
    )
    assert str(error.value).count("\n  at ") == 1, f"more than one line in: {error.value}"


# Python finds these at the line itself.
DIRECT = {
    "truth of an array": (lambda: bool(x), ValueError, "3 elements.*ambiguous"),
    "int of an array": (lambda: int(x), TypeError, r"shape \(3,\)"),
    "a float as index": (lambda: [1, 2][jnp.float32(1)], TypeError, "integer scalar"),
    "hash": (lambda: {x: 1}, TypeError, "unhashable.*tobytes"),
    "len": (lambda: len(jnp.float32(1)), TypeError, r"shape \(\)"),
    "iteration": (lambda: list(jnp.float32(1)), TypeError, "0-d array"),
    "deletion": (lambda: x.__delitem__(0), TypeError, "jnp.delete"),
    "x + text": (lambda: x + "a", TypeError, "unsupported operand"),
    "x + None": (lambda: x + None, TypeError, "unsupported operand"),
    "no function for jit": (lambda: px.jit(3), TypeError, "jit needs a function: .* got 3"),
    "no function for grad": (lambda: px.grad(3), TypeError, "grad needs a function: .* got 3"),
    "no function for vmap": (lambda: px.vmap(3), TypeError, "vmap needs a function: .* got 3"),
    "no function for make_jaxpr": (lambda: px.make_jaxpr(3), TypeError, "make_jaxpr needs a function: .* got 3"),
    "no function for tree.map": (
        lambda: px.tree.map(3, x),
        TypeError,
        "tree.map needs a function first, got 3",
    ),
    "no function for tree.reduce": (
        lambda: px.tree.reduce(3, [x, x]),
        TypeError,
        "tree.reduce needs a function",
    ),
    "no structures": (
        lambda: px.tree.transpose(3, 4, x),
        TypeError,
        "outer_treedef must be a PyTreeDef, got 3",
    ),
    "no structure": (lambda: px.tree_util.treedef_tuple([3]), TypeError, "must be a PyTreeDef, got 3"),
    "no leaves": (lambda: px.tree.unflatten(px.tree.structure([1]), 3), TypeError, "leaves .* got 3"),
    "is_leaf": (lambda: px.tree.flatten(x, is_leaf=3), TypeError, "is_leaf must be a function .* got 3"),
    "is_leaf of leaves": (lambda: px.tree.leaves(x, is_leaf=3), TypeError, "is_leaf must be a function"),
    "array_str": (lambda: jnp.array_str("text"), TypeError, "text"),
    "a generator": (lambda: px.jit(lambda v: (yield v)), TypeError, "generator"),
}


@pytest.mark.parametrize("name", DIRECT)
def test_mistake_that_python_finds(name):
    run, kind, message = DIRECT[name]
    with pytest.raises(kind, match=re.compile(message, re.DOTALL)):
        run()


def test_after_any_mistake_everything_goes_on():
    for run, _, _ in [*ROWS.values(), *DIRECT.values()]:
        with pytest.raises(Exception):  # noqa: B017
            run()
    assert float(px.jit(px.grad(lambda v: jnp.sin(v)))(0.0)) == 1.0
    assert px.vmap(lambda v: v * 2)(jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


DEEP = functools.reduce(lambda value, _: (value,), range(10**6), 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.reshape(jnp.ones(3), DEEP),
        lambda: jnp.ones(3, DEEP),
        lambda: px.ShapeDtypeStruct(DEEP, "float32"),
        lambda: px.lax.psum(1.0, DEEP),
        lambda: px.lax.dot_general(jnp.ones(3), jnp.ones(3), DEEP),
        lambda: jnp.einsum("i->i", jnp.ones(3), optimize=DEEP),
        lambda: px.random.maxwell(px.random.key(0), out_sharding=DEEP),
        lambda: px.sharding.PartitionSpec(DEEP),
        lambda: px.devices(DEEP),
        lambda: px.lax.GatherScatterMode.from_any(DEEP),
        lambda: px.nn.initializers.variance_scaling(1.0, DEEP, "normal"),
        lambda: px.sharding.AbstractMesh((1,), (DEEP,)),
        lambda: px.make_mesh((1,), (DEEP,)),
        lambda: px.experimental.checkify.checkify(jnp.sin, errors=DEEP),
        lambda: px.jit(jnp.negative, static_argnums=0)(DEEP),
        lambda: px.jit(_twice, compiler_options={"a": DEEP}),
        lambda: px.jit(_twice, out_shardings=DEEP),
        lambda: px.ffi.ffi_call("a", px.ShapeDtypeStruct((3,), "float32"))(1.0, b=DEEP),
        lambda: px.lax.composite(jnp.negative, "a")(1.0, b=DEEP),
    ],
)
def test_tuples_too_deep_to_be_hashed_are_refused(call):
    with pytest.raises((TypeError, ValueError)):
        call()


def _twice(x):
    return x * 2


@pytest.mark.parametrize(
    "kinds",
    [
        (px.jit,),
        (px.checkpoint,),
        (px.jit, px.checkpoint, lambda f: lambda x: px.lax.cond(x[0] > 0, f, jnp.negative, x)),
    ],
)
def test_many_transformations_around_each_other_cost_no_more_than_their_number(kinds):
    """Whatever asks its function twice, for something that was not kept, would not end here."""
    x = jnp.ones(3)
    f = functools.reduce(lambda f, level: kinds[level % len(kinds)](f), range(27), _twice)
    assert f(x).tolist() == [2.0, 2.0, 2.0]
    assert px.grad(lambda x: f(x).sum())(x).tolist() == [2.0, 2.0, 2.0]


class _Endless:
    """A sequence by its items, which never end."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return 1


def _twice_in_itself():
    values = []
    values += [values, values]
    return values


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.hstack(range(2**62)),
        lambda: px.jit(lambda: jnp.vstack(range(2**62)))(),
        lambda: px.debug.visualize_sharding(_Endless(), jnp.ones(3).sharding),
        lambda: px.debug.sharding_svg(_Endless(), jnp.ones(3).sharding),
        lambda: px.experimental.sparse.CSR(jnp.broadcast_to(1.0, (2**40,)), shape=(2, 3)),
        lambda: px.test_util.check_jvp(jnp.sin, lambda p, t: (p, t), (jnp.ones(3),), generator=np.int8),
        lambda: jnp.ones(3).__array__(functools.reduce(lambda value, _: [value], range(5000), 1)),
        lambda: px.export.Exported("f", None, (), None, (), {}, (), None),
        lambda: px.export.Exported("f", *(px.tree.structure(0), (1,)) * 2, {"cpu": 1}, (), None),
        lambda: px.export.Exported("f", *(px.tree.structure(0), _Endless()) * 2, {}, (), None),
        lambda: px.sharding.AbstractMesh(itertools.repeat(1), ("x",)),
        lambda: px.sharding.AbstractMesh((1,), itertools.repeat("x")),
        lambda: px.debug.visualize_array_sharding(_Endless()),
        lambda: jnp.nanvar(jnp.ones(3), ddof=_Endless()),
        lambda: jnp.nanstd(jnp.ones(3), ddof=[_Endless()]),
        lambda: px.scipy.signal.detrend(jnp.ones(3), bp=[1, _Endless()]),
        lambda: px.test_util.check_close(1, _Endless()),
        lambda: px.test_util.check_jvp(jnp.sin, None, itertools.repeat(1)),
        lambda: px.lax.gather(x, jnp.ones((1, 1), int), [_Endless()] * 4, (1,)),
        lambda: jnp.piecewise(x, [_Endless()], [1, 2]),
        lambda: px.experimental.sparse.BCSR((x, x, x), shape=itertools.repeat(1)),
        lambda: jnp.asarray(_twice_in_itself()),
    ],
)
def test_what_never_ends_and_what_is_of_another_kind_is_refused(call):
    with pytest.raises((TypeError, ValueError)):
        call()


def test_differences_of_a_high_order_end():
    assert jnp.diff(jnp.arange(5), n=2**62).shape == (0,)


def test_a_long_array_is_iterated_a_part_at_a_time():
    endless = jnp.broadcast_to(2.0, (2**40,))
    assert [float(x) for x, _ in zip(endless, range(3), strict=False)] == [2.0] * 3
    x = jnp.arange(2**16 + 3)
    assert np.array_equal(np.asarray([int(part) for part in x]), np.arange(2**16 + 3))
