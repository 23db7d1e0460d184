"""What rewritten stores and subscripts call: with traced indices and values, also of lists, dicts and NumPy arrays."""

from __future__ import annotations

import operator
import types
from typing import Any

import numpy as np

from purax.core.source import located
from purax.interpreters.arguments import to_array
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import not_
from purax.purity.ownership import is_user_code
from purax.python_control_flow import choices, paths
from purax.python_control_flow.buffers import (
    Buffer,
    check_bounds,
    check_index,
    holds_traced,
    holds_tracer,
    is_basic,
    iterated,
    plain_index,
    value_of,
    with_traced,
)
from purax.python_control_flow.truth import converted_by, load
from purax.python_control_flow.values import is_array, is_traced, same
from purax.tree.registry import tree_flatten

_MOST_ITEMS = 256


def store(value: Any, container: Any, index: Any) -> None:
    """container[index] = value"""
    if isinstance(container, np.ndarray):
        paths.check_free(container)
    value = value_of(value) if isinstance(container, (np.ndarray, Buffer)) else value
    if type(container) is np.ndarray and (holds_tracer(value) or holds_traced(index)):
        buffer = with_traced(container)
        if buffer is not None:
            container = buffer
    elif type(container) is list and is_traced(index):
        _store_in_list(value, container, index)
        return
    elif type(container) is np.flatiter and holds_tracer(value):
        buffer = with_traced(container.base)
        container = container if buffer is None else buffer.flat
    elif (method := _users_method(container, "__setitem__")) is not None:
        method(container, index, value)
        return
    elif isinstance(container, dict) and is_traced(index):
        for key in _keys_for(container, index, "a new key cannot depend on a traced value"):
            container[key] = _choose(index == key, value, container[key])
        return
    else:
        choices.resolve_array(container)
    container[value_of(index)] = value


def _keys_for(items: dict, index: Any, reason: str) -> list[Any]:
    """The keys of a dict that a traced number may be; that it is one of them is checked when the program runs."""
    keys = [key for key in items if isinstance(key, (int, float))]
    if not keys or len(keys) > _MOST_ITEMS or index.aval.shape or _is_chosen(index):
        hash(index)  # raises, or goes both ways
    missing = index != keys[0]
    for key in keys[1:]:
        missing = missing & (index != key)
    check_index(missing, KeyError, f"the key is none of {keys!r:.200}, and {reason}")
    return keys


def _is_chosen(x: Any) -> bool:
    return _choice_tests[0](x)


_choice_tests: list[Any] = [lambda x: False]


def set_choice_test(is_choice: Any) -> None:
    """Sets what tells whether a traced value would be known if the function went both ways."""
    _choice_tests[:] = [is_choice]


def _store_in_list(value: Any, items: list, index: Any) -> None:
    """items[index] = value, where it is not known which item that is."""
    from_start = _position(items, index)
    for i, item in enumerate(items):
        items[i] = _choose(from_start == i, value, item)


def _choose(test: Any, value: Any, other: Any) -> Any:
    return _choosers[0](test, lambda: value, lambda: other, "", "an item of a list")


_choosers: list[Any] = []


def set_chooser(choose: Any) -> None:
    """Sets what gives one of two values, as `choose(test, then, otherwise, place, label)`."""
    _choosers[:] = [choose]


def _position(items: Any, index: Any) -> Any:
    """A traced index, counted from the beginning; an index out of range is an error when the program runs."""
    if index.aval.dtype == np.bool_ and not index.aval.shape:
        index = convert_element_type(index, np.dtype(np.int32))
    if len(items) > _MOST_ITEMS or index.aval.shape or index.aval.dtype.kind not in "iu":
        operator.index(index)  # raises
    count = len(items)
    check_index(((index >= count) | (index < -count)), IndexError, "list index out of range")
    return index + (index < 0) * count


def item(container: Any, index: Any) -> Any:
    """container[index]"""
    is_slice = type(index) is slice and type(container) is np.ndarray
    if is_traced(index) or (is_slice or type(index) is tuple) and holds_traced(index):
        if type(container) is np.ndarray and container.dtype.kind in "biufc":
            return _picked(container, index)
        elif type(container) in (str, bytes, bytearray) and container and is_traced(index):
            return container[_known(_position(container, index), len(container))]
        elif type(container) in (list, tuple) and container and is_traced(index):
            position = _position(container, index)
            if not _are_alike(container):
                return load(container[_known(position, len(container))])
            found = container[0]
            for i, other in enumerate(container[1:], 1):
                found = _choose(position == i, other, found)
            return found
        elif isinstance(container, dict) and is_traced(index) and not _may_miss(container):
            keys = _keys_for(container, index, "there is no item for it")
            found = container[keys[0]]
            for key in keys[1:]:
                found = _choose(index == key, container[key], found)
            return found
    elif (method := _users_method(container, "__getitem__")) is not None:
        return load(method(container, index))
    if type(index) is slice and type(container) in _SEQUENCES and holds_traced(index):
        index = _known_slice(index, len(container))
    return load(container[value_of(index)])


