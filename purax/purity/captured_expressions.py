"""What the expressions of a function's summary may stand for, in one call of it."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

from purax.purity.bytecode import Call, Expression, Summary
from purax.purity.captured_attributes import attribute, elements_of, item_of
from purax.purity.captured_calls import call_value
from purax.purity.captured_values import (
    ARGUMENT,
    FROM_LIBRARY,
    LIBRARY,
    NOT_KNOWN,
    UNKNOWN,
    Bound,
    Fresh,
    Inner,
    Known,
    Row,
    Super,
    class_attribute,
    distinct,
    is_mutable,
)
from purax.purity.ownership import is_user_function
from purax.purity.paths import root

if TYPE_CHECKING:
    from purax.purity.captures import Captures


class Environment:
    """One call of a function: what its names stand for."""

    __slots__ = ("calls", "code", "free", "inside", "memo", "namespace", "params", "summary")

    def __init__(self, summary: Summary, namespace: dict, free: dict, params: dict, inside: frozenset):
        self.summary = summary
        self.code = summary.code
        self.namespace = namespace
        self.free = free
        self.params = params
        self.inside = inside  # names of free variables that belong to the traced function itself
        self.memo: dict[int, tuple] = {}
        self.calls: dict[int, tuple] = {}


def evaluate(captures: Captures, expression: Expression, environment: Environment) -> tuple:
    """The values that an expression may have."""
    kind = expression[0]
    while kind == "local":
        expression = expression[2]
        kind = expression[0]
    if kind == "const":
        return (Known(expression[1], None),)
    if kind == "param":
        return environment.params.get(expression[1], NOT_KNOWN)
    found = environment.memo.get(id(expression))
    if found is None:
        environment.memo[id(expression)] = NOT_KNOWN  # of an expression that contains itself
        found = _EVALUATE[kind](captures, expression, environment)
        environment.memo[id(expression)] = found
    return found


def _eval_unknown(captures: Captures, expression, environment):
    return NOT_KNOWN


def _eval_global(captures: Captures, expression, environment):
    name, namespace = expression[1], environment.namespace
    if name in namespace:
        value = namespace[name]
        captures.globals.append((namespace, name, value))
        if is_mutable(value) and not isinstance(value, types.BuiltinFunctionType):
            captures.fixed = False
        return (Known(value, root("global", namespace, name)),)
    builtins = namespace.get("__builtins__")
    builtins = builtins if isinstance(builtins, dict) else getattr(builtins, "__dict__", {})
    if name in builtins:
        return (Known(builtins[name], None),)
    return NOT_KNOWN


def _eval_free(captures: Captures, expression, environment):
    return environment.free.get(expression[1], NOT_KNOWN)


def _eval_any(captures: Captures, expression, environment):
    return tuple(distinct([v for e in expression[1] for v in evaluate(captures, e, environment)]))


def _eval_fresh(captures: Captures, expression, environment):
    return (Fresh(tuple([v for e in expression[1] for v in evaluate(captures, e, environment)])),)


def _eval_iterator(captures: Captures, expression, environment):
    return evaluate(captures, expression[1], environment)


def _eval_import(captures: Captures, expression, environment):
    module = sys.modules.get(expression[1].partition(".")[0])
    return (Known(module, None),) if module is not None else FROM_LIBRARY


def _eval_super(captures: Captures, expression, environment):
    kinds = [v.value for v in evaluate(captures, expression[1], environment) if type(v) is Known]
    return tuple([Super(k, evaluate(captures, expression[2], environment)) for k in kinds]) or NOT_KNOWN


def _eval_function(captures: Captures, expression, environment):
    _, code, closure, defaults, _ = expression
    if code is None:
        return NOT_KNOWN
    free, inside = {}, set()
    for name, value in closure.items():
        if value[0] == "free":
            if name in environment.inside:
                inside.add(name)
        else:
            inside.add(name)
            value = ("any", (environment.summary.variables.get(name, value),))
        free[name] = evaluate(captures, value, environment)
    elements = defaults[1] if defaults[0] == "fresh" else ()
    values = tuple([evaluate(captures, e, environment) for e in elements])
    return (Inner(code, free, values, environment.namespace, frozenset(inside)),)


def _eval_attr(captures: Captures, expression, environment):
    _, base, name = expression
    found: list = []
    for value in evaluate(captures, base, environment):
        found.extend(attribute(captures, value, name))
    return tuple(distinct(found))


def _eval_item(captures: Captures, expression, environment):
    _, base, key = expression
    found: list = []
    keys = evaluate(captures, key, environment)
    key_value = keys[0] if len(keys) == 1 and type(keys[0]) is Known else None
    for value in evaluate(captures, base, environment):
        if type(value) is Known:
            found.extend(item_of(captures, value, key_value))
        elif type(value) is Fresh:
            found.extend(value.elements or FROM_LIBRARY)
        elif type(value) is Row:
            place = key_value.value if key_value is not None else None
            if isinstance(place, int) and place < len(value.columns):
                found.extend(value.columns[place])
            else:
                found.extend(v for column in value.columns for v in column)
        else:
            found.append(ARGUMENT if value is ARGUMENT else UNKNOWN if value is UNKNOWN else LIBRARY)
    return tuple(distinct(found))


def _eval_elements(captures: Captures, expression, environment):
    found: list = []
    for value in evaluate(captures, expression[1], environment):
        if type(value) is Known:
            found.extend(elements_of(captures, value))
        elif type(value) is Fresh:
            found.extend(value.elements or FROM_LIBRARY)
        elif type(value) is Row:
            found.extend(v for column in value.columns for v in column)
        else:
            found.append(ARGUMENT if value is ARGUMENT else UNKNOWN if value is UNKNOWN else LIBRARY)
    return tuple(distinct(found))


def evaluate_call(captures: Captures, call: Call, environment: Environment) -> tuple:
    """Follows a call; returns what it may give."""
    found = environment.calls.get(id(call))
    if found is not None:
        return found
    environment.calls[id(call)] = FROM_LIBRARY
    args = [evaluate(captures, e, environment) for e in call.args]
    kwargs = {name: evaluate(captures, e, environment) for name, e in call.kwargs}
    spread = [evaluate(captures, e, environment) for e in call.spread]
    results: list = []
    for callee in grouped(captures, evaluate(captures, call.callee, environment)):
        if type(callee) is Known and callee.value is super and not args:
            results.extend(_super(captures, environment))
        elif type(callee) is Known and callee.value is globals:
            results.append(Known(environment.namespace, None))
        else:
            results.extend(call_value(captures, callee, args, kwargs, spread))
    environment.calls[id(call)] = found = tuple(distinct(results)) or FROM_LIBRARY
    return found


def grouped(captures: Captures, callees: tuple) -> list:
    """What is called, with the calls of one method on several objects as one."""
    if len(callees) < 2:
        return list(callees)
    groups: dict[int, Bound] = {}
    others: list = []
    for callee in callees:
        if type(callee) is Known and not isinstance(callee.value, (type, types.FunctionType)):
            own = class_attribute(type(callee.value), "__call__")
            if is_user_function(own):
                if callee.path is not None:
                    captures.leaf(callee, "type")
                callee = Bound(own, (callee,))
        if type(callee) is Bound:
            found = groups.get(id(callee.function))
            own = callee.own if found is None else found.own + callee.own
            groups[id(callee.function)] = Bound(callee.function, own)
        else:
            others.append(callee)
    return [*groups.values(), *others]


def _eval_call(captures: Captures, expression, environment):
    return evaluate_call(captures, expression[1], environment)


def _super(captures: Captures, environment: Environment) -> tuple:
    kinds = environment.free.get("__class__", ())
    first = environment.code.co_varnames[:1]
    own = environment.params.get(first[0], NOT_KNOWN) if first else NOT_KNOWN
    return tuple([Super(k.value, own) for k in kinds if type(k) is Known]) or NOT_KNOWN


_EVALUATE = {
    "unknown": _eval_unknown,
    "null": _eval_unknown,
    "global": _eval_global,
    "free": _eval_free,
    "any": _eval_any,
    "fresh": _eval_fresh,
    "iterator": _eval_iterator,
    "import": _eval_import,
    "super": _eval_super,
    "function": _eval_function,
    "attr": _eval_attr,
    "item": _eval_item,
    "elements": _eval_elements,
    "call": _eval_call,
}
