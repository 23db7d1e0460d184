"""Two recorded blocks, of which one will run: what holds after either.

A block is recorded from the state that its alternative sees too; what it changed is described, and put back. Values are
described as trees: `Leaf` (an array, or a value that cannot change), `Old` (an object from before the block), `Fresh`
(one that the block made). Where both sides agree a value stays as it is, arrays become results of the branch,
containers are merged child by child, and objects from before stay the same objects, so that all their aliases see the
change.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from purax.control_flow.branches import bind_branches, blank
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.source import located
from purax.core.trace import Trace, Tracer, current
from purax.interpreters.staging import stage
from purax.python_control_flow import choices
from purax.python_control_flow.buffers import Buffer, become_buffers, can_become_buffer
from purax.python_control_flow.heap import Entry, Heap
from purax.python_control_flow.jumps import RESULT
from purax.python_control_flow.objects import (
    MISSING,
    VARIABLE,
    Contents,
    Kind,
    NotRestorable,
    kind_of,
    same_shape,
)
from purax.python_control_flow.paths import (
    CHANGED_AFTER_CHOICE,
    Origin,
    assume_inherited,
    failed,
    note_undefined,
)
from purax.python_control_flow.values import (
    Inner,
    Maybe,
    Partly,
    Undefined,
    array_type,
    blocks,
    common_type,
    is_array,
    same,
    type_text,
    typed,
    way_out,
)

RESULT_LABEL = "the result of the function"


class Leaf:
    """An array, which may be an `Inner` one, or a value that cannot change."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


class OldArray(Leaf):
    """A NumPy array from before, or a view of one: which of two it is cannot be told, but what is in it can.

    `held` is what is in it at the end of the block.
    """

    __slots__ = ("held",)

    def __init__(self, value: np.ndarray):
        super().__init__(value)
        self.held = value.copy()


class NewArray(Leaf):
    """A NumPy array that a block made: a copy of it."""

    __slots__ = ()


class Old:
    """An object from before."""

    __slots__ = ("object",)

    def __init__(self, x: Any):
        self.object = x


class Fresh:
    """A container or an object that a block made, and what is in it."""

    __slots__ = ("children", "kind", "object", "shape")

    def __init__(self, x: Any, kind: Kind, shape: Any):
        self.object, self.kind, self.shape = x, kind, shape
        self.children: list[Node] = []


class Nothing:
    """No value, or one that is not known; `value` says why."""

    __slots__ = ("value",)

    def __init__(self, value: Undefined):
        self.value = value


Node = Leaf | Old | Fresh | Nothing
ABSENT = Nothing(Undefined("it has no value"))


class Unlike(Exception):
    """A value is not of one type on both sides."""


class Describer:
    """Describes values; at the end of a block, which `trace` records, collects the arrays that were computed in it."""

    def __init__(self, heap: Heap | _Everything | None, trace: Trace | None = None):
        self.heap, self.trace = heap, trace
        self.results: list[Any] = []
        self._places: dict[int, Inner] = {}
        self._known: dict[int, tuple[Any, Fresh]] = {}

    def leaf(self, value: Any) -> Any:
        """What a block computed, or a value from outside."""
        node = self.node(value)
        assert isinstance(node, Leaf)
        return node.value

    def node(self, value: Any) -> Node:
        if type(value) is Partly:
            value = value.maybe
        if type(value) is Undefined:
            return Nothing(value)
        if value is MISSING:
            return ABSENT
        if isinstance(value, Tracer) and value.owner is self.trace:
            place = self._places.get(id(value))
            if place is None:
                place = self._places[id(value)] = Inner(value.aval, len(self.results))
                self.results.append(value)
            return Leaf(place)
        if isinstance(value, Maybe):
            made = Fresh(value, MAYBE, value.message)
            made.children = [self.node(value.value), self.node(value.flag)]
            return made
        kind = kind_of(value)
        if kind is None:
            return Leaf(value)
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            is_old = self.heap is not None and self.heap.has_memory_of(value)
            return OldArray(value) if is_old else NewArray(value.copy())
        if self.heap is not None and self.heap.has(value) and not kind.is_value(value):
            return Old(value)
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        contents = kind.read(value)
        made = Fresh(value, kind, contents.shape)
        self._known[id(value)] = (value, made)
        made.children = [self.node(child) for child in contents.children]
        return made


