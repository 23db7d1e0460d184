"""Jacobians and Hessians: one derivative along each standard direction, all at once by `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.api.autodiff import FlatFunction, _choose, _differentiable_leaf, jvp, vjp
from purax.api.vmap import vmap
from purax.core import dtypes
from purax.core.avals import aval_of
from purax.core.source import located
from purax.interpreters.arguments import as_positions, name_of, require_function, to_array, wraps
from purax.interpreters.vmap import batch_flat, to_axis
from purax.primitives.shape.broadcasting import move_axis, zeros
from purax.primitives.shape.reshaping import reshape
from purax.primitives.shape.slicing import slice_axis
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla.array import from_numpy


def jacfwd(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """The Jacobian of a function, column by column with forward differentiation: best for few inputs.

    Args:
        fun: the function.
        argnums: the position, or positions, of the arguments to differentiate with respect to.
        has_aux: whether `fun` returns a pair (value, something else), of which only the first is differentiated.
        holomorphic: whether `fun` is a holomorphic function of complex numbers.

    Returns:
        A function that returns, for each result of shape s and each argument of shape t, an array of shape s + t.

    >>> import purax as px, purax.numpy as jnp
    >>> px.jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    positions = as_positions(argnums, "argnums")
    single = not isinstance(argnums, Sequence)

    @wraps(fun)
    def jacobian(*args, **kwargs):
        chosen, leaves, tree, flat = _prepare(fun, "jacfwd", positions, args, kwargs, has_aux, holomorphic)
        for x in leaves:
            if not holomorphic and dtypes.is_complex(x.aval.dtype):
                raise located(
                    TypeError,
                    f"jacfwd of `{name_of(fun)}` needs real arguments, got {x.aval.str_short()}; for a holomorphic "
                    "function use holomorphic=True",
                )

        def along(*directions):
            results, tangents = jvp(lambda *xs: flat(*xs), leaves, directions)
            # A result of integers does not move: its derivative is zero, in its own dtype.
            moved = [
                zeros(aval_of(y)) if aval_of(t).dtype == dtypes.float0 else t
                for y, t in zip(results, tangents, strict=True)
            ]
            return moved, flat.aux

        directions = _standard_basis(leaves)
        tangents, aux = vmap(along, in_axes=0, out_axes=(0, None))(*directions)
        # tangents[result] has the direction axis in front: split it by argument, and move it to the end.
        rows = []
        for tangent in tangents:
            tangent = move_axis(tangent, 0, aval_of(tangent).ndim - 1)
            if holomorphic and not dtypes.is_complex(aval_of(tangent).dtype):
                raise located(
                    TypeError,
                    f"jacfwd with holomorphic=True needs complex results, `{name_of(fun)}` returned real ones",
                )
            rows.append(_split_last(tangent, leaves))
        out = tree_unflatten(flat.out_tree, [_by_argument(tree_unflatten(tree, row), single) for row in rows])
        return (out, aux) if has_aux else out

    return jacobian


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """The Jacobian of a function, row by row with reverse differentiation: best for few results.

    Arguments and result as those of `jacfwd`; `allow_int` as in `grad`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    positions = as_positions(argnums, "argnums")
    single = not isinstance(argnums, Sequence)

    @wraps(fun)
    def jacobian(*args, **kwargs):
        chosen, leaves, tree, flat = _prepare(
            fun, "jacrev", positions, args, kwargs, has_aux, holomorphic, allow_int
        )
        out, pullback = vjp(lambda *xs: list(flat(*xs)), *leaves)
        for y in out:
            if holomorphic and not dtypes.is_complex(y.aval.dtype):
                raise located(
                    TypeError,
                    f"jacrev with holomorphic=True needs complex results, `{name_of(fun)}` returned {y.aval}",
                )
            if not holomorphic and not dtypes.is_floating(y.aval.dtype):
                raise located(
                    TypeError,
                    f"jacrev needs real floating point results, but `{name_of(fun)}` returned "
                    f"{y.aval.str_short()}; for complex results use holomorphic=True",
                )
        basis = _standard_basis(out)
        # No function of the user's runs backwards, so nothing of what `vmap` finds out about one is needed.
        size = aval_of(basis[0]).shape[0] if basis else 0
        batched, axes = batch_flat(lambda *c: pullback(list(c)), basis, [0] * len(basis), size)
        cotangents = [to_axis(c, axis, 0, size) for c, axis in zip(batched, axes, strict=True)]
        # cotangents[argument] has the result axis in front: split it by result.
        columns = [_split_first(c, out) for c in cotangents]
        rows = [[column[r] for column in columns] for r in range(len(out))]
        result = tree_unflatten(
            flat.out_tree, [_by_argument(tree_unflatten(tree, row), single) for row in rows]
        )
        return (result, flat.aux) if has_aux else result

    return jacobian


def hessian(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable:
    """The second derivatives of a function: forward differentiation of its reverse derivative.

    >>> import purax as px, purax.numpy as jnp
    >>> px.hessian(lambda x: (x**3).sum())(jnp.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


jacobian = jacrev


def _prepare(fun, caller, positions, args, kwargs, has_aux, holomorphic, allow_int=False):
    require_function(fun, caller)
    chosen = _choose(fun, caller, positions, args)
    leaves, tree = tree_flatten(tuple(args[i] for i in chosen))
    leaves = [
        _differentiable_leaf(x, i, tree, fun, caller, holomorphic, allow_int) for i, x in enumerate(leaves)
    ]
    flat = FlatFunction(fun, args, kwargs, chosen, tree, has_aux)
    return chosen, leaves, tree, flat


def _by_argument(row: tuple, single: bool):
    return row[0] if single else row


def _standard_basis(leaves: Sequence[Any]) -> list[Any]:
    """For each leaf, its parts of the standard basis vectors of all leaves together: shape (total, *leaf shape)."""
    avals = [aval_of(x) for x in leaves]
    total = sum(aval.size for aval in avals)
    basis, start = [], 0
    for aval in avals:
        part = np.zeros((total, aval.size), aval.dtype if dtypes.is_inexact(aval.dtype) else dtypes.float0)
        if dtypes.is_inexact(aval.dtype):
            part[np.arange(start, start + aval.size), np.arange(aval.size)] = 1
        basis.append(to_array(from_numpy(part.reshape(total, *aval.shape), aval.weak_type)))
        start += aval.size
    return basis


def _split_last(x, leaves: Sequence[Any]) -> list[Any]:
    """Splits the last axis of `x`, which runs over all elements of all leaves, into the leaves' own axes."""
    shape = aval_of(x).shape[:-1]
    parts, start = [], 0
    for leaf in leaves:
        aval = aval_of(leaf)
        part = slice_axis(x, start, start + aval.size, len(shape))
        parts.append(reshape(part, shape + aval.shape))
        start += aval.size
    return parts


def _split_first(x, leaves: Sequence[Any]) -> list[Any]:
    """Splits the first axis of `x`, which runs over all elements of all leaves, into the leaves' own axes."""
    shape = aval_of(x).shape[1:]
    parts, start = [], 0
    for leaf in leaves:
        aval = aval_of(leaf)
        part = slice_axis(x, start, start + aval.size, 0)
        parts.append(reshape(part, aval.shape + shape))
        start += aval.size
    return parts
