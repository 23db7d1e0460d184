"""Which axes of operands and results of an operation are the same axis: what can be cut together without communication.

A `Link` is such an axis. It may end in the result, or be summed (or maximized) over; then every device has a part of
the sum. An axis of an operand that is in no link must be there as a whole. The links of a product and of operations
with indices follow from their dimension numbers. All others are asked: the rule `lay_out`, which says how the result
of an operation is sharded, is tried with one axis of one operand cut at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from purax.core.avals import ShapedArray
from purax.core.memo import Memo
from purax.core.primitive import Primitive
from purax.core.specs import AbstractMesh, AbstractSharding, AxisType, PartitionSpec, names_of
from purax.errors import ShardingTypeError
from purax.primitives.products.contraction import dot_general_p
from purax.primitives.shape.gather_scatter import Gather, ScatterFamily

_PROBE = "probe"
_links: Memo[tuple, Any] = Memo(20_000)


@dataclass(frozen=True)
class Link:
    """One axis of an operation.

    Attributes:
        operands: which axis it is of which operands: pairs of numbers.
        results: which axis it is of which results; none if it is summed over.
    """

    operands: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, int], ...]

    @property
    def is_summed(self) -> bool:
        """Whether the results are parts of a sum."""
        return not self.results


def links_of(
    primitive: Primitive,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    params: dict[str, Any],
    parts: int,
) -> tuple[Link, ...]:
    """The links of an operation, for axes that are cut into `parts`.

    >>> import numpy as np
    >>> from purax.core.avals import ShapedArray
    >>> from purax.primitives.products.contraction import dot_general_p
    >>> x, y = ShapedArray((4, 6), np.dtype("float32")), ShapedArray((6,), np.dtype("float32"))
    >>> for link in links_of(dot_general_p, [x, y], [y], {"dimension_numbers": (((1,), (0,)), ((), ()))}, 2):
    ...     print(link.operands, link.results)
    ((0, 0),) ((0, 0),)
    ((0, 1), (1, 0)) ()
    """
    key: Any = (primitive, tuple(avals), tuple(outs), parts, *sorted(params.items(), key=lambda p: p[0]))
    try:
        found = _links.get(key)
    except TypeError:  # a parameter without a hash
        key, found = None, None
    if found is None:
        found = tuple(_find(primitive, avals, outs, params, parts))
        if key is not None:
            _links[key] = found
    return found


def _find(
    primitive: Primitive, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: dict, parts: int
) -> list[Link]:
    for kind, rule in _rules.items():
        if isinstance(primitive, kind):
            return rule(avals, outs, params)
    joined: dict[tuple[tuple[int, int], ...], list[tuple[int, int]]] = {}
    links = []
    for i, aval in enumerate(avals):
        for axis, n in enumerate(aval.shape):
            if n == 1 or n % parts:
                continue
            ends = _probe(primitive, avals, outs, params, parts, i, axis)
            if ends is None:
                continue
            if ends:
                joined.setdefault(ends, []).append((i, axis))
            else:
                links.append(Link(((i, axis),), ()))
    if not avals:  # what is made from nothing can be made in parts
        joined.update({((r, d),): [] for r, out in enumerate(outs) for d in range(out.ndim)})
    for r, out in enumerate(outs):
        for d, n in enumerate(out.shape):
            if n > 1 and not any((r, d) in ends for ends in joined) and _may_be_made_in_parts(primitive):
                joined[((r, d),)] = []
    return [Link(tuple(begins), ends) for ends, begins in joined.items()] + links


def _may_be_made_in_parts(primitive: Primitive) -> bool:
    """Whether axes of a result that are those of no operand repeat what there is, as those of a broadcast do."""
    return primitive.moves_elements and primitive.is_cheap_to_repeat and primitive.is_linear


def _probe(
    primitive: Primitive,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    params: dict,
    parts: int,
    operand: int,
    axis: int,
) -> tuple[tuple[int, int], ...] | None:
    """Where the axis of an operand is in the results; None if it must not be cut."""
    mesh = AbstractMesh((parts,), (_PROBE,), AxisType.Explicit)

    def laid(aval: ShapedArray, cut: int | None) -> ShapedArray:
        entries = [_PROBE if d == cut else None for d in range(aval.ndim)]
        return aval.with_layout(AbstractSharding(mesh, PartitionSpec(*entries)))

    probes = [laid(aval, axis if i == operand else None) for i, aval in enumerate(avals)]
    several = primitive.multiple_results
    try:
        given = primitive.lay_out(list(outs) if several else outs[0], *probes, **params)
    except ShardingTypeError:
        return None
    entries = list(given) if several else [given]
    ends = tuple(
        (r, d)
        for r, entry in enumerate(entries)
        for d, names in enumerate(entry)
        if _PROBE in names_of(names)
    )
    before = avals[operand]
    for r, d in ends:
        # A window of an axis: its elements are on other devices.
        if outs[r].ndim == before.ndim and d == axis and outs[r].shape[d] != before.shape[axis]:
            return None
        if outs[r].shape[d] % parts:
            return None
    return ends


def _product(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: dict) -> list[Link]:
    lhs, rhs = avals
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    links, place = [], 0
    for i, j in zip(lhs_batch, rhs_batch, strict=True):
        links.append(Link(((0, i), (1, j)), ((0, place),)))
        place += 1
    for number, x, taken in ((0, lhs, {*lhs_sum, *lhs_batch}), (1, rhs, {*rhs_sum, *rhs_batch})):
        for axis in range(x.ndim):
            if axis not in taken:
                links.append(Link(((number, axis),), ((0, place),)))
                place += 1
    return links + [Link(((0, i), (1, j)), ()) for i, j in zip(lhs_sum, rhs_sum, strict=True)]


def _gather(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: dict) -> list[Link]:
    """An axis that is looked up may be cut: devices look up what they have, and zeros, and add."""
    operand, indices = avals
    offset, collapsed, _, batching, indices_batching = params["dimension_numbers"]
    slices = params["slice_sizes"]
    places = [axis for axis in range(outs[0].ndim) if axis not in offset]
    window = [axis for axis in range(operand.ndim) if axis not in collapsed and axis not in batching]
    links = []
    for axis, place in enumerate(places):
        paired = [(0, batching[k]) for k, there in enumerate(indices_batching) if there == axis]
        links.append(Link((*paired, (1, axis)), ((0, place),)))
    for axis, place in zip(window, offset, strict=True):
        if slices[axis] == operand.shape[axis]:
            links.append(Link(((0, axis),), ((0, place),)))
    return links + [Link(((0, axis),), ()) for axis in collapsed]


def _scatter(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: dict) -> list[Link]:
    """The operand is cut as the result; updates that devices have apart make parts of a sum."""
    operand, indices, updates = avals
    window, inserted, _, batching, indices_batching = params["dimension_numbers"]
    places = [axis for axis in range(updates.ndim) if axis not in window]
    own = [axis for axis in range(operand.ndim) if axis not in inserted and axis not in batching]
    links = []
    for axis, place in enumerate(places):
        paired = [batching[k] for k, there in enumerate(indices_batching) if there == axis]
        links.append(
            Link(
                (*((0, k) for k in paired), (1, axis), (2, place)),
                tuple((0, k) for k in paired),
            )
        )
    for axis, place in zip(own, window, strict=True):
        if updates.shape[place] == operand.shape[axis]:
            links.append(Link(((0, axis), (2, place)), ((0, axis),)))
    return links + [Link(((0, axis),), ((0, axis),)) for axis in inserted]


_rules: dict[type[Primitive], Callable[..., list[Link]]] = {
    type(dot_general_p): _product,
    Gather: _gather,
    ScatterFamily: _scatter,
}
