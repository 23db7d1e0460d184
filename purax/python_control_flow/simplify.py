"""Statements in terms of simpler ones, before they are rewritten: `match` as `if`, `a and (y := b)` as statements.

A `match` on structure that only Python can see (classes, mappings, starred patterns) stays what it is.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence
from typing import cast

from purax.python_control_flow.function_source import copied
from purax.python_control_flow.jumps import assign, at, name

HELPERS = "_purax"
_NAME = "_purax_plain_"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def simplified(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function's body, and of all blocks in it, in terms of simpler ones."""
    return _Simplifier().block(body)


def assigns(node: ast.expr) -> bool:
    """Whether an expression has a `:=`, which a function of its own would keep to itself."""
    return any(
        isinstance(part, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)) for part in ast.walk(node)
    )


class NoPlainForm(Exception):
    """A pattern that is not understood."""


class _Simplifier:
    def __init__(self) -> None:
        self.numbers = itertools.count(1)

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for statement in body:
            if not isinstance(statement, _SCOPES):
                for part in (
                    statement,
                    *getattr(statement, "handlers", ()),
                    *getattr(statement, "cases", ()),
                ):
                    for field in ("body", "orelse", "finalbody"):
                        if getattr(part, field, None):
                            setattr(part, field, self.block(getattr(part, field)))
            done += self.statement(statement)
        return done

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.Match):
            return self.match(statement)
        if isinstance(statement, ast.If) and is_assigning_logic(statement.test):
            before, statement.test = self.hoisted(cast(ast.BoolOp, statement.test))
            return [*before, statement]
        if isinstance(statement, ast.While) and is_assigning_logic(statement.test) and not statement.orelse:
            before, test = self.hoisted(cast(ast.BoolOp, statement.test))
            leave = at(ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], []), statement)
            statement.test = at(ast.Constant(True), statement)
            statement.body = [*before, leave, *statement.body]
        return [statement]

    def new_name(self) -> str:
        return f"{_NAME}{next(self.numbers)}"

    def hoisted(self, test: ast.BoolOp) -> tuple[list[ast.stmt], ast.expr]:
        """`a and (y := b)` as `t = a`, `if t: t = (y := b)`; and `t`."""
        result = self.new_name()
        first, *others = test.values
        done: list[ast.stmt] = [assign(result, first, test)]
        inner = done
        for operand in others:
            known = name(result) if isinstance(test.op, ast.And) else ast.UnaryOp(ast.Not(), name(result))
            step = at(ast.If(known, [assign(result, operand, test)], []), test)
            inner.append(step)
            inner = step.body
        return done, at(name(result), test)

    # -- match

    def match(self, statement: ast.Match) -> list[ast.stmt]:
        """A `match` as a chain of `if`s."""
        subject = self.new_name()
        try:
            cases = [self.case(part, subject) for part in statement.cases]
        except NoPlainForm:
            return [statement]
        chain: list[ast.stmt] = []
        for test, body in reversed(cases):
            chain = body if test is None else [at(ast.If(test, body, chain), body[0])]
        return [assign(subject, statement.subject, statement), *chain]

    def case(self, part: ast.match_case, subject: str) -> tuple[ast.expr | None, list[ast.stmt]]:
        """The condition of a case, None if it always matches, and what is done."""
        bound: dict[str, ast.expr] = {}
        tests = list(conditions(part.pattern, name(subject), bound))
        if part.guard is not None:
            tests.append(_Replaced(bound).visit(copied(part.guard)))
        place = part.body[0]
        test = None
        if tests:
            test = at(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests), part.pattern)
        return test, [*(assign(n, copied(x), place) for n, x in bound.items()), *part.body]


class _Replaced(ast.NodeTransformer):
    """Replaces the names that a pattern binds by what they stand for."""

    def __init__(self, bound: dict[str, ast.expr]):
        self.bound = bound

    def visit_Name(self, node):
        return at(copied(self.bound[node.id]), node) if node.id in self.bound else node


def conditions(pattern: ast.pattern, subject: ast.expr, bound: dict[str, ast.expr]) -> Iterator[ast.expr]:
    """The conditions under which a pattern matches, all of which must hold; `bound` gets the names that it binds."""
    if isinstance(pattern, ast.MatchValue):
        yield ast.Compare(copied(subject), [ast.Eq()], [pattern.value])
    elif isinstance(pattern, ast.MatchSingleton):
        yield ast.Compare(copied(subject), [ast.Is()], [ast.Constant(pattern.value)])
    elif isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            yield from conditions(pattern.pattern, subject, bound)
        if pattern.name is not None:
            bound[pattern.name] = subject
    elif isinstance(pattern, ast.MatchOr):
        ways = []
        for part in pattern.patterns:
            inner: dict[str, ast.expr] = {}
            tests = list(conditions(part, subject, inner))
            if inner or not tests:
                raise NoPlainForm
            ways.append(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests))
        yield ast.BoolOp(ast.Or(), ways)
    elif isinstance(pattern, ast.MatchSequence):
        if any(isinstance(part, ast.MatchStar) for part in pattern.patterns):
            raise NoPlainForm
        helper = ast.Attribute(name(HELPERS), "is_sequence_of", ast.Load())
        yield ast.Call(helper, [copied(subject), ast.Constant(len(pattern.patterns))], [])
        for i, part in enumerate(pattern.patterns):
            item = ast.Subscript(copied(subject), ast.Constant(i), ast.Load())
            yield from conditions(part, item, bound)
    else:
        raise NoPlainForm


def is_assigning_logic(test: ast.expr) -> bool:
    """Whether a condition is an `and` or `or` with a `:=` that may not be reached."""
    return isinstance(test, ast.BoolOp) and any(map(assigns, test.values[1:]))
