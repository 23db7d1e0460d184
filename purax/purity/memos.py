"""Whether an assignment fills a cache: then it is no side effect, as long as no traced value goes into it."""

from __future__ import annotations

import types
from typing import Any

from purax.purity.bytecode import Call, Expression, Write, same_expression, summarize
from purax.purity.impure_names import MUTATING_NAMES


def is_memo(code: types.CodeType, site: Write) -> bool:
    """Whether the code looks up what it fills: `if key not in cache: cache[key] = …`, and not a count of something."""
    base = _bare(site.base)
    target = ("attr", base, site.name) if site.kind == "attribute" else base
    if _mentions(site.value, target):
        return False
    summary = summarize(code)
    read = [use.value for use in summary.uses] + [value for _, value in summary.reads]
    if any(same_expression(_bare(value), target) for value in read):
        return True
    return any(
        call.callee[0] == "attr" and call.callee[2] in ("get", "__contains__")
        and same_expression(_bare(call.callee[1]), target)
        for call in summary.calls
    )  # fmt: skip


def changes_result(code: types.CodeType, call: Call) -> bool:
    """Whether the code changes what a call gave it: `groups.setdefault(key, []).append(1)`."""
    summary = summarize(code)
    changed = [write.base for write in summary.writes if not is_memo(code, write)]
    changed += [c.callee[1] for c in summary.calls if c.callee[0] == "attr" and c.callee[2] in MUTATING_NAMES]
    found = (_bare(expression) for expression in changed)
    return any(base[0] == "call" and base[1].offset == call.offset for base in found)


def _bare(expression: Expression) -> Expression:
    """An expression without the local names that it went through."""
    if expression[0] == "local":
        return _bare(expression[2])
    if expression[0] == "attr":
        return ("attr", _bare(expression[1]), expression[2])
    return expression


def _mentions(expression: Any, target: Expression) -> bool:
    if isinstance(expression, Call):
        parts = (expression.callee, *expression.args, *(e for _, e in expression.kwargs), *expression.spread)
        return any(_mentions(e, target) for e in parts)
    if not isinstance(expression, tuple) or not expression:
        return False
    if isinstance(expression[0], str) and same_expression(_bare(expression), target):
        return True
    if expression[0] in ("function", "const"):
        return False
    return any(_mentions(e, target) for e in expression if isinstance(e, (tuple, Call)))
