"""`custom_linear_solve` and `custom_root`: solutions of equations, differentiated by what they solve and not by how.

If A x = b then A dx = db − dA x, so the tangent of a solution is a solution for another right-hand side, and so is the
cotangent, with Aᵀ. If f(x) = 0 then f'(x) dx = −df, the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.api.autodiff import jvp, linear_transpose
from purax.control_flow.bodies import arrays_in, leaf_paths, stage_tree
from purax.control_flow.custom_jvp import custom_jvp
from purax.core import dtypes, source
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.primitive import LinearOperand, Primitive
from purax.interpreters.arguments import exact_array, name_of
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.elementwise import neg
from purax.primitives.shape.broadcasting import batch_size, batch_to_front, materialize, zeros
from purax.tree.registry import tree_flatten, tree_unflatten


class LinearSolve(Primitive):
    """The solution of A x = b.

    Params:
        programs: of A x, Aᵀ y, the solution of A x = b and that of Aᵀ y = c, each (its constants, vector) -> vector.
            The second and the fourth are None if no transpose is known. Solutions may be followed by further results.
        const_counts: how many constants each program has; the operands are the constants of all, and b.
    """

    name = "custom_linear_solve"
    multiple_results = True
    runs_itself = True

    def infer(self, *avals, programs, const_counts):
        return programs[2].out_avals

    def run(self, *operands, programs, const_counts):
        *groups, b = divide(operands, const_counts)
        results = eval_jaxpr(programs[2].jaxpr, (), *groups[2], *b)
        return [exact_array(y, aval) for y, aval in zip(results, programs[2].out_avals, strict=True)]

    def lower(self, builder, *operands, programs, const_counts):
        *groups, b = divide(operands, const_counts)
        return jaxpr_to_stablehlo.lower_body(builder, programs[2].jaxpr, [*groups[2], *b])

    def jvp(self, primals, tangents, *, programs, const_counts):
        params = dict(programs=programs, const_counts=const_counts)
        out = self.bind(*primals, **params)
        *groups, b = divide(primals, const_counts)
        consts_t, _, _, _, b_t = divide(tangents, const_counts)
        moving = [type(t) is not Zero for t in consts_t]
        if any(moving):
            # (dA) x, the tangent of A x for the solution x
            derivative, moved = jvp_jaxpr(programs[0], [*moving, *[False] * len(b)])
            given = [t for t in consts_t if type(t) is not Zero]
            results = eval_jaxpr(derivative.jaxpr, derivative.consts, *groups[0], *out[: len(b)], *given)
            products = iter(results[len(b) :])
            b_t = [minus(t, next(products)) if moves else t for t, moves in zip(b_t, moved, strict=True)]
        if all(type(t) is Zero for t in b_t):
            return out, [Zero.like(y) for y in out]
        solved = self.bind(*primals[: len(primals) - len(b)], *map(materialize, b_t), **params)
        return out, [*solved[: len(b)], *(Zero.like(y) for y in out[len(b) :])]

    def transpose(self, cotangents, *operands, programs, const_counts):
        *groups, b = divide(operands, const_counts)
        if programs[3] is None:
            raise source.located(
                TypeError,
                "custom_linear_solve: reverse differentiation needs `transpose_solve`, or `symmetric=True`",
            )
        if any(type(x) is LinearOperand for group in groups for x in group):
            raise source.located(
                TypeError,
                "custom_linear_solve is linear in b only; what its functions captured is not constant",
            )
        matvec, vecmat, solve, transpose_solve = groups
        results = self.bind(
            *vecmat,
            *matvec,
            *transpose_solve,
            *solve,
            *map(materialize, cotangents[: len(b)]),
            programs=tuple(programs[i] for i in (1, 0, 3, 2)),
            const_counts=tuple(const_counts[i] for i in (1, 0, 3, 2)),
        )
        return [*[None] * sum(const_counts), *results[: len(b)]]

    def batch(self, operands, batch_axes, *, programs, const_counts):
        size = batch_size(operands, batch_axes)
        *axes, _ = divide(batch_axes, const_counts)
        count = len(operands) - sum(const_counts)
        batched = tuple(
            program
            and hoist_constants(
                batch_jaxpr(
                    program,
                    [*(axis is not None for axis in group), *[True] * count],
                    size,
                    None,
                    [True] * len(program.out_avals),
                )[0]
            )
            for program, group in zip(programs, axes, strict=True)
        )
        moved = [
            x if axis is None and i < sum(const_counts) else batch_to_front(x, axis, size)
            for i, (x, axis) in enumerate(zip(operands, batch_axes, strict=True))
        ]
        results = self.bind(*moved, programs=batched, const_counts=const_counts)
        return results, [0] * len(results)

    def effects(self, *, programs, const_counts):
        return frozenset().union(*(program.effects for program in programs if program))


linear_solve_p = LinearSolve()


def divide(values: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """The constants of each program, and the rest."""
    groups, start = [], 0
    for count in counts:
        groups.append(list(values[start : start + count]))
        start += count
    return [*groups, list(values[start:])]


def minus(tangent: Any, product: Any) -> Any:
    return neg(product) if type(tangent) is Zero else sub(tangent, product)


def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable[[Callable, Any], Any],
    transpose_solve: Callable[[Callable, Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The solution of a linear equation, with derivatives that do not go through the solver.

    Args:
        matvec: the linear function A; derivatives are taken with respect to what it captured.
        b: the right-hand side, an array or a tree of arrays.
        solve: (A, b) -> x with A(x) = b; it need not be differentiable.
        transpose_solve: the same for the transpose of A. Reverse differentiation needs it.
        symmetric: whether A is its own transpose, so that `solve` serves for both.
        has_aux: whether `solve` returns a pair of the solution and something else.

    Returns:
        What `solve(matvec, b)` returns.

    >>> import purax as px, purax.numpy as jnp
    >>> def f(a, b):
    ...     return px.lax.custom_linear_solve(lambda x: a * x, b, lambda A, b: b / A(1.0), symmetric=True)
    >>> px.grad(f)(2.0, 3.0)
    Array(-0.75, dtype=float32, weak_type=True)
    """
    what = "custom_linear_solve"
    leaves, tree = tree_flatten(b)
    values = arrays_in(leaves, tree, f"{what}: b")
    avals = [x.aval for x in values]
    _, arguments = tree_flatten((b,))
    product = checked(matvec, arguments, avals, tree, f"{what}: matvec")
    if symmetric:
        vecmat = matvec
        transpose_solve = solve
    elif transpose_solve is not None:
        example = tree_unflatten(tree, values)

        def vecmat(y):
            return linear_transpose(matvec, example)(y)[0]

    aux_tree = None

    def solver(function: Callable, operator: Callable, name: str) -> ClosedJaxpr:
        nonlocal aux_tree

        def run(right):
            nonlocal aux_tree
            results = function(operator, right)
            if not has_aux:
                return results
            solution, aux = results
            if name == "solve":
                aux_tree = tree_flatten(aux)[1]
            return solution, tree_flatten(aux)[0]

        run.__name__ = name_of(function)
        return checked(run, arguments, avals, tree, f"{what}: {name}", has_aux)

    solution = solver(solve, matvec, "solve")
    transposed = transposed_solution = None
    if symmetric:
        transposed, transposed_solution = product, solution
    elif transpose_solve is not None:
        transposed = checked(vecmat, arguments, avals, tree, f"{what}: transpose of matvec")
        transposed_solution = solver(transpose_solve, vecmat, "transpose_solve")
    programs = (product, transposed, solution, transposed_solution)
    consts = [program.consts if program else [] for program in programs]
    results = linear_solve_p.bind(
        *(x for group in consts for x in group),
        *values,
        programs=tuple(program and hoist_constants(program) for program in programs),
        const_counts=tuple(map(len, consts)),
    )
    solved = tree_unflatten(tree, results[: len(values)])
    return (solved, tree_unflatten(aux_tree, results[len(values) :])) if has_aux else solved


