"""Public functions that are rows of a table: functions of one family differ in name, primitive and words alone.

A family is a function that takes a row and gives the function, by a template written once. `define` makes an ordinary
function of the template: one of the module that the row stands in, with its own name, docstring, signature and example,
so that `help()`, pickle, doctest and editors see no difference; its source is the template's. What a template needs are
variables of the family around it, since its globals are those of that module.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any


def define(template: Any, name: str, doc: str, parameters: str = "") -> Any:
    """The function of a row; the caller is the family, its caller the module with the row.

    Args:
        template: a function of the family.
        name: of the function.
        doc: its docstring.
        parameters: names of its parameters in place of the template's, separated by spaces.

    >>> def power(name, exponent, summary):
    ...     def function(x):
    ...         return x**exponent
    ...
    ...     return define(function, name, summary, "base")
    >>> square = power("square", 2, "x times x.")
    >>> square(3), square.__name__, square.__doc__, square.__code__.co_varnames
    (9, 'square', 'x times x.', ('base',))
    """
    variables = sys._getframe(2).f_globals
    code, own = template.__code__, tuple(parameters.split())
    given = dict(zip(code.co_varnames, own, strict=False))
    code = code.replace(
        co_name=name,
        co_qualname=name,
        co_varnames=own + code.co_varnames[len(own) :],
    )
    function = FunctionType(code, variables, name, template.__defaults__, template.__closure__)
    function.__kwdefaults__ = template.__kwdefaults__
    function.__annotations__ = {given.get(key, key): kind for key, kind in template.__annotations__.items()}
    function.__module__ = variables["__name__"]
    function.__doc__ = doc
    return function


def with_example(words: str, imports: str, call: str, result: str) -> str:
    """A docstring: words, and an example of a call with its result.

    >>> with_example("The sum.", "import math", "math.fsum([1, 2])", "3.0")
    'The sum.\\n\\n>>> import math\\n>>> math.fsum([1, 2])\\n3.0\\n'
    """
    return f"{words}\n\n>>> {imports}\n>>> {call}\n{result}\n"