class _Maybe(Kind):
    is_mutable = False

    def new(self, x, contents):
        return Maybe(*contents.children, contents.shape)


MAYBE = _Maybe()


def text(node: Node) -> str:
    """How messages call the type of a value."""
    return type_text(plain(node))


def plain(node: Node) -> Any:
    """The value that a node describes, with `Inner` in the place of what a block computed."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Old):
        return node.object
    if isinstance(node, Nothing):
        return node.value
    values = [plain(child) for child in node.children]
    if type(node.object) in (list, tuple, collections.deque):
        return type(node.object)(values)
    if type(node.object) is dict:
        return dict(zip(node.shape, values, strict=True))
    return values[0] if node.kind is MAYBE else node.object


def held(leaf: Leaf) -> Any:
    """The value of a leaf at the end of its block."""
    return leaf.held if isinstance(leaf, OldArray) else leaf.value


def paired(
    one: Node, other: Node, partners: dict[int, Node | None] | None = None
) -> list[tuple[Leaf, Leaf]]:
    """The leaves of two values that are built alike, in the order of `rebuilt`; raises `Unlike`.

    `partners` are the objects of one side that are one with objects of the other, by the ids of their nodes: None where
    an object of one side alone is kept.
    """
    found: list[tuple[Leaf, Leaf]] = []
    partners = {} if partners is None else partners

    def pair(a: Node, b: Node) -> None:
        if isinstance(a, Leaf) and isinstance(b, Leaf):
            found.append((a, b))
        elif isinstance(a, Old) and isinstance(b, Old):
            if a.object is not b.object:
                raise Unlike
        elif isinstance(a, Fresh) and isinstance(b, Fresh):
            if id(a) in partners or id(b) in partners:
                if partners.get(id(a)) is not b or partners.get(id(b)) is not a:
                    raise Unlike  # two objects on one side, and one on the other
                return
            partners[id(a)], partners[id(b)] = b, a
            is_one_class = a.kind is b.kind and (
                a.kind is MAYBE or type(a.object) is type(b.object) and a.kind.is_mergeable
            )
            if not is_one_class or a.kind is not MAYBE and not same_shape(a.shape, b.shape):
                raise Unlike
            for x, y in zip(a.children, b.children, strict=True):
                pair(x, y)
        elif not (a is b and isinstance(a, Nothing)):
            raise Unlike

    pair(one, other)
    return found


def leaves(node: Node) -> list[Leaf]:
    """The leaves of a value, in the order of `rebuilt`."""
    return [leaf for leaf, _ in paired(node, node)]


def leaf_nodes(node: Node) -> list[Leaf]:
    """The same of a value that may hold anything."""
    found: list[Leaf] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if isinstance(node, Leaf):
            found.append(node)
        elif isinstance(node, Fresh) and id(node) not in seen:
            seen.add(id(node))
            for child in node.children:
                visit(child)

    visit(node)
    return found


def called(label: str) -> str:
    """How messages call a variable, or a place in an object."""
    return RESULT_LABEL if label == RESULT else f"`{label}`"


def olds(node: Node) -> list[Any]:
    """The objects from before that a value holds."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting: list[Node] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Old):
            found.append(each.object)
        elif isinstance(each, OldArray):
            found.append(each.value)
        elif isinstance(each, Fresh) and id(each) not in seen:
            seen.add(id(each))
            waiting += each.children
    return found


def made_in(node: Node) -> list[Fresh]:
    """The objects in a value that can change, and that a block made."""
    found: dict[int, Fresh] = {}
    waiting: list[Node] = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Fresh) and id(each) not in found:
            found[id(each)] = each
            waiting += each.children
    return [each for each in found.values() if each.kind is not MAYBE and not each.kind.is_value(each.object)]


