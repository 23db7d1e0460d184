"""Which objects a loop may carry as values: those that only one place knows, before the loop and after a step.

A loop carries numbers and arrays. An object that another one replaces in a step is carried as what is in it, so it is
a new one after the loop. If something else knows the old object, or two places know the new one, that would be seen
by `is`, and by a change through the other name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from purax.python_control_flow.heap import Heap
from purax.python_control_flow.merging import MAYBE, Fresh, Node, Old


def shared(heap: Heap, replaced: Iterable[Any], ends: Iterable[Node]) -> Any:
    """An object that a loop would part from another name of it; None if there is none.

    Args:
        heap: the state before the loop.
        replaced: the objects in whose places a step put another one.
        ends: what a step leaves in these places.
    """
    inside = Counter(id(x) for x in replaced if _is_mutable(heap, x))
    for key, count in inside.items():
        if heap.entries[key].references > count:
            return heap.entries[key].object
    after: Counter[int] = Counter()
    for node in _objects(ends):
        after[id(node.object)] += 1
        known = heap.entries.get(id(node.object))
        elsewhere = (
            known.references - inside[id(node.object)] if known is not None and _is_mutable(heap, known.object) else 0
        )
        if after[id(node.object)] + elsewhere > 1:
            return node.object
    return None


def _is_mutable(heap: Heap, x: Any) -> bool:
    entry = heap.entries.get(id(x))
    return entry is not None and not entry.kind.is_value(x)


def _objects(nodes: Iterable[Node]) -> Iterator[Old | Fresh]:
    """The objects in some values that can change."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Fresh):
            waiting += node.children
            if node.kind is not MAYBE and not node.kind.is_value(node.object):
                yield node
        elif isinstance(node, Old):
            yield node
