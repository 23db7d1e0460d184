"""Attributes, items and elements of what an expression may stand for, with the paths to them."""

from __future__ import annotations

import functools
import os
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from purax.core.array import Array
from purax.purity import impure_names
from purax.purity.captured_values import (
    ARGUMENT,
    FROM_LIBRARY,
    MOST_ELEMENTS,
    NOT_KNOWN,
    SCALARS,
    UNKNOWN,
    Bound,
    Fresh,
    Instance,
    Known,
    Method,
    Super,
    class_attribute,
    distinct,
)
from purax.purity.ownership import is_user_function, is_user_module
from purax.purity.paths import root, step

if TYPE_CHECKING:
    from purax.purity.captures import Captures

NAMES_OF_ELEMENTS = frozenset("items values get pop setdefault keys copy __getitem__".split())
_VIEWS = frozenset(("T", "flat", "real", "imag", "mT"))
_ABSENT = object()
_SLOT_KINDS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


def item_of(captures: Captures, base: Known, key: Known | None) -> tuple:
    value = base.value
    if value is os.environ:
        captures.suspicious = True
        return FROM_LIBRARY
    if isinstance(value, (Array, np.ndarray)):
        captures.guard((base,))
        return (base,) if isinstance(value, np.ndarray) else FROM_LIBRARY  # a view is a part of it
    own = getattr(type(value), "__getitem__", None)
    if is_user_function(own):
        guard_class(captures, type(value), "__getitem__")
        return captures.visit(own, [(base,), (key,) if key else FROM_LIBRARY], {})
    if (
        key is not None
        and isinstance(key.value, (*SCALARS, tuple))
        and isinstance(value, (list, tuple, dict))
    ):
        try:
            item = value[key.value]  # type: ignore[index]  # what does not fit is caught
        except Exception:
            return NOT_KNOWN
        return (Known(item, step("item", base.path, key.value)),)
    return elements_of(captures, base)


def elements_of(captures: Captures, base: Known) -> tuple:
    """What iterating over, or subscripting, a value may give."""
    value = base.value
    captures.guard((base,))
    if isinstance(value, (list, tuple)):
        return tuple([Known(x, step("item", base.path, i)) for i, x in enumerate(value[:MOST_ELEMENTS])])
    if isinstance(value, dict):
        pairs = list(value.items())[:MOST_ELEMENTS]
        return tuple([Known(x, step("item", base.path, k)) for k, x in pairs])
    if isinstance(value, (set, frozenset)):
        return tuple([Known(x, None) for x in list(value)[:MOST_ELEMENTS]])
    own = getattr(type(value), "__iter__", None)
    if is_user_function(own):
        guard_class(captures, type(value), "__iter__")
        return captures.visit(own, [(base,)], {})
    return FROM_LIBRARY


def attribute(captures: Captures, base: Any, name: str) -> tuple:
    """What `base.name` may be."""
    if type(base) is Known:
        return attribute_of(captures, base, name)
    if type(base) is Instance:
        found = class_attribute(base.kind, name)
        if is_user_function(found):
            return (Bound(found, (base,)),)
        if isinstance(found, property) and is_user_function(found.fget):
            return captures.visit(found.fget, [(base,)], {})
        if isinstance(found, (staticmethod, classmethod)):
            return (Known(getattr(base.kind, name), None),)
        if impure_names.method_is_impure(base.kind, name):
            captures.suspicious = True
        return (Known(found, None),) if found is not None and not callable(found) else FROM_LIBRARY
    if type(base) is Super:
        return attribute_of_super(captures, base, name)
    if type(base) is Fresh:
        return (base,) if name in NAMES_OF_ELEMENTS else FROM_LIBRARY
    if base is ARGUMENT:
        if hasattr(Array, name):
            return FROM_LIBRARY
        if name in impure_names.MUTATING_NAMES:
            captures.suspicious = True
        return (Fresh((ARGUMENT,)),) if name in NAMES_OF_ELEMENTS else (ARGUMENT,)
    if base is UNKNOWN:
        return NOT_KNOWN
    return FROM_LIBRARY


