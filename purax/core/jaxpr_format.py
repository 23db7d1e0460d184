"""Prints jaxprs in JAX's textual form. Importing this module gives `Jaxpr` and `JaxprEqn` their `repr`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.display import program_html
from purax.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var

_WIDTH = 80


def variable_names() -> Iterator[str]:
    """a, b, …, z, ba, bb, …: the names of variables in order of appearance."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for number in itertools.count():
        name = ""
        while True:
            number, digit = divmod(number, 26)
            name = letters[digit] + name
            if not number:
                break
        yield name


class _Printer:
    def __init__(self, source_info: bool = False, name_stack: bool = False, print_shapes: bool = True):
        self.options = (source_info, name_stack, print_shapes)
        self.fresh = variable_names()
        self.names: dict[Var, str] = {}

    def name(self, var: Var) -> str:
        if type(var) is DropVar:
            return "_"
        if var not in self.names:
            self.names[var] = next(self.fresh)
        return self.names[var]

    def atom(self, atom) -> str:
        return repr(atom) if isinstance(atom, Literal) else self.name(atom)

    def binder(self, var: Var) -> str:
        return f"{self.name(var)}:{var.aval.str_short()}" if self.options[2] else self.name(var)

    def jaxpr(self, jaxpr: Jaxpr, indent: int) -> str:
        pad = " " * indent
        constants = " ".join(map(self.binder, jaxpr.constvars))
        arguments = " ".join(map(self.binder, jaxpr.invars))
        head = f"{{ lambda {constants}; {arguments}. let"
        lines = [self.equation(eqn, indent + 4) + self.remark(eqn) for eqn in jaxpr.eqns]
        results = ", ".join(map(self.atom, jaxpr.outvars))
        tail = f"in ({results}{',' if len(jaxpr.outvars) == 1 else ''}) }}"
        short = f"{head} {'; '.join(lines)} {tail}"
        if "\n" not in short and len(short) + indent <= _WIDTH and not any(self.options[:2]):
            return short
        body = "".join(f"\n{pad}    {line}" for line in lines)
        return f"{head}{body}\n{pad}  {tail}"

    def remark(self, eqn: JaxprEqn) -> str:
        """What stands after an equation: the user's line and the names of scopes, if they are asked for."""
        source_info, name_stack, _ = self.options
        remark = f"  # {eqn.source}" if source_info and eqn.source is not None else ""
        return f"{remark}  # [{eqn.scope}]" if name_stack else remark

    def equation(self, eqn: JaxprEqn, indent: int) -> str:
        operands = "".join(f" {self.atom(v)}" for v in eqn.invars)
        results = " ".join(map(self.binder, eqn.outvars))
        head, tail = f"{results} = {eqn.primitive.name}", operands
        if not eqn.params:
            return head + tail
        names = sorted(eqn.params, key=lambda name: (name != "name", name))
        # A called program names its variables from a again; programs that are part of an equation go on.
        inside = _Printer(*self.options) if eqn.primitive.name == "jit" else self
        fields = [f"{name}={inside.value(eqn.params[name], indent + 2)}" for name in names]
        short = f"{head}[{' '.join(fields)}]{tail}"
        if "\n" not in short and len(short) + indent <= _WIDTH:
            return short
        pad = " " * indent
        lines = "".join(f"\n{pad}  {field}" for field in fields)
        return f"{head}[{lines}\n{pad}]{tail}"

    def value(self, value: Any, indent: int) -> str:
        if isinstance(value, ClosedJaxpr):
            return self.jaxpr(value.jaxpr, indent)
        if isinstance(value, Jaxpr):
            return self.jaxpr(value, indent)
        if isinstance(value, tuple) and any(isinstance(item, ClosedJaxpr) for item in value):
            pad = " " * indent
            inner = "".join(f"\n{pad}  {self.value(item, indent + 2)}" for item in value)
            return f"({inner}\n{pad})"
        if isinstance(value, np.dtype):
            return dtypes.dtype_name(value)
        if callable(value) and hasattr(value, "__name__"):
            return value.__name__
        if isinstance(value, np.ndarray):
            return f"array{value.shape}"
        return str(value)


def format_jaxpr(
    jaxpr: Jaxpr, *, source_info: bool = False, name_stack: bool = False, print_shapes: bool = True
) -> str:
    """The text of a jaxpr, with variables named a, b, c, … in order of appearance.

    Args:
        jaxpr: the program.
        source_info: whether the user's line stands after each equation.
        name_stack: whether the names of its scopes do.
        print_shapes: whether variables are written with their types.
    """
    return _Printer(source_info, name_stack, print_shapes).jaxpr(jaxpr, 0)


def format_equation(eqn: JaxprEqn) -> str:
    """The text of one equation."""
    return _Printer().equation(eqn, 0)


def text_of_parameter(value: Any) -> str:
    """The text of a parameter of an equation, as programs are printed with it."""
    return _Printer().value(value, 0)


def _pretty_print(closed: ClosedJaxpr, **options: Any) -> str:
    return format_jaxpr(closed.jaxpr, **options)


Jaxpr.__repr__ = format_jaxpr  # type: ignore[method-assign, assignment]
Jaxpr.pretty_print = format_jaxpr  # type: ignore[attr-defined]
ClosedJaxpr.pretty_print = _pretty_print  # type: ignore[attr-defined]
Jaxpr._repr_html_ = lambda self: program_html(format_jaxpr(self))  # type: ignore[attr-defined]
ClosedJaxpr._repr_html_ = lambda self: program_html(format_jaxpr(self.jaxpr))  # type: ignore[attr-defined]
JaxprEqn.__repr__ = format_equation  # type: ignore[method-assign, assignment]
