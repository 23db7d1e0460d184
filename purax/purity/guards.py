"""Guards: what a traced function read from outside, compared on every cached call.

Each object that the function can reach is compared by itself: the parts that it holds must be the same objects, or
equal numbers, or arrays of the same type that take the place of the program's operands. That is done by one small
generated function. Only if an object was replaced by another one are both compared as graphs, so that equal values
hold and so that what was one object is still one, and what were two are two.
"""

from __future__ import annotations

import builtins
import collections
import enum
import fractions
import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.core.trace import Tracer
from purax.purity.ambient import asks_for_identity, read_memory
from purax.purity.captures import Captures
from purax.purity.code_facts import line_of
from purax.purity.contents import (
    memoized,
    read_function,
    read_namespace,
    same_key,
    same_value,
)
from purax.purity.guard import (
    ABSENT,
    Guard,
    Root,
    is_remembered,
    read_root,
    read_weak,
    replaces,
    same_tag,
    without,
)
from purax.purity.guard_code import generate_check
from purax.purity.nodes import Node
from purax.purity.ownership import is_user_class
from purax.purity.unknown import tell_internal_error, tell_unguarded

_COMPILE_AFTER = 2
_REPLACEABLE = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    bytearray,
    collections.deque,
    np.ndarray,
    functools.partial,
    types.MethodType,
    types.CellType,
    types.SimpleNamespace,
    fractions.Fraction,
)
_FIXED = (tuple, frozenset, types.MethodType, types.BuiltinFunctionType, staticmethod, classmethod, property)
_PLAIN = frozenset(("builtins", "types", "collections", "_thread", "_threading_local"))
_GONE = object()


class Guards:
    """The guards of one traced program.

    Attributes:
        check: gives the program's captured arrays as they are now, or None if something changed, so that the program
            must not be used.
    """

    __slots__ = (
        "__weakref__",
        "_by_identity",
        "_guards",
        "_held",
        "_later",
        "_memoized",
        "_slow",
        "check",
        "constants",
    )

    def __init__(
        self,
        make: Callable[[], tuple[list[Guard], list[Any]]],
        constants: Sequence[Any],
        by_identity: bool = False,
    ):
        self._by_identity = by_identity
        self._later: Callable[[], tuple[list[Guard], list[Any]]] | None = make
        self._guards: list[Guard] = []
        self._memoized: list[tuple[Any, list[Any]]] = []
        self.constants = list(constants)
        self._held = 0
        self._slow = 0
        self.check: Any = self._compare

    @property
    def guards(self) -> list[Guard]:
        """One for each object; made when they are first asked for."""
        make = self._later
        if make is not None:
            try:
                self._guards, self._memoized = make()
            except Exception as error:
                tell_unguarded("a function", error)
            self._later = None
        return self._guards

    @guards.setter
    def guards(self, guards: list[Guard]) -> None:
        self._guards = guards

    def _compare(self) -> list[Any] | None:
        operands = self.constants.copy()
        try:
            if all([guard.holds(operands) for guard in self.guards]):
                if not is_remembered(self._memoized):
                    return None
                self._held += 1
                if self._held >= _COMPILE_AFTER:
                    self.check = generate_check(
                        self.guards, self.constants, self._memoized, self.compare_graphs
                    )
                return operands
            return self.compare_graphs()
        except Exception:  # whatever it was, nothing can be said for the program
            return None

    def compare_graphs(self) -> list[Any] | None:
        """The operands if everything equals what it was, even where objects were replaced by equal ones."""
        operands = self.constants.copy()
        try:
            if self._by_identity:
                return None
            pairs = _Graphs(self.guards, operands)
            if not pairs.same() or not is_remembered(self._memoized):
                return None
            self._slow += 1
            if self._slow >= 8 and not self._slow & (
                self._slow - 1
            ):  # they stay: compare with the new ones from now on
                self._rebase(pairs, operands)
            return operands
        except Exception:
            return None

    def _rebase(self, pairs: _Graphs, operands: list[Any]) -> None:
        guards = []
        for guard in self.guards:
            value = pairs.found.get(id(guard), guard.node.value)
            node = Node(value, guard.node.reader, guard.node.names, guard.node.name, guard.node.code, False)
            new = Guard(node, *without(*node.state, guard.ignored), guard.ignored)
            if len(new.values) != len(guard.values):
                return
            new.slots, new.missing, new.built_in = guard.slots, guard.missing, guard.built_in
            new.values = [
                before if type(before) is Root else now
                for now, before in zip(new.values, guard.values, strict=True)
            ]
            guards.append(new)
        self.guards, self.constants = guards, operands.copy()
        self.check = generate_check(guards, self.constants, self._memoized, self.compare_graphs)

    def holding(self) -> list[Guard]:
        """The guards that hold now."""
        return [guard for guard in self.guards if guard.holds(self.constants.copy())]

    def forgive(self, held: list[Guard]) -> None:
        """What a rule of the traced function has changed since certain guards held is not compared any more."""
        changed = {id(guard) for guard in held if not guard.holds(self.constants.copy())}
        if not changed:
            return
        found = [_forgiving(guard) if id(guard) in changed else guard for guard in self.guards]
        self.guards = [guard for guard in found if guard is not None]
        self._held = 0
        self.check = self._compare

    def changes(self) -> list[str]:
        """What changed, for `explain_cache_misses`: "`lr` in train.py:12 changed from 0.1 to 0.01"."""
        lines = []
        operands = self.constants.copy()
        for guard in self.guards:
            try:
                if not guard.holds(operands):
                    lines += _differences(guard, operands)
            except Exception:
                continue
        return lines