def attribute_of_super(captures: Captures, base: Super, name: str) -> tuple:
    for own in base.own:
        kind = own.kind if type(own) is Instance else type(own.value) if type(own) is Known else base.kind
        order = kind.__mro__ if base.kind in kind.__mro__ else base.kind.__mro__
        for parent in order[order.index(base.kind) + 1 :]:
            found = parent.__dict__.get(name)
            if is_user_function(found):
                guard_class(captures, parent, name)
                return (Bound(found, base.own),)
            if found is not None:
                changes = type(own) is Known and impure_names.changes_its_object(kind, name)
                return (Method(own, name),) if changes else FROM_LIBRARY
    return FROM_LIBRARY


def attribute_of(captures: Captures, base: Known, name: str) -> tuple:
    value, path = base
    if isinstance(value, types.ModuleType):
        found = value.__dict__.get(name, _ABSENT)
        if found is _ABSENT:
            try:
                found = getattr(value, name)
            except Exception:
                return NOT_KNOWN
        # Of a library, only what can be changed is of interest: `sys.argv`.
        compared = is_user_module(value) or type(found) in (list, dict, set)
        inner = step("attr", path or root("object", value, value.__name__), name) if compared else None
        return (Known(found, inner),)
    if isinstance(value, (Array, np.ndarray)):
        if isinstance(value, np.ndarray):
            if name in _VIEWS:
                return (base,)
            if name in impure_names.MUTATING_NAMES or name in impure_names.VIEWING_NAMES:
                return (Method(base, name),)
        captures.guard((base,))
        return FROM_LIBRARY
    if isinstance(value, SCALARS) and not hasattr(value, "__dict__"):
        captures.guard((base,))
        return FROM_LIBRARY
    if value is os.environ:
        captures.suspicious = True
        return FROM_LIBRARY
    inner = step("attr", path, name)
    if isinstance(value, type):
        try:
            return (Known(getattr(value, name), inner),)
        except AttributeError:
            return NOT_KNOWN
    kind = type(value)
    found = class_attribute(kind, name)
    own = getattr(value, "__dict__", None)
    if isinstance(found, property):
        if is_user_function(found.fget):
            if path is not None:
                guard_class(captures, kind, name)
            return captures.visit(found.fget, [(base,)], {})
    elif isinstance(own, dict) and name in own:
        return (Known(own[name], inner),)
    elif isinstance(found, functools.cached_property) and is_user_function(found.func):
        return captures.visit(found.func, [(base,)], {})
    elif isinstance(found, types.FunctionType):
        if not is_user_function(found):
            return (Method(base, name),)
        if path is not None:
            captures.leaf(Known(found, step("method", path, name)), "identity")
        return (Bound(found, (base,)),)
    elif isinstance(found, _SLOT_KINDS):
        return (Method(base, name),)
    elif hasattr(found, "__wrapped__") and callable(found) and hasattr(found, "__get__"):
        return (Bound(found, (base,)),)  # a jitted or cached method
    try:
        return (Known(getattr(value, name), inner),)
    except Exception:
        return NOT_KNOWN


def all_elements(captures: Captures, values: tuple) -> tuple:
    found: list = []
    for value in values:
        if type(value) is Known:
            found.extend(elements_of(captures, value))
        elif type(value) is Fresh:
            found.extend(value.elements)
        elif value in (ARGUMENT, UNKNOWN):
            found.append(value)
    return tuple(distinct(found)) or FROM_LIBRARY


def guard_class(captures: Captures, kind: type, name: str) -> None:
    """The function depends on what a class has under a name: a method that Python calls, a property."""
    captures.leaf(
        Known(getattr(kind, name), step("attr", root("object", kind, kind.__name__), name)), "identity"
    )
