"""`checkpoint_policies.budget(bytes)`: keeps what saves the most work in the backward pass, within so many bytes.

Which values to keep is a minimum cut of the program (`interpreters.minimum_cut`): storing a value costs its bytes,
computing an equation again its work, at a price λ per operation. The largest λ whose cut fits into the budget is found
by bisection, and what is left goes to the values that save the most work for their bytes. Arguments are there anyway
and cost nothing. The result of a test for equality is kept where anything is: computed again, rounded otherwise, no
element might equal the maximum any more.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from purax.core import effects
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, inner_jaxprs
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import aval_of_argument, name_of
from purax.interpreters.linearize import linearize_jaxpr
from purax.interpreters.minimum_cut import minimum_cut
from purax.interpreters.simplify import hoist_constants, remove_dead_code, used_inputs
from purax.interpreters.staging import stage
from purax.tree.registry import tree_flatten, tree_unflatten

_STEPS = 20  # of the bisection


class Kept(NamedTuple):
    """A value that the backward pass needs, in a report.

    Attributes:
        type: its type, as `f32[3,4]`.
        bytes: what keeping it costs.
        is_kept: whether it is kept; else it is computed again.
        operation: what made it.
        line: where in the user's code.
    """

    type: str
    bytes: int
    is_kept: bool
    operation: str
    line: str


class BudgetReport:
    """What a budget chose for a function; `print` shows it as a table.

    Attributes:
        rows: the values, in the order in which the function computes them.
        kept_bytes: what the kept ones take.
        all_bytes: what reverse differentiation without `checkpoint` would keep of them.
        repeated_work: which part of the forward pass's work is done again.
    """

    def __init__(self, rows: list[Kept], all_bytes: int, repeated_work: float):
        self.rows, self.all_bytes, self.repeated_work = rows, all_bytes, repeated_work
        self.kept_bytes = sum(row.bytes for row in rows if row.is_kept)

    def __str__(self) -> str:
        lines = [f"{'value':<16} {'bytes':>12}  {'':<14} operation, line"]
        for row in self.rows:
            choice = "kept" if row.is_kept else "computed again"
            lines.append(f"{row.type:<16} {row.bytes:>12,}  {choice:<14} {row.operation}, {row.line}")
        lines.append(
            f"kept: {self.kept_bytes:,} bytes, of {self.all_bytes:,} without checkpoint; "
            f"done again: {self.repeated_work:.0%} of the forward pass"
        )
        return "\n".join(lines)

    __repr__ = __str__


class Budget:
    """A policy for `checkpoint` that looks at the whole program; see `checkpoint_policies.budget`."""

    def __init__(self, limit: int):
        try:
            self.limit = operator.index(limit)
        except TypeError:
            raise located(TypeError, f"budget: bytes must be an integer, got {shown(limit)}") from None
        if self.limit < 0:
            raise located(ValueError, f"budget: bytes must not be negative, got {limit}")

    def __eq__(self, other: object) -> bool:
        return type(other) is Budget and self.limit == other.limit

    def __hash__(self) -> int:
        return hash((Budget, self.limit))

    def __repr__(self) -> str:
        return f"checkpoint_policies.budget({self.limit})"

    def __call__(self, primitive: Any, *avals: Any, **params: Any) -> bool:
        """Asked about a single operation, as other policies are, it keeps nothing: it decides about whole programs."""
        return False

    def choose(self, jaxpr: Jaxpr, wanted: Sequence[Var]) -> list[Var]:
        """The values of a program to keep, such that those `wanted` follow from them and the arguments."""
        defined = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
        work = {id(eqn): _work(eqn) for eqn in jaxpr.eqns}
        must = {id(eqn) for eqn in jaxpr.eqns if _is_kept_always(eqn)}
        place = {v: n for n, v in enumerate(defined)}

        def store(v: Var) -> float:
            return _bytes(v) if v in defined else 0

        def cut(price: float) -> tuple[list[Var], set[Var]]:
            def repeat(eqn: JaxprEqn) -> float:
                return math.inf if id(eqn) in must else price * work[id(eqn)]

            stored, again = minimum_cut(wanted, defined, store, repeat)
            return sorted((v for v in stored if v in defined), key=place.__getitem__), again

        def size(values: Sequence[Var]) -> int:
            return sum(map(_bytes, values))

        low, high = 1 / (1 + sum(work.values())), 1.0 + sum(map(_bytes, defined))
        stored, again = cut(high)
        if size(stored) > self.limit:
            stored, again = cut(0.0)
            if size(stored) > self.limit:
                return []  # as without a budget: all is done again, consistently
            for _ in range(_STEPS):
                price = math.sqrt(low * high)
                found = cut(price)
                if size(found[0]) <= self.limit:
                    (stored, again), low = found, price
                else:
                    high = price
        left = self.limit - size(stored)
        for v in sorted(again, key=lambda v: (-work[id(defined[v])] / (1 + _bytes(v)), place[v])):
            if 0 < _bytes(v) <= left:
                stored.append(v)
                left -= _bytes(v)
        return stored

    def report(self, fun: Callable[..., Any]) -> Callable[..., BudgetReport]:
        """What the budget keeps of a function: `budget.report(f)(*args)`, with arguments or their types.

        >>> import purax as px, purax.numpy as jnp
        >>> f = lambda x: jnp.sum(jnp.sin(jnp.cos(x)))
        >>> report = px.checkpoint_policies.budget(16).report(f)(jnp.ones(4))
        >>> report.kept_bytes, report.all_bytes
        (16, 32)
        """

        def reported(*args: Any, **kwargs: Any) -> BudgetReport:
            leaves, tree = tree_flatten((args, kwargs))

            def flat(*xs: Any) -> Any:
                new_args, new_kwargs = tree_unflatten(tree, xs)
                return tree_flatten(fun(*new_args, **new_kwargs))[0]

            closed = hoist_constants(stage(flat, [aval_of_argument(x) for x in leaves], name_of(fun)))
            constants = len(closed.jaxpr.invars) - len(leaves)
            moving = [False] * constants + [True] * len(leaves)
            primal, linear, out_moving, _ = linearize_jaxpr(closed, moving)
            wanted = needed_residuals(primal, linear, len(out_moving))
            kept = self.choose(primal.jaxpr, wanted)
            return _report(primal.jaxpr, wanted, kept)

        return reported


def needed_residuals(primal: ClosedJaxpr, linear: ClosedJaxpr, results: int) -> list[Var]:
    """The values of a primal program that its linear program really takes, each once."""
    residuals = primal.jaxpr.outvars[results:]
    used = used_inputs(remove_dead_code(linear.jaxpr))[: len(residuals)]
    found = [v for v, is_used in zip(residuals, used, strict=True) if is_used and type(v) is Var]
    return list(dict.fromkeys(found))


def _report(jaxpr: Jaxpr, wanted: Sequence[Var], kept: Sequence[Var]) -> BudgetReport:
    chosen = set(kept)
    again: set[int] = set()
    defined = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    waiting = [v for v in wanted if v in defined]
    shown_values = {*waiting, *kept}
    while waiting:
        v = waiting.pop()
        eqn = defined.get(v)
        if v in chosen or eqn is None or id(eqn) in again:
            continue
        again.add(id(eqn))
        waiting += [atom for atom in eqn.invars if type(atom) is not Literal]
    rows = [
        Kept(v.aval.str_short(), _bytes(v), v in chosen, eqn.primitive.name, str(eqn.source))
        for v, eqn in defined.items()
        if v in shown_values
    ]
    total = sum(map(_work, jaxpr.eqns))
    repeated = sum(_work(eqn) for eqn in jaxpr.eqns if id(eqn) in again)
    return BudgetReport(rows, sum(_bytes(v) for v in wanted if v in defined), repeated / total if total else 0.0)


def _is_kept_always(eqn: JaxprEqn) -> bool:
    return effects.any_unrepeatable(eqn.effects) or eqn.primitive.tests_equality


def _bytes(v: Var) -> int:
    return v.aval.size * v.aval.dtype.itemsize


def _work(eqn: JaxprEqn) -> float:
    """About how many operations an equation takes, with what it reads and writes."""
    inner = list(inner_jaxprs(eqn.params))
    moved = sum(atom.aval.size for atom in (*eqn.invars, *eqn.outvars))
    if not inner:
        return moved + eqn.primitive.host_work(*[atom.aval for atom in eqn.invars], **eqn.params)
    steps = eqn.params.get("length")
    once = sum(_work(each) for closed in inner for each in closed.eqns)
    return moved + once * (steps if isinstance(steps, int) else 1)