def rebuilt(node: Node, values: Iterable[Any], in_place: bool, made: dict[int, Any] | None = None) -> Any:
    """The value that a node describes, with other leaves; objects that a block made are used again if `in_place`.

    `made` are the objects that other values have in common with this one, by the ids of their nodes.
    """
    made = {} if made is None else made
    given = {id(leaf): x for leaf, x in zip(leaf_nodes(node), values, strict=True)}

    def build(node: Node) -> Any:
        if isinstance(node, Leaf):
            return given[id(node)]
        if isinstance(node, Old):
            return node.object
        if isinstance(node, Nothing):
            return node.value
        if id(node) in made:
            return made[id(node)]
        kind = node.kind
        if kind.is_mutable and kind.takes_all:
            x = (
                node.object
                if in_place
                else kind.new(node.object, Contents(node.shape, [plain(c) for c in node.children]))
            )
            made[id(node)] = x
            kind.write(x, Contents(node.shape, [build(child) for child in node.children]))
            return x
        x = made[id(node)] = kind.new(
            node.object, Contents(node.shape, [build(child) for child in node.children])
        )
        return x

    return build(node)


class Recorded:
    """A block that was recorded.

    Attributes:
        closed: its program; the results are the arrays that were computed in it.
        value: what it returned.
        changes: by the id of an object, how that was built in the end and what it held.
        lost: an object that the block changed and that cannot be put back.
        reclassed: an object that is of another class after the block.
    """

    def __init__(
        self, block: Callable[..., Any], avals: Sequence[ShapedArray], name: str, heap: Heap | None = None
    ):
        self.changes: dict[int, tuple[Entry, Any, list[Node]]] = {}
        self.lost: Entry | None = None
        self.reclassed: Entry | None = None
        self.value: Node

        def flat(*arguments):
            with heap.watching() if heap is not None else contextlib.nullcontext():
                value = block(*arguments)
            describer = Describer(heap, current.trace)
            self.value = describer.node(value)
            for entry in heap.changed() if heap is not None else ():
                contents = entry.kind.read(entry.object)
                nodes = [describer.node(child) for child in contents.children]
                self.changes[id(entry.object)] = (entry, contents.shape, nodes)
                if entry.is_reclassed:
                    self.reclassed = entry
            return describer.results

        blocks.depth += 1
        try:
            self.closed = stage(flat, avals, name)
        finally:
            blocks.depth -= 1
            if heap is not None:
                try:
                    heap.restore()
                except NotRestorable as error:
                    self.lost = error.args[0]


