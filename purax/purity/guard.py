"""A guard: what one object held when a function was traced, and whether it still holds it."""

from __future__ import annotations

import builtins
import operator
import weakref
from collections.abc import Sequence
from typing import Any

from purax.purity.contents import (
    Reader,
    memoized,
    read_function,
    read_namespace,
    same_key,
    same_value,
)
from purax.purity.nodes import Node
from purax.xla.array import DeviceArray

ABSENT = object()


class Guard:
    """What one object held.

    Attributes:
        node: of the object.
        tag, keys, values: as `contents` gives them.
        ignored: keys of parts that the function itself changed, or that do not matter.
        slots: by position of a purax array among `values`, its places among the operands of the program.
        missing: names of global variables that are none.
        built_in: what Python's own names stood for, those of global variables that are none.
    """

    __slots__ = ("built_in", "ignored", "keys", "kind", "missing", "node", "slots", "tag", "values")

    def __init__(self, node: Node, tag: Any, keys: list[Any], values: list[Any], ignored: set[Any]):
        self.node = node
        self.kind = node.kind
        self.tag = tag
        self.keys = keys
        self.values = values
        self.ignored = ignored
        self.slots: dict[int, list[int]] = {}
        self.missing: list[str] = []
        self.built_in: dict[str, Any] = {}

    def read(self, value: Any) -> tuple[Any, list[Any], list[Any]]:
        """What an object in the place of this one holds, without what is ignored."""
        tag, keys, values = self.node.reader(value, self.node.names)
        return without(tag, keys, values, self.ignored)

    def holds(self, operands: list[Any]) -> bool:
        """Whether the object still holds what it held; `operands` get the arrays that it holds instead."""
        node = self.node
        if type(node.value) is not self.kind:
            return False
        if self.built_in and not self.same_built_in():
            return False
        tag, keys, values = self.read(node.value)
        if len(keys) != len(self.keys) or len(values) != len(self.values) or not same_tag(tag, self.tag):
            return False
        if not all(map(operator.is_, keys, self.keys)) and not all(map(same_key, keys, self.keys)):
            return self._holds_in_another_order(keys, values, operands)
        return self.same_parts(values, operands)

    def same_built_in(self) -> bool:
        """Whether Python's own names stand for what they did."""
        now = vars(builtins)
        return all([now.get(name, ABSENT) is x for name, x in self.built_in.items()])

    def _holds_in_another_order(self, keys: list[Any], values: list[Any], operands: list[Any]) -> bool:
        """The attributes of objects have no order that a program would depend on, unless it asks for all of them."""
        if isinstance(self.node.value, (dict, set, frozenset)) and self.node.reader is not read_namespace:
            return False
        if self.node.names is None:
            return False
        try:
            places = {key: i for i, key in enumerate(keys)}
            order = [places[key] for key in self.keys]
        except (KeyError, TypeError):
            return False
        if not all([same_key(keys[i], key) for i, key in zip(order, self.keys, strict=True)]):
            return False
        return self.same_parts([values[i] for i in order] if values else values, operands)

    def same_parts(self, values: Sequence[Any], operands: list[Any]) -> bool:
        """Whether parts are the same objects, equal numbers, or arrays of the same type."""
        for i, (now, before) in enumerate(zip(values, self.values, strict=True)):
            if now is before or same_value(now, before):
                continue
            if type(before) is Root and now is before.function():
                continue
            if not replaces(now, before, self.slots.get(i), operands):
                return False
        return True


class Root:
    """Stands for an object that programs must not keep alive: the traced function itself, or one that the function
    has a weak reference to.
    """

    def __init__(self, function: Any, reader: Reader = read_function):
        self.function = weakref.ref(function)
        self.reader = reader


def read_root(value: Root, names: Any) -> tuple[Any, list[Any], list[Any]]:
    return value.reader(value.function(), names)


def read_weak(value: Root, names: Any) -> tuple[Any, list[Any], list[Any]]:
    target = value.function()
    if target is None:
        return ABSENT, [], []
    tag, keys, values = value.reader(target, names)
    return (type(target), tag), keys, values


def same_tag(a: Any, b: Any) -> bool:
    return a is b or bool(a == b)


def without(
    tag: Any, keys: list[Any], values: list[Any], ignored: set[Any]
) -> tuple[Any, list[Any], list[Any]]:
    if not ignored:
        return tag, keys, values
    kept = [i for i, key in enumerate(keys) if not _is_in(key, ignored)]
    return tag, [keys[i] for i in kept], [values[i] for i in kept] if values else values


def _is_in(key: Any, ignored: set[Any]) -> bool:
    try:
        return key in ignored
    except TypeError:
        return False


def replaces(now: Any, before: Any, slots: list[int] | None, operands: list[Any]) -> bool:
    """Whether an array can be given to the program in the place of another one; `operands` then have it."""
    if slots is None or type(now) is not type(before) or now.aval is not before.aval:
        return False
    if type(now) is not DeviceArray and (
        now.sharding != before.sharding or now.committed != before.committed
    ):
        return False
    for slot in slots:
        operands[slot] = now
    return True


def is_remembered(memoizing: list[tuple[Any, list[Any]]]) -> bool:
    """Whether functions with a cache still remember what they did."""
    for function, before in memoizing:
        now = {id(x) for x in memoized(function)}
        if not all([id(x) in now for x in before]):
            return False
    return True