def checked(
    function: Callable,
    arguments: Any,
    avals: Sequence[ShapedArray],
    tree: Any,
    what: str,
    has_aux: bool = False,
) -> ClosedJaxpr:
    """A function of vectors as a program; its result must be a vector of the same structure and types."""
    closed, out_tree = stage_tree(function, arguments, avals, what)
    found = out_tree.children()[0] if has_aux else out_tree
    if found != tree:
        raise source.located(
            TypeError, f"{what} must return the structure of its argument, {tree}, but returned {found}"
        )
    for path, given, wanted in zip(leaf_paths(tree), closed.out_avals, avals, strict=False):
        if (given.shape, given.dtype) != (wanted.shape, wanted.dtype):
            raise source.located(
                TypeError,
                f"{what} must return the types of its argument, but result{path} is {given.str_short()} and not "
                f"{wanted.str_short()}",
            )
    return closed


def custom_root(
    f: Callable,
    initial_guess: Any,
    solve: Callable[[Callable, Any], Any],
    tangent_solve: Callable[[Callable, Any], Any],
    has_aux: bool = False,
) -> Any:
    """A root of a function, with derivatives by the implicit function theorem.

    Args:
        f: the function, of an array or a tree of arrays; derivatives are taken with respect to what it captured.
        initial_guess: where to start.
        solve: (f, initial_guess) -> x with f(x) = 0; it need not be differentiable.
        tangent_solve: (g, y) -> x with g(x) = y for a linear function g; for scalars `lambda g, y: y / g(1.0)`.
        has_aux: whether `solve` returns a pair of the root and something else.

    Returns:
        What `solve(f, initial_guess)` returns.

    >>> import purax as px
    >>> def square_root(a):
    ...     newton = lambda f, x: px.lax.fori_loop(0, 20, lambda _, x: 0.5 * (x + a / x), x)
    ...     return px.lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> px.grad(square_root)(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    what = "custom_root"
    leaves, tree = tree_flatten(initial_guess)
    guess = arrays_in(leaves, tree, f"{what}: initial_guess")
    avals = [x.aval for x in guess]
    _, arguments = tree_flatten((initial_guess,))
    function = checked(f, arguments, avals, tree, f"{what}: f")
    aux_tree = None

    def run(start):
        nonlocal aux_tree
        results = solve(f, start)
        if not has_aux:
            return results
        aux, aux_tree = tree_flatten(results[1])
        return results[0], aux

    run.__name__ = name_of(solve)
    solver = checked(run, arguments, avals, tree, f"{what}: solve", has_aux)
    count = len(guess)
    residual = hoist_constants(function)
    solution = hoist_constants(solver)

    def apply(consts, xs):
        return eval_jaxpr(residual.jaxpr, (), *consts, *xs)

    @custom_jvp
    def root(consts, solver_consts, start):
        return list(eval_jaxpr(solution.jaxpr, (), *solver_consts, *start))

    @root.defjvp
    def rule(primals, tangents):
        consts = primals[0]
        out = root(*primals)
        xs = out[:count]
        _, moved = jvp(lambda captured: apply(captured, xs), (consts,), (tangents[0],))

        def linear(direction):
            given = tree_flatten(direction)[0]
            return tree_unflatten(tree, jvp(lambda *at: apply(consts, at), tuple(xs), tuple(given))[1])

        right = tree_unflatten(tree, [neg(t) for t in moved])
        solved = custom_linear_solve(linear, right, tangent_solve, tangent_solve)
        return out, [*tree_flatten(solved)[0], *map(zero_tangent, out[count:])]

    results = root(list(function.consts), list(solver.consts), guess)
    found = tree_unflatten(tree, results[:count])
    return (found, tree_unflatten(aux_tree, results[count:])) if has_aux else found


def zero_tangent(x: Any) -> Any:
    """The tangent zero of a result, as a rule gives it."""
    aval = aval_of(x)
    return zeros(aval) if dtypes.is_inexact(aval.dtype) else np.zeros(aval.shape, dtypes.float0)
