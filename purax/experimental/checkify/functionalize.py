"""`checkify`: a function with checks as a function that returns its first error.

The function is traced; then the number of the first check that failed, and the values that its message shows, are
threaded through its program (`lowering.threaded_effects`). A first pass finds out which checks there are, a second
one, over the same operations in the same order, carries their values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from purax import numpy as jnp
from purax.control_flow.flat_call import CustomCall
from purax.core import source
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, inner_jaxprs
from purax.core.limits import finite, shallow
from purax.errors import shown
from purax.experimental.checkify.automatic import findings
from purax.experimental.checkify.check import check_p
from purax.experimental.checkify.errors import (
    Check,
    Error,
    ErrorCategory,
    FailedCheckError,
    Ledger,
    user_checks,
)
from purax.interpreters.arguments import aval_of_argument, name_of, require_function, to_array
from purax.interpreters.staging import checked_results, stage
from purax.lax.collectives import axis_index, axis_size, pmin, psum
from purax.lowering.threaded_effects import Threader
from purax.tree.registry import tree_flatten, tree_unflatten

P = ParamSpec("P")
R = TypeVar("R")
_CODE = ShapedArray((), np.dtype(np.int32))
_BY_NAME = tree_flatten(((), {"axis": 0, "index": 0, "size": 0}))[1]
_NOTHING = tree_flatten(((), {}))[1]


class FirstError(Threader):
    """Threads the first error: its number, and the values of all checks.

    Arguments:
        errors: what to look for.
        slots: the types of the values of all checks, from a first pass; None in the first pass, which collects them.
    """

    def __init__(self, errors: frozenset, slots: Sequence[ShapedArray] | None = None):
        self.errors = errors
        self.ledger = Ledger()
        self.found: list[ShapedArray] = []
        self.collects = slots is None
        self.avals = [_CODE, *(slots or ())]
        self.programs: dict[int, tuple[ClosedJaxpr, ClosedJaxpr]] = {}

    def start(self) -> list[Any]:
        return [np.zeros(aval.shape, aval.dtype) for aval in self.avals]

    def concerns(self, closed):
        return bool(self.errors - user_checks) or _has_checks(closed)

    def program(self, closed):
        # Kept here, not with the program, which may be that of a `jit` function and live on.
        if id(closed) not in self.programs:
            count = len(self.avals)

            def run(*args):
                state, results = self.run(closed, args[:count], args[count:])
                return [*state, *results]

            made = stage(run, [*self.avals, *closed.in_avals], closed.jaxpr.name)
            self.programs[id(closed)] = (closed, made)
        return self.programs[id(closed)][1]

    def apply(self, state, primitive, operands, params):
        if primitive is check_p:
            code, *values = operands
            if FailedCheckError in self.errors:
                state = self.note(state, code, params["checks"], values)
            return state, []
        inner = list(inner_jaxprs(params))
        if inner and isinstance(primitive, CustomCall) and not any(map(_has_checks, inner)):
            inner = []  # a function with rules of its own keeps them; its results are looked at
        if inner and any(self.concerns(closed) for closed in inner):
            return primitive.thread(self, state, operands, **params)
        results = primitive.bind(*operands, **params)
        outs = results if primitive.multiple_results else (results,)
        for finding in findings(primitive, operands, params, outs, self.errors):
            tree = _BY_NAME if finding.values else _NOTHING
            location = source.user_location()
            check = Check(finding.category, finding.message, tree, len(finding.values), location)
            code = jnp.where(finding.failed, np.ones((), np.int32), np.zeros((), np.int32))
            state = self.note(state, code, (check,), finding.values)
        return state, results

    def merged(self, state, axis_names):
        """The error of the first device that has one."""
        here = axis_index(axis_names)
        first = pmin(jnp.where(jnp.equal(state[0], 0), np.int32(axis_size(axis_names)), here), axis_names)
        is_mine = jnp.equal(first, here)
        return [
            psum(jnp.where(is_mine, x, jnp.zeros_like(x)), axis_names).astype(aval.dtype)
            for x, aval in zip(state, self.avals, strict=True)
        ]

    def note(self, state: list[Any], code: Any, checks: Sequence[Check], values: Sequence[Any]) -> list[Any]:
        """The state after checks of which number `code` failed (0 for none)."""
        base, first = len(self.ledger.checks), 1 + self.ledger.size
        for check in checks:
            self.ledger.add(check)
        self.found.extend(aval_of(x).strip_weak_type() for x in values)
        is_first = jnp.logical_and(jnp.equal(state[0], 0), jnp.not_equal(code, 0))
        number = jnp.where(is_first, jnp.add(code, np.array(base, np.int32)), state[0])
        if self.collects:
            return [number]
        kept = list(state)
        kept[0] = number
        for i, x in enumerate(values, first):
            kept[i] = jnp.where(is_first, x, state[i]).astype(self.avals[i].dtype)
        return kept


def _has_checks(closed: ClosedJaxpr) -> bool:
    return any(effect.name == "Check" for effect in closed.effects)


def checkify(
    f: Callable[P, R], errors: frozenset[type[ErrorCategory]] = user_checks
) -> Callable[P, tuple[Error, R]]:
    """A function that returns its first error beside its result, instead of raising it.

    Args:
        f: a function of arrays, with calls of `checkify.check` or without.
        errors: what to look for: `user_checks` (calls of `check`), `nan_checks`, `div_checks`, `index_checks`,
            their union `automatic_checks`, or `all_checks`; sets can be joined with `|`.

    Returns:
        A function with the arguments of `f` that returns (error, result) and can be transformed further: it has no
        effects.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental import checkify
    >>> f = checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks)
    >>> error, y = px.jit(f)(jnp.arange(3), 5)
    >>> print(error.get())  # doctest: +ELLIPSIS
    out-of-bounds indexing for array of shape (3,): index 5 is out of bounds for axis 0 with size 3
      at ...
    """
    require_function(f, "checkify")
    wanted = frozenset(shallow(tuple(finite(errors))))
    unknown = [x for x in wanted if not (isinstance(x, type) and issubclass(x, ErrorCategory))]
    if unknown:
        raise TypeError(f"checkify: errors is a set such as checkify.all_checks, got {shown(errors)}")
    name = name_of(f)

    @functools.wraps(f)
    def checked(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, R]:
        leaves, tree = tree_flatten((args, kwargs))
        out_tree = None

        def flat(*xs):
            nonlocal out_tree
            new_args, new_kwargs = tree_unflatten(tree, xs)
            results = f(*new_args, **new_kwargs)
            out, out_tree = tree_flatten(results)
            return checked_results(out, results, name)

        avals = [aval_of_argument(x) for x in leaves]
        closed = stage(flat, avals, name)
        first = FirstError(wanted)
        stage(lambda *xs: first.run(closed, first.start(), xs)[0], avals, name)
        second = FirstError(wanted, first.found)
        (code, *values), results = second.run(closed, second.start(), [to_array(x) for x in leaves])
        error = Error(to_array(code), [to_array(x) for x in values], second.ledger)
        return error, tree_unflatten(out_tree, [to_array(y) for y in results])

    return checked