class _Graphs:
    """Compares what is reachable now with what was, object by object, each pair once."""

    def __init__(self, guards: list[Guard], operands: list[Any]):
        self.guards = guards
        self.by_value = {id(guard.node.value): guard for guard in guards}
        self.operands = operands
        self.found: dict[int, Any] = {}  # by id of a guard, the object in the place of its own
        self.places: dict[int, Guard] = {}  # by id of an object, whose place it takes

    def same(self) -> bool:
        held = {id(part) for guard in self.guards for part in guard.values}
        roots = [
            guard for guard in self.guards if id(guard.node.value) not in held
        ]  # nothing can replace them
        return self._same_from(roots) and all(
            [self._same_from([guard]) for guard in self.guards if id(guard) not in self.found]
        )

    def _same_from(self, roots: list[Guard]) -> bool:
        waiting: list[tuple[Guard, Any]] = [(guard, guard.node.value) for guard in roots]
        while waiting:
            guard, value = waiting.pop()
            if id(guard) in self.found:
                if self.found[id(guard)] is not value:
                    return False
                continue
            if self.places.setdefault(id(value), guard) is not guard:
                return False
            self.found[id(guard)] = value
            parts = self._parts(guard, value)
            if parts is None:
                return False
            waiting += parts
        return True

    def _parts(self, guard: Guard, value: Any) -> list[tuple[Guard, Any]] | None:
        """The parts of an object that must still be compared; None if it differs."""
        if type(value) is not guard.kind or (guard.built_in and not guard.same_built_in()):
            return None
        tag, keys, values = guard.read(value)
        if len(keys) != len(guard.keys) or len(values) != len(guard.values) or not same_tag(tag, guard.tag):
            return None
        if not all(map(same_key, keys, guard.keys)):
            return [] if value is guard.node.value and guard.holds(self.operands) else None
        parts = []
        for i, (now, before) in enumerate(zip(values, guard.values, strict=True)):
            inner = self.by_value.get(id(before))
            if inner is not None:
                if now is not before and not _may_stand_for(now, before):
                    return None
                parts.append((inner, now))
            elif now is before or same_value(now, before):
                continue
            elif type(before) is Root and now is before.function():
                continue
            elif not replaces(now, before, guard.slots.get(i), self.operands):
                if not (type(now) is type(before) is tuple and _equal_tuples(now, before)):
                    return None
        return parts


