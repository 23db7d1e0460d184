"""Loops that a traced value ends: what a step changes is carried, in types that a step keeps.

Which state that is, is found by recording a step: every variable, attribute or element that it changed, in whatever
way, becomes part of the carry, and the step is recorded again, until nothing else changes. A variable without a value
before the loop that is read outside of it is carried with a flag that says whether it has one; others are not
carried, and begin every step without a value. A variable whose type no step keeps becomes `Undefined`, so that only
reading it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from purax import errors
from purax.callbacks.error_if import error_if
from purax.control_flow.branches import blank
from purax.control_flow.while_loop import while_loop
from purax.core import source
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.jaxpr import eval_jaxpr
from purax.core.source import located
from purax.core.trace import current
from purax.interpreters.arguments import to_array
from purax.interpreters.staging import stage
from purax.primitives.elementwise.conversion import convert_element_type
from purax.python_control_flow import paths
from purax.python_control_flow.branches import State, branch, line_of_change
from purax.python_control_flow.buffers import Buffer, become_buffer, iterated
from purax.python_control_flow.calls import Numbered, TracedRange
from purax.python_control_flow.heap import Entry, Heap
from purax.python_control_flow.identity import shared
from purax.python_control_flow.jumps import FLAG, RESULT, RETURNED
from purax.python_control_flow.logic import all_of
from purax.python_control_flow.merging import (
    MAYBE,
    RESULT_LABEL,
    Describer,
    Fresh,
    Leaf,
    Node,
    Nothing,
    Old,
    OldArray,
    Unlike,
    as_maybe,
    called,
    held,
    leaves,
    paired,
    plain,
    rebuilt,
    text,
)
from purax.python_control_flow.objects import MISSING, VARIABLE, Contents, NotRestorable, same_shape
from purax.python_control_flow.truth import negate, truth
from purax.python_control_flow.values import (
    Inner,
    Maybe,
    Partly,
    Undefined,
    array_type,
    blocks,
    common_type,
    is_array,
    is_traced,
    same,
    typed,
    way_out,
)

_int32 = np.dtype(np.int32)
_MOST_STEPS = 12  # of a loop whose state cannot be carried
_MOST_ITEMS = 64  # of an iterator without length, in a loop that a traced value ends


def repeat_while(condition: Callable[[], Any], step: Callable[[], None], state: State) -> None:
    """while condition(): step()"""
    while True:
        flag = truth(condition())
        if is_traced(flag):
            break
        if not flag:
            return
        step()

    def turn():
        step()
        return truth(condition())

    def go_on(flag):
        step()
        return truth(condition())

    if not _carried(state, lambda: Loop(state).run(flag, turn)):
        _unroll(state, flag, go_on)


def _carried(state: State, run: Callable[[], None]) -> bool:
    """Records a loop; says whether that was possible. If not, its steps are to be done one by one."""
    walk = paths.walks.open[-1] if paths.walks.open else None
    if walk is not None and state.place in walk.unrolled:
        return False
    heap = Heap(paths.roots())
    try:
        run()
        return True
    except (Exception, paths.Failure) as caught:
        error = caught.error if isinstance(caught, paths.Failure) else caught
        is_own = isinstance(error, (UnboundLocalError, NotCarried))
        if (
            walk is None
            or paths.walks.is_late()
            or not is_own
            and (isinstance(error, errors.ConcretizationTypeError) or not paths.may_be_caught())
        ):
            raise
        paths.walks.open[0].failure = None
        walk.unrolled[state.place] = error
        paths.put_back(heap, error)
        return False


def _unroll(state: State, flag: Any, go_on: Callable[[Any], Any]) -> None:
    """Does the steps of a loop one by one, as often as a few times: whether there is another is decided for each."""
    error = paths.walks.open[-1].unrolled[state.place]
    for _ in range(_MOST_STEPS):
        if is_traced(flag):
            decided, number = paths.decide(flag)
            if decided is None:
                paths.fail(error, number)
            flag = decided
        if not flag:
            return
        flag = go_on(flag)
    message = (
        f"{type(error).__name__}: the loop at {state.place} did more than {_MOST_STEPS} steps, and {error}"
    )
    error_if((), truth(flag), message)


def repeat_for(items: Any, step: Callable[[Any], None], stop: Callable[[], Any], state: State) -> None:
    """for item in items: step(item), until stop() holds."""
    if isinstance(items, (TracedRange, Numbered)):
        if not _carried(state, lambda: _count(items, items.length, step, stop, state, None)):
            taken = 0

            def go_on(flag):
                nonlocal taken
                step(items[taken])
                taken += 1
                return all_of(lambda: taken < items.length, lambda: negate(stop()))

            _unroll(state, truth(items.length > 0), go_on)
        return
    is_indexed = isinstance(items, range) or isinstance(items, Array) and items.ndim > 0
    taken = 0
    iterator = iter(iterated(items))
    for item in iterator:
        step(item)
        taken += 1
        stopped = stop()
        if is_traced(stopped):
            break
        if stopped:
            return
    else:
        return
    if not is_indexed:
        _rest(iterator, step, stop, state, None if hasattr(items, "__len__") else _MOST_ITEMS)
        return
    rest = items[taken:]
    walk = paths.walks.open[-1] if paths.walks.open else None
    if len(rest) > 1 and (walk is None or state.place not in walk.unrolled):
        heap = Heap(paths.roots())
        try:
            found = TracedRange(rest.start, rest.stop, rest.step) if isinstance(rest, range) else rest
            _count(found, len(rest), step, stop, state, len(rest), negate(stopped))
            return
        except (errors.ConcretizationTypeError, UnboundLocalError, TypeError, paths.Failure) as error:
            if paths.walks.is_late():
                raise
            reason = error.error if isinstance(error, paths.Failure) else error
            if walk is not None:
                paths.walks.open[0].failure = None
                walk.unrolled[state.place] = reason
            paths.put_back(heap, reason)  # a step that needs to know its number, or values of changing types
    _rest(iter(rest), step, stop, state, None)


def _rest(iterator: Iterator[Any], step: Callable, stop: Callable, state: State, most: int | None) -> None:
    """The remaining items, each under the condition that the loop has not ended; `most` bounds how many there are."""
    ended = False
    taken = 0

    def done() -> None:
        nonlocal ended
        item = next(iterator, MISSING)
        if item is MISSING:
            ended = True
        else:
            step(item)

    while not ended:
        branch(negate(stop()), done, lambda: None, state)
        stopped = stop()
        if not is_traced(stopped) and stopped:
            return
        taken += 1
        if taken == most:
            message = f"RuntimeError: the loop at {state.place} did more than {most} steps, over an iterator"
            error_if((), negate(stopped), message)
            _finish(state)
            return


def _finish(state: State) -> None:
    """A loop has ended for certain: if that can only be by `return`, the function has returned."""
    flags = [n for n, cell in state.variables.items() if n.startswith(FLAG) and is_traced(content(cell))]
    if flags != [RETURNED]:
        return
    state.variables[RETURNED].cell_contents = True
    result = content(state.variables[RESULT])
    if type(result) is Partly:
        result = result.maybe
    if type(result) is Maybe:
        state.variables[RESULT].cell_contents = result.value


def content(cell: Any) -> Any:
    return VARIABLE.read(cell).children[0]


def _count(
    items: Any, length: Any, step, stop, state: State, max_steps: int | None, flag: Any = None
) -> None:
    """A loop over items that are found by their number, which is carried."""

    def turn(number):
        step(items[number])
        number = number + 1
        return all_of(lambda: number < length, lambda: negate(stop())), number

    start = convert_element_type(to_array(0), _int32, True)
    Loop(state).run(truth(length > 0) if flag is None else flag, turn, start, max_steps)


class Carried:
    """A place in an object whose value a step changes.

    Attributes:
        entry: the object, in the heap before the loop.
        key: which of its children: a number, or a name.
        start: the value before the loop.
        types: for each of its leaves the type that is carried, or None for a leaf that stays as it is.
        is_new: whether the types were changed since a step was recorded.
    """

    def __init__(self, entry: Entry, key: Any, start: Node):
        self.entry, self.key = entry, key
        self.is_new = False
        self.begin(start)

    def begin(self, start: Node) -> None:
        self.start = start
        self.leaves: list[Leaf] = [] if isinstance(start, Nothing) else leaves(start)
        values = [leaf.value for leaf in self.leaves]
        self.types: list[ShapedArray | None] = [array_type(x) if is_array(x) else None for x in values]

    @property
    def label(self) -> str:
        kind, label = self.entry.kind, self.entry.label
        names = [self.key] if kind.is_open else self.entry.before.shape
        return called(kind.label(label, names, 0 if kind.is_open else self.key))

    def after(self, node: Node) -> Node:
        """What a step leaves: a value, where there was perhaps none, is one for certain."""
        was_maybe = isinstance(self.start, Fresh) and self.start.kind is MAYBE
        is_value = not isinstance(node, Nothing) and not (isinstance(node, Fresh) and node.kind is MAYBE)
        return as_maybe(node, self.start.shape) if was_maybe and is_value else node  # type: ignore[union-attr]

    def value(self, arrays: Iterator[Any]) -> Any:
        """The value, with the next of the carried arrays as its leaves."""
        if isinstance(self.start, Nothing):
            return MISSING if self.start is NEVER else self.start.value
        found = [
            x.value if aval is None else next(arrays) for x, aval in zip(self.leaves, self.types, strict=True)
        ]
        return rebuilt(self.start, iter(found), in_place=False)


NEVER = Nothing(Undefined("it has no value"))  # before the loop


class NotCarried(TypeError):
    """Some state cannot be carried by a loop."""


class Again(Exception):
    """The state before a loop is kept in another way from now on."""


class Loop:
    """A loop in a function, whose variables `state` knows."""

    def __init__(self, state: State):
        self.state = state
        self.roots = list(paths.roots())
        self.turn: Callable[[], Any] = lambda: None
        self.begin()

    def begin(self) -> None:
        """Nothing is carried yet."""
        self.heap = Heap(self.roots)
        self.carried: dict[tuple[int, Any], Carried] = {}

    def run(self, flag: Any, turn: Callable, counter: Any = None, max_steps: int | None = None) -> None:
        """Records the loop.

        Args:
            flag: whether the first step is done.
            turn: does a step and returns whether another follows; with a counter, it takes and returns that too.
            counter: an array that is carried besides the state.
            max_steps: a bound on the number of steps.
        """
        counters = [] if counter is None else [counter]
        self.turn = lambda: turn(*counters)
        while True:
            avals = [*(c.aval for c in counters), *self.carried_types()]
            results, closed = self.record(turn, avals, len(counters))
            try:
                if not self.adjust():
                    break
            except Again:
                self.begin()
        self.check_identity()
        types = [flag.aval, *avals]

        def goes_on(carry):
            return carry[0]

        def body(carry):
            found = eval_jaxpr(closed.jaxpr, closed.consts, *carry[1:])
            return [
                typed(found[x.position] if isinstance(x, Inner) else x, aval)
                for x, aval in zip([*results, *self.ends()], types, strict=True)
            ]

        starts = [
            leaf.value
            for each in self.carried.values()
            for leaf, aval in zip(each.leaves, each.types, strict=True)
            if aval is not None
        ]
        start = [flag, *(typed(x, aval) for x, aval in zip([*counters, *starts], avals, strict=True))]
        arrays = iter(while_loop(goes_on, body, start, max_steps=max_steps)[1 + len(counters) :])
        self.write(arrays)
        paths.fix(self.chosen())

    def carried_types(self) -> list[ShapedArray]:
        return [aval for each in self.carried.values() for aval in each.types if aval is not None]

    def ends(self) -> list[Any]:
        """What a step leaves in the leaves that are carried."""
        found = []
        for key, each in self.carried.items():
            if isinstance(each.start, Nothing):
                continue
            pairs = paired(each.start, each.after(self.nodes[key]))
            found += [held(b) for (_, b), aval in zip(pairs, each.types, strict=True) if aval is not None]
        return found

    def chosen(self) -> list[np.ndarray]:
        """NumPy arrays that a carried value is one of: which one it is after the loop, cannot be told."""
        found: list[Any] = []
        for key, each in self.carried.items():
            if not isinstance(each.start, Nothing):
                found += [leaf for pair in paired(each.start, each.after(self.nodes[key])) for leaf in pair]
        return [leaf.value for leaf in found if isinstance(leaf, OldArray)]

    def record(self, turn: Callable, avals: list[ShapedArray], hidden: int) -> tuple[list[Any], Any]:
        """Records a step; finds what it leaves in `nodes`. Returns the flag and counters, and the program."""
        results: list[Any] = []
        self.nodes: dict[tuple[int, Any], Node] = {}
        self.shapes: dict[int, tuple[Entry, Any, list[Node]]] = {}

        def step(*arguments):
            self.write(iter(arguments[hidden:]))
            inside = Heap(self.roots)
            result = paths.explore(self.settled, (turn, inside, *arguments[:hidden]), heap=inside)
            describer = Describer(self.heap, current.trace)
            results[:] = [describer.leaf(x) for x in (result if hidden else [result])]
            for entry in inside.changed():
                before = self.heap.entries.get(id(entry.object))
                if entry.is_reclassed:
                    raise self.reclassed(entry)
                if before is not None:
                    contents = entry.kind.read(entry.object)
                    nodes = [describer.node(child) for child in contents.children]
                    self.shapes[id(entry.object)] = (before, contents.shape, nodes)
                elif not self.is_made_here(entry):
                    raise self.aliased(entry)
            for key, each in self.carried.items():
                contents = each.entry.kind.read(each.entry.object)
                self.nodes[key] = describer.node(child_of(each.entry, contents, each.key))
            return describer.results

        blocks.depth += 1
        lost: Entry | None = None
        try:
            closed = stage(step, avals, "loop")
        finally:
            blocks.depth -= 1
            try:
                self.heap.restore()
            except NotRestorable as error:
                lost = error.args[0]
        if lost is not None:
            raise located(
                NotCarried,
                f"`{lost.label}` (a {type(lost.object).__name__}) is consumed or changed in the loop at "
                f"{self.state.place}, which a traced value ends, so that it is not known how often. Make an array "
                "of its items first, and take them by number",
            )
        return results, closed

    def settled(self, turn: Callable, inside: Heap, *counters: Any) -> Any:
        """Does a step; what it leaves must be known, so that the step goes both ways where it is not."""
        result = turn(*counters)
        for entry in inside.changed():
            before = self.heap.entries.get(id(entry.object))
            for child in entry.kind.read(entry.object).children:
                if type(child) is Undefined:  # one that may have a value is carried with a flag
                    is_new = (
                        before is not None and entry.kind is VARIABLE and before.before.children[0] is MISSING
                    )
                    if not is_new or called(entry.label) in self.state.live:
                        child.fail_if_forked()
        return result

    def is_made_here(self, entry: Entry) -> bool:
        """Whether an object that a step changes, and that stands for one from before, has no other name."""
        for each in self.carried.values():
            if isinstance(each.start, Fresh) and each.start.object is not None:
                known = self.heap.entries.get(id(each.start.object))
                if known is not None and known.references > 1:
                    return False
        return True

    def aliased(self, entry: Entry) -> Exception:
        return located(
            UnboundLocalError,
            f"`{entry.label}` is another object after a step of the loop at {self.state.place}, and is changed in "
            "place, but it has other names too: make a copy of it before the loop",
        )

    def check_identity(self) -> None:
        """Raises if an object that is carried as what is in it has another name, which would be parted from it."""
        places = [
            (child_of(each.entry, each.entry.before, each.key), self.nodes[key])
            for key, each in self.carried.items()
            if not isinstance(each.start, (Nothing, Leaf, Old))
        ]
        found = shared(self.heap, [x for x, _ in places], [node for _, node in places])
        if found is None:
            return
        entry = self.heap.entries.get(id(found))
        what = f"`{entry.label}`" if entry is not None else f"a {type(found).__name__}"
        raise located(
            NotCarried,
            f"{what} gets another name in a step of the loop at {self.state.place}, or loses one of several, which "
            "cannot be carried: make a copy of it before the loop",
        )

    def reclassed(self, entry: Entry) -> Exception:
        message = f"`{entry.label}` is of another class after a step of the loop at {self.state.place}"
        return located(NotCarried, message)

    def write(self, arrays: Iterator[Any]) -> None:
        """Gives the places that are carried their values."""
        contents: dict[int, tuple[Entry, list[Any], list[Any]]] = {}
        for each in self.carried.values():
            entry = each.entry
            if id(entry.object) not in contents:
                now = entry.before
                contents[id(entry.object)] = (
                    entry,
                    list(now.shape) if entry.kind.is_open else now.shape,
                    list(now.children),
                )
            _, shape, children = contents[id(entry.object)]
            value = each.value(arrays)
            if not entry.kind.is_open:
                children[each.key] = value
            elif each.key in shape:
                children[shape.index(each.key)] = value
            else:
                shape.append(each.key)
                children.append(value)
        for entry, shape, children in contents.values():
            entry.kind.write(entry.object, Contents(shape, children))

    def adjust(self) -> bool:
        """Changes what is carried, and as what, to what a step gave; says whether it must be recorded again."""
        changed = False
        for key, each in list(self.carried.items()):
            changed |= self.adjust_carried(each, each.after(self.nodes[key]))
        for entry, shape, nodes in self.shapes.values():
            changed |= self.adjust_object(entry, shape, nodes)
        return changed

    def adjust_object(self, entry: Entry, shape: Any, nodes: list[Node]) -> bool:
        """Carries what a step changed in an object."""
        if isinstance(entry.object, np.ndarray):
            if become_buffer(entry.object, self.heap) is not None:
                raise Again
            raise located(
                UnboundLocalError,
                f"`{entry.label}` is a NumPy array, which cannot hold what the loop at {self.state.place}, which a "
                f"traced value ends, makes of it: make it an array of `purax.numpy`, and write "
                f"`{entry.label} = {entry.label}.at[i].set(value)`",
            )
        if not entry.kind.takes_traced:
            error = UnboundLocalError(
                f"`{entry.label}` (a {type(entry.object).__name__}) is changed by the loop at {self.state.place}, "
                "which a traced value ends, and cannot hold traced values"
            )
            raise source.with_location(error, line_of_change(self.turn, entry, self.heap))
        if not entry.kind.is_open and not same_shape(shape, entry.before.shape):
            values = [Fresh(entry.object, entry.kind, s) for s in (entry.before.shape, shape)]
            values[0].children = [Describer(None).node(x) for x in entry.before.children]
            values[1].children = nodes
            error = UnboundLocalError(self.message(f"`{entry.label}`", *values))
            raise source.with_location(error, line_of_change(self.turn, entry, self.heap))
        keys = list(shape) if entry.kind.is_open else list(range(len(nodes)))
        changed = False
        for key, node in zip(keys, nodes, strict=True):
            if (id(entry.object), key) in self.carried:
                continue
            before = child_of(entry, entry.before, key)
            start = NEVER if before is MISSING else Describer(self.heap).node(before)
            if is_unchanged(start, node):
                continue
            self.carried[id(entry.object), key] = each = Carried(entry, key, start)
            self.adjust_carried(each, node)
            changed = True
        return changed

    def adjust_carried(self, each: Carried, node: Node) -> bool:
        label = each.label
        is_array = isinstance(each.start, Leaf) and isinstance(each.start.value, np.ndarray)
        if is_array and isinstance(node, Fresh) and isinstance(node.object, Buffer):  # it gets traced values
            array: Any = each.start.value  # type: ignore[union-attr]
            if become_buffer(array, self.heap) is not None:
                raise Again
        if isinstance(each.start, Nothing):
            is_result = label == RESULT_LABEL
            is_wanted = is_result or label in self.state.live or each.entry.kind is not VARIABLE
            if each.start is not NEVER or isinstance(node, Nothing) or not is_wanted:
                return False
            is_maybe = isinstance(node, Fresh) and node.kind is MAYBE
            if is_result or is_maybe:
                each.begin(blanked(node))
            else:
                message = f"{label} is read, but the loop at {self.state.place} did no step"
                each.begin(as_maybe(blanked(node), message, False))
            return True
        if isinstance(each.start, Old) and not (isinstance(node, Old) and node.object is each.start.object):
            each.begin(Describer(None).node(each.start.object))  # another object takes its place
        try:
            if isinstance(node, Old):
                node = Describer(None).node(node.object)
            self.adjust_leaves(each, paired(each.start, node))
        except Unlike:
            message = self.message(label, each.start, node)
            each.begin(Nothing(Undefined(message)))
            return True
        changed, each.is_new = each.is_new, False
        return changed

    def message(self, label: str, was: Node, now: Node) -> str:
        return (
            f"{label} is {text(was)} before the loop at {self.state.place} and {text(now)} after a step, but a loop "
            f"that a traced value ends needs it to be of one type{way_out(plain(was), plain(now))}"
        )

    def adjust_leaves(self, each: Carried, pairs: list[tuple[Leaf, Leaf]]) -> None:
        """Widens the types of a value's leaves; raises `Unlike` if they have no types that a step keeps."""
        for i, (start, end) in enumerate(pairs):
            aval, x = each.types[i], end.value
            if aval is None:
                if not same(x, start.value):
                    raise Unlike
                continue
            wider = common_type(aval, array_type(x)) if isinstance(x, Inner) or is_array(x) else None
            if wider is None:
                raise Unlike
            if wider.dtype != aval.dtype or wider.weak_type != aval.weak_type:
                each.types[i] = wider
                each.is_new = True


def child_of(entry: Entry, contents: Contents, key: Any) -> Any:
    if not entry.kind.is_open:
        return contents.children[key]
    names = list(contents.shape)
    return contents.children[names.index(key)] if key in names else entry.kind.default(entry.object, key)


def is_unchanged(start: Node, end: Node) -> bool:
    if isinstance(start, Nothing) or isinstance(end, Nothing):
        return isinstance(start, Nothing) and isinstance(end, Nothing)
    try:
        return all(same(a.value, b.value) for a, b in paired(start, end))
    except Unlike:
        return False


def blanked(node: Node) -> Node:
    """A value of the same type, where there is none yet."""
    values = [blank(x.value.aval) if isinstance(x.value, Inner) else x.value for x in leaves(node)]
    return Describer(None).node(rebuilt(node, iter(values), in_place=False))
