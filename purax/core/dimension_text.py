"""Shapes and constraints written as text: `"b, 2*s + 1, floordiv(s, 4)"`, `"mod(s, 8) == 0"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from purax.core import source
from purax.core.dimensions import DimSize, SymbolicDimension, as_size, max_dim, min_dim, variable
from purax.errors import shown

_TOKEN = re.compile(r"\s*(?:(\d+(?![\w]))|([^\W\d]\w*)|(//|\.\.\.|==|>=|<=|[-+*(),^%<>=/_]))")
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max_dim,
    "min": min_dim,
}


class Parser:
    """Reads the tokens of a text, one after the other."""

    def __init__(self, text: str, what: str, scope: Any):
        self.text = text
        self.what = what
        self.scope = scope
        self.where = ""
        self.tokens: list[str] = []
        self.ends: list[int] = []
        self.at = 0
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                raise source.located(
                    ValueError,
                    f"syntax error in {what} {shown(text)}: cannot read {text[place:].strip()[:20]!r}",
                )
            self.tokens.append(found[0].strip())
            place = found.end()
            self.ends.append(place)

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        """The next token if it is one of those wanted, else an empty text."""
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def fail(self, problem: str) -> NoReturn:
        done = self.text[: self.ends[self.at - 1]] if self.at else ""
        rest = self.text[len(done) :]
        raise source.located(
            ValueError,
            f"syntax error in {self.what} {shown(self.text)}{self.where}: {problem}. Parsed {done!r}, remaining "
            f"{rest.strip()!r}.",
        )

    def require(self, wanted: str) -> None:
        if not self.take(wanted):
            self.fail(f"expecting {wanted!r} but found {self.next or 'the end'!r}")

    # -- expressions

    def sum(self) -> DimSize:
        total: Any = -self.product() if self.take("-") else (self.take("+"), self.product())[1]
        while sign := self.take("+", "-"):
            part = self.product()
            total = total + part if sign == "+" else total - part
        return total

    def product(self) -> DimSize:
        total: Any = self.power()
        while sign := self.take("*", "//", "%"):
            part = self.power()
            total = total * part if sign == "*" else total // part if sign == "//" else total % part
        return total

    def power(self) -> DimSize:
        base: Any = self.factor()
        if self.take("^"):
            exponent = self.next
            if not exponent.isdigit():
                self.fail("expecting a number after '^'")
            self.at += 1
            return base ** int(exponent)
        return base

    def factor(self) -> DimSize:
        token = self.next
        if token.isdigit():
            self.at += 1
            return int(token)
        if self.take("("):
            inner = self.sum()
            self.require(")")
            return inner
        if self.take("-"):
            return -self.factor()
        if token and (token[0].isalpha() or (token[0] == "_" and len(token) > 1)):
            self.at += 1
            if token in _FUNCTIONS and self.next == "(":
                self.at += 1
                x = self.sum()
                self.require(",")
                y = self.sum()
                self.require(")")
                return _FUNCTIONS[token](x, y)
            if token == "non_negative" and self.next == "(":
                self.at += 1
                x = self.sum()
                self.require(")")
                return max_dim(x, 0)
            return variable(self.scope, token)
        self.fail(f"expecting a dimension but found {token or 'the end'!r}")


def parse_constraint(text: str, scope: Any) -> tuple[DimSize, str, DimSize]:
    """A constraint as its left side, `==`, `>=` or `<=`, and its right side."""
    parser = Parser(text, "the constraint", scope)
    if not any(relation in parser.tokens for relation in ("==", ">=", "<=")):
        raise source.located(
            ValueError,
            f"Constraint parsing error: must contain one of '==' or '>=' or '<=', got {shown(text)}",
        )
    left = parser.sum()
    relation = parser.take("==", ">=", "<=")
    if not relation:
        parser.fail(f"expecting '==', '>=' or '<=' but found {parser.next!r}")
    right = parser.sum()
    if parser.next:
        parser.fail(f"expecting the end but found {parser.next!r}")
    return left, relation, right


def parse_shape(
    text: str | None, scope: Callable[[], Any], like: Sequence[Any] | None
) -> tuple[DimSize, ...]:
    """The shape that a text stands for; `scope` gives that of its variables."""
    given = "..." if text is None else text
    parser = Parser(given, "symbolic shape", None)
    if parser.tokens and any(token[0].isalpha() for token in parser.tokens):
        parser.scope = scope()
    whole = bool(parser.tokens) and parser.tokens[0] == "(" and _closes_last(parser.tokens)
    if whole:
        parser.at += 1
        parser.tokens.pop()
    shape: list[DimSize] = []
    while parser.next:
        position = len(shape)
        parser.where = f" in dimension {position}"
        if parser.take("..."):
            known = _given(parser, like)
            shape += [_filled(parser, known, i) for i in range(position, len(known))]
            parser.take(",")
            if parser.next:
                parser.fail("'...' must be last")
            break
        if parser.next == "_":
            parser.at += 1
            shape.append(_filled(parser, _given(parser, like), position))
        else:
            size = parser.sum()
            if like is not None and position < len(like):
                expected = like[position]
                if isinstance(size, int) and isinstance(expected, int) and size != expected:
                    parser.fail(f"different size {size} for known dimension; like={tuple(like)}")
            shape.append(size)
        if parser.next and not parser.take(","):
            parser.fail(f"expecting ',' but found {parser.next!r}")
    if like is not None and len(like) != len(shape):
        raise source.located(
            ValueError,
            f"syntax error in symbolic shape {shown(given)}: it has {len(shape)} dimensions, and like={tuple(like)} "
            f"has {len(like)}",
        )
    return tuple(shape)


def _closes_last(tokens: Sequence[str]) -> bool:
    """Whether the bracket that the first token opens is closed by the last."""
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if not depth:
            return i == len(tokens) - 1
    return False


def _given(parser: Parser, like: Sequence[Any] | None) -> Sequence[Any]:
    if like is None:
        parser.fail("the placeholders '_' and '...' need `like`, the shape to take dimensions from")
    return like


def _filled(parser: Parser, like: Sequence[Any], i: int) -> Any:
    if i >= len(like) or like[i] is None:
        parser.fail(f"dimension {i} is not known from like={tuple(like)}")
    return as_size(like[i]) if not isinstance(like[i], SymbolicDimension) else like[i]