def _may_stand_for(now: Any, before: Any) -> bool:
    """Whether an object can be as good as another one: functions with the same code, containers, objects of users."""
    kind = type(before)
    if type(now) is not kind or isinstance(before, (type, types.ModuleType, enum.Enum)):
        return False
    if isinstance(before, types.FunctionType):
        return now.__code__ is before.__code__ and now.__globals__ is before.__globals__
    return isinstance(before, _REPLACEABLE) or is_user_class(kind)


def _equal_tuples(a: tuple, b: tuple) -> bool:
    return len(a) == len(b) and all(map(same_key, a, b))


# -- making guards


def make_guards(
    captures: Captures, constants: Sequence[Any], read: set[int], is_settled: bool = False
) -> Guards | None:
    """The guards for what `captures` found; None if there is nothing to compare.

    What the function itself changed while it was traced is not compared: it would be traced again and again.

    Args:
        captures: what the function can reach, as it was before the function was traced.
        constants: the arrays that the program captured.
        read: ids of arrays whose values were looked at while tracing.
        is_settled: whether everything still is as it was before the function was traced.
    """
    make = functools.partial(_make_all, captures, constants, read)
    by_identity = asks_for_identity(captures.names)
    if is_settled and _can_wait(captures):
        missing = {
            id(node): _missing_names(node)
            for nodes in (captures.spaces, captures.ambient)
            for node in nodes.values()
            if node.reader is read_namespace
        }
        _release_root(captures)
        return Guards(functools.partial(make, missing), constants, by_identity)
    _release_root(captures)
    made = make(None)
    return Guards(lambda: made, constants, by_identity) if made[0] else None


def _can_wait(captures: Captures) -> bool:
    """Whether the guards can be made when they are first compared, from what was found before tracing."""
    if not captures.spaces:  # a function of a library, mostly: there may be nothing to compare
        return False
    if captures.weak or captures.has_arrays:
        return False
    root = captures.root
    for nodes in (captures.spaces, captures.nodes):
        for node in nodes.values():
            if type(node.value) is functools._lru_cache_wrapper:
                return False
            for x in node.state[2]:
                if x is root:
                    return False
    return True


def _release_root(captures: Captures) -> None:
    """Programs must not keep the traced function alive."""
    root = captures.root
    node = captures.nodes.get(id(root))
    is_function = type(root) is types.FunctionType  # of the user, or one that a library made around it
    if node is not None and (is_function or node.reader is read_function) and not node.is_argument:
        captures.nodes[id(root)] = Node(
            Root(root, node.reader), read_root, node.names, node.name, node.code, False, node.state
        )
        captures.root = Root(root) if is_function else None


def _make_all(
    captures: Captures, constants: Sequence[Any], read: set[int], settled: dict[int, Any] | None
) -> tuple[list[Guard], list[tuple[Any, list[Any]]]]:
    """All guards, and what functions with caches remember; `settled` tells what nothing has changed since."""
    slots: dict[int, list[int]] = {}
    for i, x in enumerate(constants):
        slots.setdefault(id(x), []).append(i)
    guards = []
    remembered = []
    root = captures.root.function() if type(captures.root) is Root else None
    weak = captures.weak
    each = [*captures.spaces.values(), *captures.nodes.values(), *captures.ambient.values()]
    while each:
        filled: list[Any] = []
        for node in each:
            if node.is_argument:
                continue
            if id(node.value) in weak:
                node = _weakened(node)
            guard: Guard | None
            try:
                if node.reader is read_memory:
                    guard = Guard(node, object(), [], [], set())  # which never holds
                elif settled is not None:
                    guard = _settled_guard(node, settled.get(id(node)))
                else:
                    guard = _guard_of(node, captures, filled)
            except Exception as error:  # of this object nothing is known, of the others all the same
                tell_internal_error("making a guard", error)
                continue
            if guard is None:
                continue
            for i, x in enumerate(guard.values):
                if isinstance(x, Array) and id(x) in slots and id(x) not in read:
                    guard.slots[i] = slots[id(x)]
                elif (x is root and isinstance(x, types.FunctionType)) or (id(x) in weak and _can_be_weak(x)):
                    guard.values[i] = Root(x)
            guards.append(guard)
            if isinstance(node.value, functools._lru_cache_wrapper):
                remembered.append((node.value, memoized(node.value)))
        each = captures.add_values(filled) if filled else []
    for guard in guards:
        if weak:
            guard.node = guard.node.without_state()
        else:
            guard.node.settle_name()
    return guards, remembered


