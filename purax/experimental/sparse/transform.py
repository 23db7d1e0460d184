"""`sparsify`: functions written for dense arrays, on sparse ones.

The function is traced to a program; its equations are then run one by one, those with sparse operands by a rule that
has a sparse result where that is sensible. Operations that would fill the array are refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.api.jit import jit_p, make_jaxpr
from purax.api.stages import ShapeDtypeStruct
from purax.control_flow.checkpoint import checkpoint_p
from purax.control_flow.custom_jvp import custom_jvp_call_p
from purax.control_flow.custom_vjp import custom_vjp_call_p
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.experimental.sparse import products, shaping
from purax.experimental.sparse.base import JAXSparse
from purax.experimental.sparse.bcoo import BCOO
from purax.experimental.sparse.compressed import _Matrix
from purax.experimental.sparse.operators import add, multiply, unique, with_data
from purax.primitives.elementwise.arithmetic import div_p, integer_pow_p, sub_p
from purax.primitives.elementwise.conversion import convert_element_type_p
from purax.primitives.elementwise.elementwise import add_p, mul_p
from purax.primitives.products.contraction import dot_general_p
from purax.primitives.shape.broadcasting import broadcast_in_dim_p, reduce_sum_p, transpose_p
from purax.primitives.shape.dynamic_slicing import dynamic_slice_p
from purax.primitives.shape.gather_scatter import gather_p
from purax.primitives.shape.reshaping import concatenate_p, reshape_p, rev_p, squeeze_p
from purax.primitives.shape.slicing import slice_p
from purax.tree_util import tree_flatten, tree_unflatten

# Primitives that call a program: the parameter that holds it.
CALLS: dict[Primitive, str] = {
    jit_p: "jaxpr",
    checkpoint_p: "jaxpr",
    custom_jvp_call_p: "call",
    custom_vjp_call_p: "call",
}


def sparsify(f: Callable, use_tracer: bool = False) -> Callable:
    """A function of dense arrays that takes sparse ones too.

    Args:
        f: a function of arrays and pytrees of arrays.
        use_tracer: has no effect.

    Returns:
        A function that has sparse results where its operations keep them sparse.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> sparse.sparsify(lambda m, v: jnp.tan(m) @ v)(sparse.BCOO.fromdense(2 * jnp.eye(2)), jnp.ones(2)).round(3)
    Array([-2.185, -2.185], dtype=float32)
    """

    @functools.wraps(f)
    def function(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_flatten((args, kwargs), is_leaf=lambda x: isinstance(x, JAXSparse))
        values = [x.to_bcoo() if isinstance(x, _Matrix) else x for x in leaves]
        examples = [ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, BCOO) else x for x in values]
        structure = []

        def flat(*leaves: Any) -> Any:
            args, kwargs = tree_unflatten(tree, leaves)
            out, out_tree = tree_flatten(f(*args, **kwargs))
            structure.append(out_tree)
            return out

        closed = make_jaxpr(flat)(*examples)
        operands = [x if isinstance(x, BCOO) else jnp.asarray(x) for x in values]
        return tree_unflatten(structure[-1], run(closed, operands))

    return function


def run(closed: ClosedJaxpr, operands: list[Any]) -> list[Any]:
    """Runs a program on arrays of which some are sparse."""
    jaxpr: Jaxpr = closed.jaxpr
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    known.update(zip(jaxpr.invars, operands, strict=True))

    def read(atom: Any) -> Any:
        return atom.array if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        values = [read(atom) for atom in eqn.invars]
        if not any(isinstance(x, BCOO) for x in values):
            out = eqn.primitive.bind(*values, **eqn.params)
        else:
            out = apply(eqn, values)
        results = out if isinstance(out, (list, tuple)) else [out]
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def apply(eqn: Any, values: list[Any]) -> Any:
    """One equation with a sparse operand."""
    primitive, params = eqn.primitive, dict(eqn.params)
    if primitive in CALLS:
        return run(params[CALLS[primitive]], values)
    if primitive in RULES:
        return RULES[primitive](*values, **params)
    if primitive.preserves_zero:
        (x,) = values
        x = x if primitive.is_linear else unique(x)  # a linear function does not mind indices that come twice
        return with_data(x, primitive.bind(x.data, **params))
    raise located(
        NotImplementedError,
        f"sparsify: {primitive.name} of a sparse array would give a dense one, or has no rule; use "
        "`sparse.todense` first",
    )


def _subtract(x: Any, y: Any) -> Any:
    return add(x, with_data(y, -y.data) if isinstance(y, BCOO) else -jnp.asarray(y))


def _divide(x: Any, y: Any) -> Any:
    if isinstance(y, BCOO):
        raise located(
            NotImplementedError,
            "sparsify: division by a sparse array is not finite; use `sparse.todense` first",
        )
    if not np.ndim(y):
        return with_data(x, x.data / y)
    return multiply(x, 1 / y)


def _integer_power(x: BCOO, *, y: int) -> BCOO:
    if y <= 0:
        raise located(
            NotImplementedError,
            f"sparsify: a sparse array to the power of {y} is dense; use `sparse.todense` first",
        )
    x = unique(x)
    return with_data(x, x.data**y)


def _convert(x: BCOO, *, new_dtype: Any, weak_type: bool = False) -> BCOO:
    x = x if jnp.issubdtype(new_dtype, jnp.inexact) else unique(x)
    return with_data(x, x.data.astype(new_dtype))


def _sum(x: BCOO, *, axes: Any) -> Any:
    total = products.bcoo_reduce_sum(x, axes=axes)
    return total if total.shape else total.todense()


def _concatenate(*operands: Any, dimension: int) -> BCOO:
    if not all(isinstance(x, BCOO) for x in operands):
        raise located(
            NotImplementedError,
            "sparsify: concatenation of sparse and dense arrays; use `sparse.todense` first",
        )
    return shaping.bcoo_concatenate(operands, dimension=dimension)


def _product(x: Any, y: Any, *, dimension_numbers: Any, **options: Any) -> Any:
    return products.bcoo_dot_general(x, y, dimension_numbers=dimension_numbers, **options)


def _dynamic_slice(x: BCOO, *starts: Any, **params: Any) -> BCOO:
    return shaping.bcoo_dynamic_slice(x, starts, params["slice_sizes"])


def _gather(x: BCOO, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, **options: Any) -> BCOO:
    return shaping.bcoo_gather(x, indices, dimension_numbers, slice_sizes, **options)


RULES: dict[Primitive, Callable] = {
    add_p: add,
    sub_p: _subtract,
    mul_p: multiply,
    div_p: _divide,
    integer_pow_p: _integer_power,
    convert_element_type_p: _convert,
    dot_general_p: _product,
    reduce_sum_p: _sum,
    transpose_p: lambda x, *, permutation: shaping.bcoo_transpose(x, permutation=permutation),
    reshape_p: lambda x, *, new_sizes, dimensions=None, **_: shaping.bcoo_reshape(
        x, new_sizes=new_sizes, dimensions=dimensions
    ),
    broadcast_in_dim_p: lambda x, *, shape, broadcast_dimensions, **_: shaping.bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=broadcast_dimensions
    ),
    squeeze_p: lambda x, *, dimensions: shaping.bcoo_squeeze(x, dimensions=dimensions),
    slice_p: lambda x, **params: shaping.bcoo_slice(x, **params),
    dynamic_slice_p: _dynamic_slice,
    gather_p: _gather,
    rev_p: lambda x, *, dimensions: shaping.bcoo_rev(x, dimensions),
    concatenate_p: _concatenate,
}
