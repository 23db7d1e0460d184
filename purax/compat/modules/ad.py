"""`jax.interpreters.ad`: rules of differentiation, registered by primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.api import autodiff
from purax.compat.extension import primitive_jvps, primitive_transposes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.primitive import LinearOperand as UndefinedPrimal
from purax.core.primitive import Primitive, is_linear
from purax.interpreters.jvp import JVPTrace, JVPTracer
from purax.primitives.elementwise.elementwise import add_p
from purax.primitives.shape.broadcasting import materialize, zeros

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_aval",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

add_jaxvals_p = add_p
get_aval = aval_of


def is_undefined_primal(x: Any) -> bool:
    """Whether a transpose rule's operand is one that a cotangent is asked for."""
    return is_linear(x)


def jvp(
    fun: Callable,
    primals: Any,
    tangents: Any,
    has_aux: bool = False,
    instantiate: bool = True,
    transform_stack: bool = True,
) -> Any:
    """The results of a function of flat arguments, and their tangents.

    Args:
        fun: the function; it returns a sequence of arrays.
        primals: the arguments.
        tangents: their tangents, of which some may be symbolic zeros.
        has_aux: whether it returns something else besides, which is then the third of what this returns.
        instantiate: accepted, without effect: tangents of results are arrays.
        transform_stack: accepted, without effect.
    """
    given = [materialize(t) if type(t) is Zero else t for t in tangents]
    return autodiff.jvp(fun, tuple(primals), tuple(given), has_aux=has_aux)


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two cotangents."""
    return add_p.bind(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a symbolic zero."""
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def zeros_like_aval(aval: ShapedArray) -> Any:
    """An array of zeros of a type."""
    return zeros(aval)


def instantiate_zeros(tangent: Any) -> Any:
    """The tangent, as an array of zeros if it is a symbolic zero."""
    return materialize(tangent)


def get_primitive_transpose(p: Primitive) -> Callable:
    """The transpose rule of a primitive."""
    return primitive_transposes[p]


def defjvp(primitive: Primitive, *jvprules: Callable | None) -> None:
    """Sets the derivative of a primitive by one rule per operand.

    Args:
        primitive: with one result.
        *jvprules: for each operand None, or a function of its tangent, all operands and the parameters that returns
            the tangent of the result.
    """
    defjvp2(primitive, *[_without_result(rule) for rule in jvprules])


def _without_result(rule: Callable | None) -> Callable | None:
    return (
        None
        if rule is None
        else lambda tangent, result, *primals, **params: rule(tangent, *primals, **params)
    )


def defjvp2(primitive: Primitive, *jvprules: Callable | None) -> None:
    """`defjvp` with jvprules that get the result of the primitive after the tangent."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        result = primitive.bind(*primals, **params)
        total: Any = Zero.like(result)
        for rule, tangent in zip(jvprules, tangents, strict=True):
            if rule is not None and type(tangent) is not Zero:
                total = add_tangents(total, rule(tangent, result, *primals, **params))
        return result, total

    primitive_jvps[primitive] = jvp


def _linear_jvp(primitive: Primitive) -> Callable:
    def jvp(primals: Any, tangents: Any, **params: Any) -> tuple[Any, Any]:
        result = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            if primitive.multiple_results:
                return result, [Zero.like(y) for y in result]
            return result, Zero.like(result)
        return result, primitive.bind(*map(instantiate_zeros, tangents), **params)

    return jvp


def deflinear(primitive: Primitive, transpose_rule: Callable) -> None:
    """Declares a primitive linear in all operands.

    Args:
        primitive: the primitive.
        transpose_rule: from the cotangent and the parameters to a list of cotangents.
    """
    deflinear2(primitive, lambda cotangent, *operands, **params: transpose_rule(cotangent, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable) -> None:
    """`deflinear` with a rule that gets the operands after the cotangent."""

    def transpose(cotangent: Any, *operands: Any, **params: Any) -> Any:
        if type(cotangent) is Zero:
            return [Zero(x.aval) if is_undefined_primal(x) else None for x in operands]
        return transpose_rule(cotangent, *operands, **params)

    primitive_jvps[primitive] = _linear_jvp(primitive)
    primitive_transposes[primitive] = transpose


def defbilinear(prim: Primitive, lhs_rule: Callable, rhs_rule: Callable) -> None:
    """Declares a primitive of two operands linear in each of them.

    Args:
        prim: the primitive.
        lhs_rule: from the cotangent, both operands and the parameters to the cotangent of the first operand.
        rhs_rule: the same for the second.
    """

    def transpose(cotangent: Any, x: Any, y: Any, **params: Any) -> list[Any]:
        if is_undefined_primal(x):
            return [lhs_rule(cotangent, x, y, **params), None]
        return [None, rhs_rule(cotangent, x, y, **params)]

    defjvp(
        prim,
        lambda tangent, x, y, **params: prim.bind(tangent, y, **params),
        lambda tangent, x, y, **params: prim.bind(x, tangent, **params),
    )
    primitive_transposes[prim] = transpose