def _can_be_weak(value: Any) -> bool:
    return type(value).__weakrefoffset__ != 0


def _weakened(node: Node) -> Node:
    """The node of an object that the function has only a weak reference to: it must be able to die."""
    if not _can_be_weak(node.value):
        return node
    tag, keys, values = node.state
    state = ((type(node.value), tag), keys, values)
    return Node(Root(node.value, node.reader), read_weak, node.names, node.name, node.code, False, state)


def _guard_of(node: Node, captures: Captures, filled: list[Any]) -> Guard | None:
    """What must stay as it is in one object: the parts that are now what they were before tracing, and those that
    were found missing and filled in, as caches do.
    """
    tag, keys, values = node.state
    try:
        now_tag, now_keys, now_values = node.read()
    except Exception:
        return None
    ignored: set[Any] = set()
    if not same_tag(tag, now_tag):
        return None
    if (
        len(keys) != len(now_keys)
        or len(values) != len(now_values)
        or (any(map(operator.is_not, values, now_values)) or any(map(operator.is_not, keys, now_keys)))
    ):
        if not (keys or now_keys) or len(keys) < len(values) or len(now_keys) < len(now_values):
            if values or keys or any([isinstance(x, Tracer) for x in now_values]):
                return None
            if node.name.rpartition(".")[2] in captures.logs:
                return None
            filled += now_values  # a sequence that was empty, as caches are at first
            return Guard(node, now_tag, now_keys, list(now_values), set())
        before = dict(zip(keys, values, strict=False)) if values else dict.fromkeys(keys)
        now = dict(zip(now_keys, now_values, strict=False)) if now_values else dict.fromkeys(now_keys)
        changed = {
            key
            for key in {**before, **now}
            if not same_value(before.get(key, _GONE), now.get(key, _GONE))
        }
        for key in changed:
            x = now.get(key, _GONE)
            if _is_normalized(node, key, before.get(key), x) or (
                before.get(key) is None and _is_cache(node, key, x, captures)
            ):
                filled.append(x)
            else:
                ignored.add(key)
        tag, keys, values = without(tag, now_keys, now_values, ignored)
    if node.reader is read_namespace:
        ignored |= {key for key, x in zip(keys, values, strict=True) if isinstance(x, Tracer)}
    guard = Guard(node, *without(tag, keys, list(values), ignored), ignored)
    missing = _missing_names(node) if node.reader is read_namespace else None
    if missing is not None and ignored:
        missing = tuple([part for part in missing[0] if part not in ignored]), missing[1]
    return _with_missing(guard, missing)


def _settled_guard(node: Node, missing: Any) -> Guard | None:
    """The guard of an object that tracing has not changed."""
    tag, keys, values = node.state
    if node.reader is read_namespace and missing is None:
        missing = _missing_names(node)
    return _with_missing(Guard(node, tag, keys, list(values), set()), missing)


def _missing_names(node: Node) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    """The names that a namespace lacks, and what they mean among Python's own if it is a module's."""
    own = node.value
    if len(node.state[1]) == len(node.names):
        return (), None
    missing = tuple([name for name in node.names if name not in own])
    if not missing or "__builtins__" not in own:
        return missing, None
    built_in = vars(builtins)
    return missing, {name: built_in.get(name, ABSENT) for name in missing}


