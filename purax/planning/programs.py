"""Programs inside of programs: how shardings enter calls, loops and branches, and what these cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax.control_flow.branches import Cond
from purax.control_flow.flat_call import CustomCall
from purax.control_flow.linear_solve import LinearSolve
from purax.control_flow.scan import Scan, divide
from purax.control_flow.while_loop import While
from purax.control_flow.while_loop import divide as divide_while
from purax.core.jaxpr import ClosedJaxpr, JaxprEqn, inner_jaxprs
from purax.planning.costs import Costs, Layout, Spec
from purax.planning.operations import as_spec
from purax.sharding.shard_map import ShardMap

_ROUNDS = 4


def call(walker: Any, eqn: JaxprEqn, specs: Sequence[Spec], active: Sequence[bool], wanted: Sequence[Any]) -> Any:
    """Walks over the programs of an operation.

    Arguments:
        walker: walks over one.
        eqn: the operation.
        specs: how its operands are sharded.
        active: which of them depend on the batch.
        wanted: how its results shall be sharded, or None.
    """
    for kind, rule in _rules.items():
        if isinstance(eqn.primitive, kind):
            return rule(walker, eqn, list(specs), list(active), list(wanted))
    return _once(walker, eqn, list(specs), list(active), list(wanted))


def _program(eqn: JaxprEqn) -> ClosedJaxpr:
    return next(iter(inner_jaxprs(eqn.params)))


def _once(walker: Any, eqn: JaxprEqn, specs: list, active: list, wanted: list) -> Any:
    closed = _program(eqn)
    if len(closed.in_avals) != len(specs) or len(closed.out_avals) != len(wanted):
        return _unknown(walker, eqn, specs, wanted)
    return walker.walk(closed, specs, wanted, active, [False] * len(specs))


def _unknown(walker: Any, eqn: JaxprEqn, specs: list, wanted: list) -> Any:
    """An operation whose programs are applied in a way that nothing here knows: it gets whole arrays."""
    from_whole = [((),) * len(spec) for spec in specs]
    outs = [((),) * len(v.aval.shape) for v in eqn.outvars]
    return walker.result(from_whole, outs, Costs())


def _scan(walker: Any, eqn: JaxprEqn, specs: list, active: list, wanted: list) -> Any:
    params = eqn.params
    body, length = params["jaxpr"], params["length"]
    consts, carry, slices = divide(specs, params["num_consts"], params["num_carry"])
    stacked = [spec[1:] for spec in slices]
    count = len(carry)
    flags = _active_carry(body, active, params["num_consts"], count)
    rows = [None if want is None else want[1:] for want in wanted[count:]]
    carry = [spec if any(spec) or want is None else want for spec, want in zip(carry, wanted, strict=False)]
    done = _settle(walker, body, consts, carry, stacked, rows, flags, params["num_consts"])
    costs = Costs()
    costs.add(done.costs, length)
    inner_consts, inner_carry, inner_slices = divide(done.in_specs, params["num_consts"], count)
    # The axis that steps go along is not cut: all devices do the same step.
    ins = [*inner_consts, *inner_carry, *(((), *spec) for spec in inner_slices)]
    outs = [*done.out_specs[:count], *(((), *spec) for spec in done.out_specs[count:])]
    return walker.result(ins, outs, costs, *_stacked_peak(walker, eqn, done, ins, outs))


def _stacked_peak(walker: Any, eqn: JaxprEqn, done: Any, ins: list, outs: list) -> tuple:
    """Stacked operands and results are there as a whole, and a step of them besides."""
    whole: float = sum(walker.bytes(v.aval, spec) for v, spec in zip(eqn.invars, ins, strict=True))
    whole += sum(walker.bytes(v.aval, spec) for v, spec in zip(eqn.outvars, outs, strict=True))
    body = eqn.params["jaxpr"]
    carried = eqn.params["num_consts"] + eqn.params["num_carry"]
    shared = sum(
        walker.bytes(aval, spec)
        for aval, spec in zip(body.in_avals[:carried], done.in_specs[:carried], strict=True)
    )
    # Constants and carry of a step are those of the operation; slices and results of a step are copies.
    return whole + max(done.peak - shared, 0.0), done.peak_at, done.residents


def _active_carry(body: ClosedJaxpr, active: list, num_consts: int, count: int) -> list[bool]:
    """Which arguments of a step depend on the batch, be it through earlier steps."""
    flags = list(active)
    if any(flags):
        for i in range(num_consts, num_consts + count):
            flags[i] = True
    return flags


def _settle(
    walker: Any, body: ClosedJaxpr, consts: list, carry: list, rest: list, rows: list, flags: list, first: int
) -> Any:
    """Walks over a step until its carry comes out as it went in: cut where one step has cut what nobody had."""
    count = len(carry)
    freed = [False] * len(flags)
    for _ in range(_ROUNDS):
        done = walker.walk(body, [*consts, *carry, *rest], [*[None] * count, *rows], flags, freed)
        after = [
            new if not any(old) else old for old, new in zip(carry, done.out_specs[:count], strict=True)
        ]
        used = done.in_specs[first : first + count]
        after = [new if any(new) else use for new, use in zip(after, used, strict=True)]
        if after == carry:
            break
        carry = after
    return walker.walk(body, [*consts, *carry, *rest], [*carry, *rows], flags, freed)


def _while(walker: Any, eqn: JaxprEqn, specs: list, active: list, wanted: list) -> Any:
    params = eqn.params
    _, consts, carry = divide_while(specs, params["cond_nconsts"], params["body_nconsts"])
    body = params["body_jaxpr"]
    flags = [any(active)] * (len(consts) + len(carry))
    done = _settle(walker, body, consts, carry, [], [], flags, len(consts))
    costs = Costs()
    costs.add(done.costs)
    costs.unknown_loops.append(eqn.source)
    ins = [*specs[: params["cond_nconsts"]], *done.in_specs]
    return walker.result(ins, done.out_specs, costs, done.peak, done.peak_at, done.residents)


def _cond(walker: Any, eqn: JaxprEqn, specs: list, active: list, wanted: list) -> Any:
    """The branch that takes longest; all give their results as the first one does."""
    branches = eqn.params["branches"]
    flags, freed = active[1:], [False] * (len(specs) - 1)
    first = walker.walk(branches[0], specs[1:], wanted, flags, freed)
    all_done = [walker.walk(one, specs[1:], first.out_specs, flags, freed) for one in branches]
    longest = max(all_done, key=lambda one: one.costs.on_chip)
    fullest = max(all_done, key=lambda one: one.peak)
    ins = [specs[0], *longest.in_specs]
    return walker.result(ins, first.out_specs, longest.costs, fullest.peak, fullest.peak_at, fullest.residents)


def _custom(walker: Any, eqn: JaxprEqn, specs: list, active: list, wanted: list) -> Any:
    return walker.walk(eqn.params["call"], specs, wanted, active, [False] * len(specs))


def _mapped(walker: Any, eqn: JaxprEqn, specs: list, active: list, wanted: list) -> Any:
    """A program on parts says itself how its operands are cut; inside, its arrays are those of one device."""
    params, layout = eqn.params, walker.layout
    ins = [as_spec(s, len(v.aval.shape), layout) for s, v in zip(params["in_specs"], eqn.invars, strict=True)]
    outs = [as_spec(s, len(v.aval.shape), layout) for s, v in zip(params["out_specs"], eqn.outvars, strict=True)]
    body = params["jaxpr"]
    inside = type(walker)(Layout(layout.sizes, layout.device), walker.links, walker.lives)
    whole = [((),) * len(aval.shape) for aval in body.in_avals]
    done = inside.walk(body, whole, [None] * len(outs), active, [False] * len(whole))
    return walker.result(ins, outs, done.costs, done.peak, done.peak_at, done.residents)


_rules: dict[Any, Callable[..., Any]] = {
    Scan: _scan,
    While: _while,
    Cond: _cond,
    CustomCall: _custom,
    ShardMap: _mapped,
    LinearSolve: lambda walker, eqn, specs, active, wanted: _unknown(walker, eqn, specs, wanted),
}
