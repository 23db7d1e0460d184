"""`linear_call`: a linear function together with its transpose, both written by the user.

The call is a primitive with the two programs, which take the same residuals first. Transposing it exchanges them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.control_flow.bodies import stage_tree, with_result_types
from purax.core import source
from purax.core.avals import Zero, tangent_aval
from purax.core.jaxpr import ClosedJaxpr, Var, eval_jaxpr
from purax.core.primitive import LinearOperand, Primitive
from purax.execution import compiled_program
from purax.interpreters.arguments import name_of, to_array
from purax.interpreters.extended_dtypes import with_literals
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.program_rules import with_tangents
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.elementwise.elementwise import add
from purax.primitives.shape.broadcasting import batch_size, batch_to_front, materialize
from purax.tree.registry import tree_flatten, tree_unflatten


class LinearCall(Primitive):
    """Calls `jaxpr`, linear in the operands after the first `num_residuals`, whose transpose is `transposed`.

    The programs have no constants. `transposed` takes the residuals and cotangents of the results, and gives cotangents
    of the linear operands.
    """

    name = "linear_call"
    multiple_results = True
    runs_itself = True
    not_lowered = ("transposed", "num_residuals")

    def infer(self, *avals, jaxpr, transposed, num_residuals):
        return jaxpr.out_avals

    def run(self, *operands, jaxpr, transposed, num_residuals):
        return compiled_program.run(jaxpr, operands)

    def lower(self, builder, *operands, jaxpr, transposed, num_residuals):
        return jaxpr_to_stablehlo.lower_call(builder, jaxpr, operands, jaxpr.jaxpr.name or self.name)

    def jvp(self, primals, tangents, *, jaxpr, transposed, num_residuals):
        params = {"jaxpr": jaxpr, "transposed": transposed, "num_residuals": num_residuals}
        moving = [type(t) is not Zero for t in tangents]
        out = self.bind(*primals, **params)
        total = [Zero.like(y) for y in out]
        if any(moving[num_residuals:]):
            linear = [materialize(t) for t in tangents[num_residuals:]]
            total = self.bind(*primals[:num_residuals], *linear, **params)
        if any(moving[:num_residuals]):  # the function need not be linear in these
            flags = [*moving[:num_residuals], *[False] * (len(primals) - num_residuals)]
            derivative, out_moving = jvp_jaxpr(jaxpr, flags)
            given = [t for t, flag in zip(tangents, flags, strict=True) if flag]
            results = eval_jaxpr(derivative.jaxpr, derivative.consts, *primals, *given)
            _, more = with_tangents(results[: len(out)], results[len(out) :], out_moving)
            total = [
                x if type(y) is Zero else y if type(x) is Zero else add(x, y)
                for x, y in zip(total, more, strict=True)
            ]
        return out, total

    def transpose(self, cotangents, *operands, jaxpr, transposed, num_residuals):
        residuals = operands[:num_residuals]
        if any(type(x) is LinearOperand for x in residuals):
            raise source.located(
                NotImplementedError,
                f"linear_call: `{jaxpr.jaxpr.name}` is not linear in its residuals, and is transposed by them",
            )
        results = self.bind(
            *residuals,
            *map(materialize, cotangents),
            jaxpr=transposed,
            transposed=jaxpr,
            num_residuals=num_residuals,
        )
        flags = [type(x) is LinearOperand for x in operands[num_residuals:]]
        return [None] * num_residuals + [y if flag else None for y, flag in zip(results, flags, strict=True)]

    def batch(self, operands, batch_axes, *, jaxpr, transposed, num_residuals):
        """All linear operands get a batch axis, so that each example has a cotangent of its own."""
        size = batch_size(operands, batch_axes)
        moved = [
            x if axis is None and i < num_residuals else batch_to_front(x, axis, size)
            for i, (x, axis) in enumerate(zip(operands, batch_axes, strict=True))
        ]
        kept = [axis is not None for axis in batch_axes[:num_residuals]]

        def over_batch(closed: ClosedJaxpr) -> ClosedJaxpr:
            flags = [*kept, *[True] * (len(closed.in_avals) - num_residuals)]
            made, _ = batch_jaxpr(closed, flags, size, force=[True] * len(closed.out_avals))
            return ClosedJaxpr(with_literals(made))

        results = self.bind(
            *moved, jaxpr=over_batch(jaxpr), transposed=over_batch(transposed), num_residuals=num_residuals
        )
        return results, [0] * len(results)

    def effects(self, *, jaxpr, **params):
        return jaxpr.effects


linear_call_p = LinearCall()


def linear_call(
    fun: Callable[[Any, Any], Any],
    fun_transpose: Callable[[Any, Any], Any],
    residual_args: Any,
    linear_args: Any,
) -> Any:
    """Calls a linear function whose transpose is given.

    Args:
        fun: of the residuals and the linear arguments, in which it is linear.
        fun_transpose: of the residuals and cotangents of the results; gives cotangents of the linear arguments.
        residual_args: an array, or a tree of them, in which `fun` need not be linear.
        linear_args: the same, for the linear arguments.

    Returns:
        fun(residual_args, linear_args). Its transpose is a `linear_call` of `fun_transpose`, whose transpose is `fun`.

    >>> import purax as px
    >>> def halve(x):  # with a derivative that is ten times as large
    ...     return px.custom_derivatives.linear_call(lambda r, x: x / r, lambda r, c: 10 * c / r, 2.0, x)
    >>> float(halve(3.0)), float(px.grad(halve)(3.0))
    (1.5, 5.0)
    """
    residuals, residual_tree = tree_flatten(residual_args)
    values, tree = tree_flatten(linear_args)
    residuals, values = [to_array(x) for x in residuals], [to_array(x) for x in values]
    known = [x.aval for x in residuals]
    both = tree_flatten((residual_args, linear_args))[1]
    forward, out_tree = stage_tree(fun, both, [*known, *(x.aval for x in values)], "linear_call: fun")
    cotangents = [tangent_aval(aval) for aval in forward.out_avals]
    shapes = (
        tree_unflatten(residual_tree, range(len(known))),
        tree_unflatten(out_tree, range(len(cotangents))),
    )
    backward, found_tree = stage_tree(
        fun_transpose, tree_flatten(shapes)[1], [*known, *cotangents], "linear_call: fun_transpose"
    )
    if found_tree != tree:
        raise source.located(
            TypeError,
            f"linear_call: `{name_of(fun_transpose)}` must return cotangents of the linear arguments, of structure "
            f"{tree}; it returned {found_tree}",
        )
    wanted = [tangent_aval(x.aval) for x in values]
    for given, aval in zip(backward.out_avals, wanted, strict=True):
        if given.shape != aval.shape:
            raise source.located(
                ValueError,
                f"linear_call: `{name_of(fun_transpose)}` returned {given.str_short()} as the cotangent of a "
                f"linear argument of type {aval.str_short()}",
            )
    backward = with_result_types(backward, wanted)
    first, second = forward.jaxpr, backward.jaxpr
    others = [[Var(v.aval) for v in jaxpr.constvars] for jaxpr in (first, second)]
    results = linear_call_p.bind(
        *forward.consts,
        *backward.consts,
        *residuals,
        *values,
        jaxpr=ClosedJaxpr(first.replace(constvars=[], invars=[*first.constvars, *others[1], *first.invars])),
        transposed=ClosedJaxpr(
            second.replace(constvars=[], invars=[*others[0], *second.constvars, *second.invars])
        ),
        num_residuals=len(forward.consts) + len(backward.consts) + len(residuals),
    )
    return tree_unflatten(out_tree, results)
