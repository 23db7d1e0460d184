"""Python control flow on traced values: functions rewritten so that it is recorded.

Every `if`, `while`, `for`, conditional expression, `and`, `or`, `not`, chained comparison, `assert` and call becomes a
call of `purax.python_control_flow.helpers`, which does what Python does unless a traced value decides. The blocks of a
statement become nested functions that share the variables of the function around them. Lines, files, globals,
closures and defaults are those of the original, so that errors name the user's lines.
"""

from __future__ import annotations
import __future__

import ast
import functools
import operator
import types
import weakref
from collections.abc import Callable
from typing import Any

from purax import errors
from purax.core import source
from purax.purity.ownership import is_user_code
from purax.python_control_flow import helpers, paths
from purax.python_control_flow.calls import converted, set_rewriter
from purax.python_control_flow.converter import PREFIX, Converter
from purax.python_control_flow.function_source import NotRewritable, class_name, function_node, refusals
from purax.python_control_flow.heap import Heap
from purax.python_control_flow.simplify import HELPERS

# -- functions

_codes: dict[types.CodeType, types.CodeType] = {}
_rewritten_codes: set[types.CodeType] = set()
_functions: weakref.WeakKeyDictionary[types.FunctionType, types.FunctionType] = weakref.WeakKeyDictionary()


def rewrite(function: types.FunctionType) -> types.FunctionType:
    """A function of the same meaning whose control flow is recorded where a traced value decides about it.

    A function that cannot be rewritten is returned as it is; `refusals` remembers why.
    """
    code = function.__code__
    if code in _rewritten_codes or code in refusals:
        return function
    if function not in _functions:
        try:
            if code not in _codes:
                _codes[code] = rewritten_code(function)
        except NotRewritable as reason:
            refusals[code] = str(reason)
            return function
        new = _codes[code]
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        cells[HELPERS] = types.CellType(helpers)
        closure = tuple(cells[variable] for variable in new.co_freevars)
        made = types.FunctionType(
            new, function.__globals__, function.__name__, function.__defaults__, closure
        )
        made.__kwdefaults__ = function.__kwdefaults__
        made.__dict__.update(function.__dict__)
        made.__qualname__, made.__module__, made.__doc__ = (
            function.__qualname__,
            function.__module__,
            function.__doc__,
        )
        _functions[function] = made
    return _functions[function]


def rewritten_code(function: types.FunctionType) -> types.CodeType:
    """The code of the rewritten function, compiled as part of the user's file."""
    code = function.__code__
    node = function_node(function)
    node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns = [], None
        node.name = f"{PREFIX}function"  # what calls itself by its name means the original
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    converter = Converter(code.co_filename, class_name(function))
    converter.variables = set(code.co_freevars)
    converter.convert(node)
    # Variables of enclosing functions must be variables of an enclosing function here too.
    outer = ast.parse(f"def outer({', '.join((*code.co_freevars, HELPERS))}): pass")
    enclosing: Any = outer.body[0]
    enclosing.body = [node if isinstance(node, ast.FunctionDef) else ast.Expr(node)]
    ast.fix_missing_locations(outer)
    flags = code.co_flags & _FUTURES
    try:
        module = compile(outer, code.co_filename, "exec", flags, True)
    except SyntaxError as error:
        raise NotRewritable(
            f"the rewritten form of `{function.__name__}` does not compile: {error}"
        ) from None
    [outer_code] = inner_codes(module)
    [found] = inner_codes(outer_code)
    return named(found, code.co_name, function.__qualname__)


_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names)
)


def inner_codes(code: types.CodeType) -> list[types.CodeType]:
    return [x for x in code.co_consts if isinstance(x, types.CodeType)]


def named(code: types.CodeType, name: str, qualified: str) -> types.CodeType:
    """Code whose blocks, which became functions, bear the name of the function they stand in."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            own = constant.co_name
            is_block = own.startswith(PREFIX)
            constant = named(
                constant, name if is_block else own, qualified if is_block else constant.co_qualname
            )
        constants.append(constant)
    new = code.replace(co_name=name, co_qualname=qualified, co_consts=tuple(constants))
    _rewritten_codes.add(new)
    return new


def retrace(
    record: Callable[[Callable], Any], function: Callable, error: Exception | None, before: Heap | None
) -> Any:
    """Records a function rewritten; `error` says why, None if it was not tried as it is. Puts back `before`."""
    if before is not None:
        before.restore()
    new = paths.exploring(converted(function))
    try:
        return record(new)
    except errors.ConcretizationTypeError as again:
        raise explained(again, "") from None
    except TypeError:
        if (
            error is not None and type(error) is errors.ConcretizationTypeError
        ):  # `int(x)` was not a bound of a loop
            raise explained(error, "") from None
        raise
    except NameError as missing:
        if "free variable" not in str(missing) or missing.name is None:
            raise
        message = f"`{missing.name}` is read before it is assigned"
        raise source.located(UnboundLocalError, message, at=_place(missing)) from None
    except RecursionError as deep:
        reason = "the function calls itself, and a traced value decides how often: write it as a loop"
        if error is None:
            raise source.located(RecursionError, reason, at=_place(deep)) from None
        raise explained(error, reason) from None


def _place(error: Exception) -> source.Location | None:
    """The innermost line of the user's that an error comes from."""
    place, step = None, error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if is_user_code(code) and code.co_filename != "<string>":  # as the code of named tuples
            place = source.Location(code.co_filename, step.tb_lineno, code.co_name)
        step = step.tb_next
    return place


def explained(error: Exception, reason: str) -> Exception:
    """The error, which is final, with the reason why the control flow was not rewritten."""
    frame = error.__traceback__
    while not reason and frame is not None:  # the innermost function that could not be rewritten
        code = frame.tb_frame.f_code
        frame = frame.tb_next
        if code in refusals:
            reason = refusals[code]
    if reason and not getattr(error, "_final", False):
        error.args = (
            f"{error.args[0]}\n  Its control flow could not be rewritten: {reason}.",
            *error.args[1:],
        )
    error._final = True  # type: ignore[attr-defined]
    return error


set_rewriter(rewrite)