class Slot:
    """The place of a result in a value."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


class Conflict(Exception):
    """An object is built differently on the two sides."""

    def __init__(self, entry: Entry, message: str):
        super().__init__(message)
        self.entry = entry


class BecomesBuffer(Exception):
    """A NumPy array is to be a buffer already before the blocks, which are then recorded again."""

    def __init__(self, array: np.ndarray):
        super().__init__()
        self.array = array


class Merge:
    """What holds after either of two blocks."""

    def __init__(
        self,
        sides: Sequence[Recorded],
        condition: str,
        unread: Sequence[Callable[[Entry, str, bool], bool]],
        live: Collection[str],
        origin: Origin | None,
        heap: Heap,
    ):
        """`unread` tells for each side what is not read after it, of an object by its entry, of a variable by its label
        too; `live` are the labels of variables that may be read after both.
        """
        self.sides, self.condition, self.unread, self.live, self.origin = (
            sides,
            condition,
            unread,
            live,
            origin,
        )
        self.heap = heap
        self.partners: dict[int, Node | None] = {}
        self.met: dict[int, Any] = {}  # what stands for the leaves of the first block, by their ids
        self.wanted: list[ShapedArray] = []
        self.slots: list[tuple[Any, Any]] = []
        self.chosen: list[np.ndarray] = []  # NumPy arrays of which one is what a value is from now on
        self.inherited: list[tuple[Any, str, Any]] = []  # attributes that one side leaves to the class
        self.array_slots: list[int] = []
        self.buffers: list[tuple[Entry, Any]] = []  # NumPy arrays that become buffers, and what these hold
        self.values: list[tuple[Entry, Any, list[Any]]] = []
        for side in sides:
            if side.reclassed is not None:
                label = side.reclassed.label
                message = f"`{label}` is of another class if {condition} than otherwise"
                raise Conflict(side.reclassed, message)
        changed = {**sides[0].changes, **sides[1].changes}
        for entry, _, _ in changed.values():
            self.values.append(self.contents(entry))

    def value(self, label: str) -> Any:
        """What the blocks returned."""
        return self.meet(label, [side.value for side in self.sides], None)

    def contents(self, entry: Entry) -> tuple[Entry, Any, list[Any]]:
        """What an object holds afterwards."""
        found: list[tuple[Any, list[Node]]] = []
        before = Describer(_Everything())
        for side in self.sides:
            if id(entry.object) in side.changes:
                found.append(side.changes[id(entry.object)][1:])
            else:
                found.append((entry.before.shape, [before.node(child) for child in entry.before.children]))
        (one, nodes), (other, other_nodes) = found
        kind, label = entry.kind, entry.label
        if kind.is_open:
            names = [*one, *(name for name in other if name not in one)]
            sides = [dict(zip(shape, nodes, strict=True)) for shape, nodes in found]
            children = [
                self.meet(
                    called(kind.label(label, names, i)),
                    [
                        side[name] if name in side else before.node(self.default(entry, name))
                        for side in sides
                    ],
                    entry,
                )
                for i, name in enumerate(names)
            ]
            self.check_children(entry, names, children)
            return entry, names, children
        if not same_shape(one, other):
            for i in (0, 1):
                if self.unread[i](entry, "", False):
                    shape, kept = found[1 - i]
                    with contextlib.suppress(Unlike):
                        return entry, shape, [self.filled(node, 1 - i) for node in kept]
            values = [Fresh(entry.object, kind, shape) for shape, _ in found]
            for value, (_, own) in zip(values, found, strict=True):
                value.children = own
            raise Conflict(entry, self.message(f"`{label}`", values))
        labels = [called(kind.label(label, one, i)) for i in range(len(nodes))]
        children = [
            self.meet(each, pair, entry)
            for each, pair in zip(labels, zip(nodes, other_nodes, strict=True), strict=True)
        ]
        self.check_children(entry, None, children)
        if isinstance(entry.object, np.ndarray) and not all(map(is_certain, children)):
            if len(children) != 1 or not can_become_buffer(entry.object, self.heap):
                raise Conflict(entry, self.array_message(entry))
            self.buffers.append((entry, children[0]))
            return entry, entry.before.shape, list(entry.before.children)
        return entry, one, children

    def check_children(self, entry: Entry, names: Sequence[str] | None, children: Sequence[Any]) -> None:
        """An object that Python or a library reads must hold what these know, or the function goes both ways."""
        for i, child in enumerate(children):
            is_strict = entry.kind.is_strict or names is not None and names[i].startswith("__")
            if isinstance(child, Undefined) and entry.kind is not VARIABLE:
                note_undefined()
            if is_strict and isinstance(child, Undefined):
                raise Conflict(entry, object.__getattribute__(child, "_message"))
            if not entry.kind.takes_traced and not is_certain(child) and child is not MISSING:
                raise Conflict(entry, f"`{entry.label}` is changed in one way if {self.condition} and not otherwise")

    def default(self, entry: Entry, name: str) -> Any:
        """What stands for an attribute that an object does not have itself on one of the sides."""
        found = entry.kind.default(entry.object, name)
        if found is not MISSING:
            classes = [id(kind) for kind in type(entry.object).__mro__]
            if any(key in side.changes for side in self.sides for key in classes):
                return MISSING  # the class may have another one then
            self.inherited.append((entry.object, name, found))
        return found

    def meet(self, label: str, nodes: Sequence[Node], entry: Entry | None) -> Any:
        """A value after the blocks, with `Slot`s where results will stand."""
        one, other = nodes
        defined = [not isinstance(node, Nothing) for node in nodes]
        if not any(defined):
            told = [node for node in nodes if node is not ABSENT]
            return told[0].value if told else MISSING  # type: ignore[union-attr]
        if all(defined):
            maybes = [isinstance(node, Fresh) and node.kind is MAYBE for node in nodes]
            if maybes[0] != maybes[1]:
                message = nodes[maybes.index(True)].shape  # type: ignore[union-attr]
                one, other = (
                    node if m else as_maybe(node, message) for node, m in zip(nodes, maybes, strict=True)
                )
            self.find_buffers(one, other)
            self.find_buffers(other, one)
            with contextlib.suppress(Unlike):
                return self.alike(one, other)
        for side in (0, 1):
            if entry is not None and defined[1 - side] and self.unread[side](entry, label, not defined[side]):
                with contextlib.suppress(Unlike):
                    return self.filled(nodes[1 - side], 1 - side)
        message = self.message(label, nodes)
        known = [node.value._origin for node in nodes if isinstance(node, Nothing)]
        origin = next((x for x in known if x is not None), self.origin)
        is_missing = defined[0] != defined[1] and origin is self.origin  # and not one of several values
        if is_missing and entry is not None and entry.kind is VARIABLE and label in self.live:
            side = defined.index(True)
            node = nodes[side]
            if not (isinstance(node, Fresh) and node.kind is MAYBE):
                node = as_maybe(node, message)
            with contextlib.suppress(Unlike):
                return Partly(message, self.filled(node, side), origin)
        return Undefined(message, origin)

    def find_buffers(self, node: Node, other: Node) -> None:
        """An array that became a buffer on one side only is one from before on both."""
        if isinstance(node, OldArray) and isinstance(other, Fresh) and isinstance(other.object, Buffer):
            if can_become_buffer(node.value, self.heap):
                raise BecomesBuffer(node.value)

    def message(self, label: str, nodes: Sequence[Node]) -> str:
        one, other = map(text, nodes)
        if one == other:
            return f"{label} is changed in one way if {self.condition} and in another or not at all otherwise"
        end = way_out(*map(plain, nodes))
        return f"{label} is {one} if {self.condition} and {other} otherwise{end}"

    def array_message(self, entry: Entry) -> str:
        return (
            f"`{entry.label}` is a NumPy array, which cannot hold what it is if {self.condition} and otherwise: make "
            f"it an array of `purax.numpy`, and write `{entry.label} = {entry.label}.at[i].set(value)`"
        )

    def alike(self, one: Node, other: Node) -> Any:
        """A value that is built alike on both sides."""
        count = len(self.slots)
        met: dict[int, Any] = {}
        partners = dict(self.partners)
        try:
            for a, b in paired(one, other, partners):
                if same(a.value, b.value):
                    met[id(a)] = a.value
                    continue
                met[id(a)] = self.joined(held(a), held(b))
                self.note(a, b)
        except Unlike:
            del self.slots[count:], self.wanted[count:]
            raise
        self.partners = partners
        self.met |= met  # what is known by another name, too, was met there
        return Planned(one, [self.met[id(leaf)] for leaf in leaf_nodes(one)])

    def note(self, *leaves: Leaf) -> None:
        """The last slot is one of some arrays: to change it in place, it must be known which."""
        if any(isinstance(leaf, (OldArray, NewArray)) for leaf in leaves):
            self.chosen += [leaf.value for leaf in leaves if isinstance(leaf, OldArray)]
            self.array_slots.append(len(self.slots) - 1)

    def joined(self, a: Any, b: Any) -> Slot:
        if not all(isinstance(x, Inner) or is_array(x) for x in (a, b)):
            raise Unlike
        aval = common_type(array_type(a), array_type(b))
        if aval is None:
            raise Unlike
        return self.slot(a, b, aval)

    def filled(self, node: Node, side: int) -> Any:
        """A value that matters only after one block; raises `Unlike` if another name of it meets another value."""
        if side == 1:  # where both sides made an object, that of the first is the one that stays
            for each in made_in(node):
                if self.partners.setdefault(id(each)) is not None:
                    raise Unlike
        met: list[Any] = []
        for leaf in leaves(node):
            x = held(leaf)
            if isinstance(leaf, (OldArray, NewArray)):
                x = self.slot(x if side == 0 else None, x if side == 1 else None, array_type(x))
                self.note(leaf)
            elif isinstance(x, Inner):
                x = self.slot(x if side == 0 else None, x if side == 1 else None, x.aval)
            elif isinstance(x, bool) and isinstance(node, Fresh) and node.kind is MAYBE:
                x = self.slot(x and side == 0, x and side == 1, array_type(x))
            met.append(x)
        return Planned(node, met)

    def slot(self, a: Any, b: Any, aval: ShapedArray) -> Slot:
        self.slots.append((a, b))
        self.wanted.append(aval)
        return Slot(len(self.slots) - 1)

    def run(self, index: Any, *extra: Any) -> list[Any]:
        """Records the branch, and writes what objects hold from now on; `index` is 1 where the first block is to run.

        Returns the values of `extra`, plans that `value` made.
        """
        programs = [self.program(side) for side in (1, 0)]
        results: Sequence[Any] = ()
        if self.wanted or any(program.effects for program in programs):
            results = bind_branches(index, programs, [])
        self.check_chosen()
        for result, slot in zip(results, self.slots, strict=True):
            choices.note(result, slot, self.sides, self.origin)
        for i in self.array_slots:
            if i < len(results):
                choices.note_array(results[i], self.origin)
        made: dict[int, Any] = {}
        filled = [self.filled_in(value, results, made) for value in extra]
        contents = [
            (entry, shape, [self.filled_in(x, results, made) if type(x) in _PLANS else x for x in children])
            for entry, shape, children in self.values
        ]
        for entry, shape, children in contents:
            entry.kind.write(entry.object, Contents(shape, children))
        meanings: dict[int, Buffer] = {}
        for entry, plan in self.buffers:
            if id(entry.object) not in meanings:
                meanings.update(become_buffers(entry.object, self.heap) or {})
            meanings[id(entry.object)].write(self.filled_in(plan, results, made))
        for x, name, default in self.inherited:
            assume_inherited(x, name, default, self.origin)
        return filled

    def filled_in(self, value: Any, results: Sequence[Any], made: dict[int, Any]) -> Any:
        """A value with the results of the branch; `made` are the objects that are filled in."""
        if type(value) is Partly:
            return Partly(value._message, self.filled_in(value.maybe, results, made), value._origin)
        if type(value) is Undefined:
            return value
        # An object that matters after one block under this name may matter after both under another one.
        pairs = zip(leaf_nodes(value.node), value.leaves, strict=True)
        met = [self.met.get(id(leaf), x) for leaf, x in pairs]
        values = [results[x.number] if type(x) is Slot else x for x in met]
        return rebuilt(value.node, values, True, made)

    def check_chosen(self) -> None:
        """An array that one of two names means from now on must be no array that a block changed."""
        for x in self.chosen:
            for entry, _, _ in self.values:
                if isinstance(entry.object, np.ndarray) and np.may_share_memory(x, entry.object):
                    error = located(TypeError, CHANGED_AFTER_CHOICE)
                    if self.origin is not None:
                        self.origin.fail(error)
                    raise failed(error)

    def program(self, side: int) -> ClosedJaxpr:
        """A block with the results that are wanted, in the types that are wanted."""
        closed = self.sides[side].closed

        def selected():
            results = eval_jaxpr(closed.jaxpr, closed.consts)
            found = []
            for slot, aval in zip(self.slots, self.wanted, strict=True):
                x = slot[side]
                if x is None:
                    found.append(blank(aval))
                else:
                    found.append(typed(results[x.position] if isinstance(x, Inner) else x, aval))
            return found

        return stage(selected, [], closed.jaxpr.name)


class _Everything:
    """Of what was there before the blocks, every object is an old one."""

    def has(self, x: Any) -> bool:
        return True

    has_memory_of = has


class Planned:
    """A value whose leaves are known, but for the results of the branch."""

    __slots__ = ("leaves", "node")

    def __init__(self, node: Node, leaves: list[Any]):
        self.node, self.leaves = node, leaves


def is_certain(value: Any) -> bool:
    """Whether a value does not depend on the branch."""
    return type(value) is Planned and not any(type(x) is Slot for x in value.leaves)


_PLANS = (Planned, Undefined, Partly)


def as_maybe(node: Node, message: str, flag: bool = True) -> Fresh:
    """A value that is known to be there, for meeting one that may not be."""
    made = Fresh(None, MAYBE, message)
    made.children = [node, Leaf(flag)]
    return made