def _with_missing(guard: Guard, missing: Any) -> Guard | None:
    """The guard with the names that must stay missing; None if there is nothing to compare."""
    if missing is not None:
        guard.missing = list(missing[0])
        if missing[1] is not None:
            guard.built_in = {name: missing[1][name] for name in missing[0]}
        if not guard.keys and not guard.missing:
            return None
    elif not guard.keys and not guard.values and isinstance(guard.node.value, _FIXED):
        return None
    return guard


def _forgiving(guard: Guard) -> Guard | None:
    """A guard without the parts that are not what they were; None if nothing is left of it."""
    tag, keys, values = guard.read(guard.node.value)
    if not same_tag(tag, guard.tag) or not keys or len(keys) != len(values):
        return None
    now = dict(zip(keys, values, strict=True))
    before = dict(zip(guard.keys, guard.values, strict=True))

    def is_same(key: Any) -> bool:
        old, new = before.get(key, _GONE), now.get(key, _GONE)
        return old is new or same_value(old, new) or (type(old) is Root and new is old.function())

    ignored = {key for key in {**before, **now} if not is_same(key)}
    node, slots = guard.node, dict(zip(guard.keys, range(len(guard.keys)), strict=True))
    new = Guard(node, *without(guard.tag, guard.keys, guard.values, ignored), guard.ignored | ignored)
    new.slots = {i: guard.slots[slots[key]] for i, key in enumerate(new.keys) if slots[key] in guard.slots}
    new.missing = [name for name in guard.missing if name not in ignored]
    return new if new.keys or new.missing else None


def _is_normalized(node: Node, key: Any, before: Any, now: Any) -> bool:
    """Whether an object of a library brought an array of its own into another form."""
    kind = type(node.value)
    return (
        type(before) is type(now) is np.ndarray and not is_user_class(kind) and kind.__module__ not in _PLAIN
    )


def _is_cache(node: Node, key: Any, now: Any, captures: Captures) -> bool:
    """Whether a part that was missing before tracing was computed to be read, and is not a note of the trace."""
    if now is _GONE or now is None or isinstance(now, Tracer):
        return False
    kind = type(node.value)
    if any([isinstance(vars(parent).get(key), functools.cached_property) for parent in kind.__mro__]):
        return True
    only_stored, counted = captures.notes
    name = node.name if kind is types.CellType else key
    if type(now) is int and (name in counted or None in counted):
        return False
    if kind is types.CellType:
        return name in captures.loaded
    if isinstance(node.value, dict) and node.reader is not read_namespace:
        return not isinstance(key, str) or key not in only_stored
    return key in captures.loaded or key not in captures.stored


def _differences(guard: Guard, operands: list[Any]) -> list[str]:
    node = guard.node
    tag, keys, values = guard.read(node.value)
    before = dict(zip(guard.keys or range(len(guard.values)), guard.values, strict=False))
    now = dict(zip(keys or range(len(values)), values, strict=False))
    lines = []
    for key in {**before, **now}:
        old, new = before.get(key, _GONE), now.get(key, _GONE)
        if old is new or same_value(old, new) or type(old) is Root:
            continue
        code = node.names.get(key) if isinstance(node.names, dict) else node.code
        name = key if isinstance(key, str) else str(key)
        told = (
            f"changed from {short(old)} to {short(new)}"
            if short(old) != short(new)
            else f"changed: {short(new)}"
        )
        lines.append(f"`{node.text(key)}` in {_place(code, name)} {told}")
    return lines or [f"`{node.name}` in {_place(node.code, node.name)} changed"]


def _place(code: Any, name: str) -> str:
    return "a function object" if code is None else f"{code.co_filename}:{line_of(code, name)}"


def short(value: Any) -> str:
    """A value in a few words."""
    if value is _GONE:
        return "nothing"
    if isinstance(value, Array):
        return f"an array {value.aval.str_short()}"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape}" if value.size > 8 else repr(value)
    if callable(value) and hasattr(value, "__name__"):
        return f"`{value.__name__}`"
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}…"