def _users_method(x: Any, name: str) -> Any:
    """The rewritten form of a method that Python would call itself, if it is one of the user's."""
    method = getattr(type(x), name, None)
    is_users = isinstance(method, types.FunctionType) and is_user_code(method.__code__)
    return converted_by[0](method) if is_users else None


_SEQUENCES = (list, tuple, str, bytes, bytearray)


def _are_alike(items: Any) -> bool:
    """Whether a branch may give one of some items as one value."""
    flat = [tree_flatten(load(x)) for x in items]
    leaves, tree = flat[0]
    if any(other != tree for _, other in flat):
        return False
    return all(is_array(x) or all(same(x, others[i]) for others, _ in flat) for i, x in enumerate(leaves))


def _known(position: Any, count: int) -> int:
    """Which number from 0 to `count` - 1 a traced one is: the function goes all ways."""
    message = "a Python sequence of what is no number is indexed by a traced value"
    error = located(TypeError, f"{message}: there are too many ways to go through")
    choices.resolve(position, error)
    for number in range(count - 1):
        if _deciders[0](position == number, message):
            return number
    return count - 1


def _known_slice(index: slice, count: int) -> slice:
    """A slice with known bounds that picks the same of a sequence of `count` items: the function goes all ways."""
    if index.step is not None and (is_traced(index.step) or operator.index(index.step) < 0):
        return index
    bounds = []
    for bound in (index.start, index.stop):
        if is_traced(bound):
            if bound.aval.shape or bound.aval.dtype.kind not in "iu" or count > _MOST_ITEMS:
                operator.index(bound)  # raises
            bound = bound + (bound < 0) * count
            low, high = (bound <= 0), (bound >= count)
            bound = _known(bound * not_(low | high) + high * count, count + 1)
        bounds.append(bound)
    return slice(bounds[0], bounds[1], index.step)


_deciders: list[Any] = []


def set_decider(decide: Any) -> None:
    """Sets what decides about a condition that cannot be recorded, as `decide(test, reason)`."""
    _deciders[:] = [decide]


def _picked(array: np.ndarray, index: Any) -> Any:
    """array[index], where the index is traced: what NumPy would give a view of must not be taken for a copy."""
    index = plain_index(index)
    check_bounds(array.shape, index)
    found = to_array(array)[index]
    if found.ndim and is_basic(index):
        buffer = with_traced(array)
        if buffer is not None:
            return buffer[index]
    return found


def _may_miss(items: dict) -> bool:
    """Whether a dict knows what to do about a key that it does not have."""
    return hasattr(type(items), "__missing__")


def get_item(items: dict, key: Any, default: Any = None) -> Any:
    """items.get(key, default)"""
    if not is_traced(key) or key.aval.shape or len(items) > _MOST_ITEMS or _is_chosen(key):
        return load(items.get(key, default))
    found = default
    for known in [known for known in items if isinstance(known, (int, float))]:
        found = _choose(key == known, items[known], found)
    return found


def augment(operation: Any, target: Any, value: Any) -> Any:
    """What `target += value` assigns to the name of the target."""
    if isinstance(target, np.ndarray):
        paths.check_free(target)
    if type(target) is np.ndarray and holds_tracer(value):
        buffer = with_traced(target)
        target = target if buffer is None else buffer
    choices.resolve_array(target)
    return operation(target, value)


def augment_item(operation: Any, container: Any, index: Any, compute: Any) -> None:
    """container[index] += compute()"""
    held = iterated(container)  # computing the value may let all names of an array mean a buffer
    value = compute()
    container = held.array if held is not container else container
    if type(container) is np.ndarray and (holds_tracer(value) or holds_traced(index)):
        buffer = with_traced(container)
        container = container if buffer is None else buffer
    choices.resolve_array(container)
    mask = value_of(index)
    if isinstance(container, Buffer) and is_traced(mask) and mask.aval.dtype == np.bool_ and mask.aval.shape:
        if not np.ndim(value_of(value)):
            changed = container.value.at[mask].apply(lambda x: operation(x, value_of(value)))
            container.write(convert_element_type(changed, container.value.dtype))
            return
    store(operation(item(container, index), value), container, index)
