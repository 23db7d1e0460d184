"""The orders of axes in memory that kernels want: as users write them, and as StableHLO does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.xla.layout import Layout


def order_of(layout: Any, aval: ShapedArray, what: str) -> tuple[int, ...]:
    """The axes of an array from the slowest to the fastest.

    Args:
        layout: None for rows, a `Layout`, or a sequence of axes.
        aval: the type of the array.
        what: how messages call it.
    """
    if layout is None:
        return tuple(range(aval.ndim))
    if isinstance(layout, Layout):
        if layout.tiling:
            raise located(NotImplementedError, f"{what} has tiles ({layout}), which kernels cannot ask for")
        layout = layout.major_to_minor
    order = tuple(layout) if isinstance(layout, Sequence) and not isinstance(layout, str) else None
    if order is None or sorted(map(str, order)) != sorted(map(str, range(aval.ndim))):
        raise located(
            ValueError,
            f"{what} of an array {aval.str_short()} must name each of "
            f"its {aval.ndim} axes once, the slowest "
            f"first, as {tuple(range(aval.ndim))} for rows; got {shown(layout)}",
        )
    return tuple(map(int, order))


def orders_of(layouts: Any, avals: Sequence[ShapedArray], what: str) -> tuple[tuple[int, ...], ...]:
    """`order_of` for several arrays; None is rows for all of them."""
    if layouts is None:
        layouts = [None] * len(avals)
    if not isinstance(layouts, Sequence) or isinstance(layouts, str):
        raise located(
            TypeError,
            f"{what} must be a sequence with an entry for each of {len(avals)} arrays, got {shown(layouts)}",
        )
    if len(layouts) != len(avals):
        raise located(ValueError, f"{what} has {len(layouts)} entries for {len(avals)} arrays")
    return tuple(
        order_of(layout, aval, f"{what}[{i}]")
        for i, (layout, aval) in enumerate(zip(layouts, avals, strict=True))
    )


def layouts_text(inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> str:
    """Attributes of a custom call for orders with the slowest axis first; StableHLO's have the fastest first."""
    texts = [", ".join(_layout_text(order) for order in orders) for orders in (inputs, outputs)]
    return f"operand_layouts = [{texts[0]}], result_layouts = [{texts[1]}]"


def _layout_text(order: Sequence[int]) -> str:
    if not order:
        return "dense<> : tensor<0xindex>"
    return f"dense<[{', '.join(map(str, reversed(order)))}]> : tensor<{len(order)}xindex>"
