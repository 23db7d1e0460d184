"""`return`, `break` and `continue` inside of branches and loops, as assignments.

A jump sets a flag, and what it skips stands under a test of that flag. Where a branch always jumps, what follows the
`if` moves into the other branch instead, so that `if c: return a` / `return b` is one `if` with two results. Loops
learn which flags end them (`stops`). Afterwards no statement leaves its block but by its end.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import Any

from purax.python_control_flow.names import own_nodes

FLAG = "_purax_flag_"  # how the names of flags begin
RESULT, RETURNED = "_purax_result", f"{FLAG}returned"
_JUMPS = (ast.Return, ast.Break, ast.Continue)


def has_nested_jump(body: Sequence[ast.stmt]) -> bool:
    """Whether a function's body jumps out of a branch or a loop."""
    compound = [s for s in body if not isinstance(s, ast.Return)]
    return any(isinstance(node, _JUMPS) for node in own_nodes(compound))


def lower_jumps(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a function whose only `return` stands at its end."""
    last = body[-1]
    lowered, _, _ = _Lowering().block([*body, at(ast.Return(None), last)], None)
    returned = assign(RETURNED, ast.Constant(False), body[0])
    return [returned, *lowered, at(ast.Return(name(RESULT)), last)]


class _Loop:
    """The flags of a loop that is being lowered."""

    def __init__(self, number: int):
        self.broke, self.skipped = f"{FLAG}broke_{number}", f"{FLAG}skipped_{number}"


class _Lowering:
    def __init__(self):
        self.numbers = itertools.count(1)

    def block(
        self, statements: Sequence[ast.stmt], loop: _Loop | None
    ) -> tuple[list[ast.stmt], set[str], bool]:
        """A block without jumps, the flags that it may set, and whether its end is never reached."""
        done: list[ast.stmt] = []
        flags: set[str] = set()
        for position, statement in enumerate(statements):
            rest = statements[position + 1 :]
            if isinstance(statement, ast.Return):
                value = statement.value or at(ast.Constant(None), statement)
                done += [assign(RESULT, value, statement), set_flag(RETURNED, statement)]
                return done, flags | {RETURNED}, True
            if isinstance(statement, (ast.Break, ast.Continue)):
                assert loop is not None, "Python allows them only inside of loops"
                flag = loop.broke if isinstance(statement, ast.Break) else loop.skipped
                return [*done, set_flag(flag, statement)], flags | {flag}, True
            if isinstance(statement, ast.Raise):
                return [*done, statement], flags, True
            if isinstance(statement, ast.If):
                new, set_by, over, taken = self.branch(statement, rest, loop)
            elif isinstance(statement, (ast.While, ast.For)):
                taken = False
                new, set_by, over = self.loop(statement, loop)
            elif isinstance(statement, ast.With):
                statement.body, set_by, _ = self.block(statement.body, loop)
                new, over, taken = [statement], False, False
            else:
                new, set_by, over, taken = [statement], self.others(statement, loop), False, False
            done += new
            flags |= set_by
            if over or taken:
                return done, flags, over
            if set_by and rest:
                guarded, more, _ = self.block(rest, loop)
                done.append(at(ast.If(none_of(sorted(set_by), statement), guarded, []), statement))
                return done, flags | more, False
        return done, flags, False

    def others(self, statement: ast.stmt, loop: _Loop | None) -> set[str]:
        """Lowers the blocks of `try` and `match`, which Python itself decides about; returns the flags they may set."""
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return set()
        flags: set[str] = set()
        tried = getattr(statement, "orelse", None)
        for block in blocks(statement):
            block[:], set_by, _ = self.block(block, loop)
            flags |= set_by
            if block is statement.__dict__.get("body") and tried and set_by:
                # What follows a `try` that was left is not done.
                tried[:] = [at(ast.If(none_of(sorted(set_by), statement), list(tried), []), statement)]
        return flags

    def branch(self, statement: ast.If, rest: Sequence[ast.stmt], loop: _Loop | None):
        """An `if`; says also whether it took the statements that follow it into one of its branches."""
        body, orelse = list(statement.body), list(statement.orelse)
        body_ends, else_ends = ends(body), ends(orelse)
        taken = True
        # A branch that ends in `raise` only is left alone: it becomes a check.
        if body_ends and jumps(body) and not else_ends:
            orelse += rest
        elif else_ends and jumps(orelse) and not body_ends:
            body += rest
        else:
            taken = False
        body, set_by, body_ends = self.block(body, loop)
        orelse, set_by_else, else_ends = self.block(orelse, loop)
        statement.body, statement.orelse = body or [at(ast.Pass(), statement)], orelse
        return [statement], set_by | set_by_else, body_ends and else_ends, taken

    def loop(
        self, statement: ast.While | ast.For, outer: _Loop | None
    ) -> tuple[list[ast.stmt], set[str], bool]:
        """A loop without jumps, the flags that it may set, and whether what follows is never reached."""
        loop = _Loop(next(self.numbers))
        over = never_ends(statement)
        body, flags, _ = self.block(statement.body, loop)
        before: list[ast.stmt] = []
        if loop.skipped in flags:
            body.insert(0, assign(loop.skipped, ast.Constant(False), statement))
        if loop.broke in flags:
            before.append(assign(loop.broke, ast.Constant(False), statement))
        stops = sorted(flags & {loop.broke, RETURNED})
        outside = flags & {RETURNED}
        orelse, statement.orelse = statement.orelse, []
        statement.body = body
        statement.stops = stops  # type: ignore[union-attr]
        after: list[ast.stmt] = []
        if orelse:
            orelse, more, else_ends = self.block(orelse, outer)
            outside = outside | more
            over = over or else_ends and loop.broke not in flags
            after = [at(ast.If(none_of(stops, statement), orelse, []), statement)] if stops else orelse
        return [*before, statement, *after], outside, over


def ends(block: Sequence[ast.stmt]) -> bool:
    """Whether the end of a block is never reached."""
    for statement in block:
        if isinstance(statement, (*_JUMPS, ast.Raise)):
            return True
        if isinstance(statement, ast.If) and ends(statement.body) and ends(statement.orelse):
            return True
        if isinstance(statement, (ast.While, ast.For)):
            breaks = any(isinstance(jump, ast.Break) for jump in jumps(statement.body))
            if never_ends(statement) or statement.orelse and ends(statement.orelse) and not breaks:
                return True
    return False


def never_ends(loop: ast.While | ast.For) -> bool:
    """Whether a loop can be left by `return` only: `while True` without `break`."""
    forever = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return forever and not any(isinstance(jump, ast.Break) for jump in jumps(loop.body))


def jumps(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that leave a block: `return`, and `break` and `continue` of loops around it."""
    found: list[ast.stmt] = []
    for statement in block:
        if isinstance(statement, _JUMPS):
            found.append(statement)
        elif isinstance(statement, (ast.While, ast.For)):
            found += [s for s in jumps(statement.body) if isinstance(s, ast.Return)] + jumps(statement.orelse)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for inner in blocks(statement):
                found += jumps(inner)
    return found


def blocks(statement: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of a compound statement."""
    own = [getattr(statement, field, None) for field in ("body", "orelse", "finalbody")]
    parts = [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    return [block for block in own if block] + [part.body for part in parts]


def at(node, place: ast.AST):
    """A new node, and all that are new below it, with the place of another one."""
    for part in ast.walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            put_at(part, place)
    return node


def put_at(node: Any, place: Any) -> None:
    """Gives a node the place of another one; of one with several lines the first, for that is the one to be shown."""
    ast.copy_location(node, place)
    if place.end_lineno != place.lineno:
        node.end_lineno, node.end_col_offset = node.lineno, node.col_offset


def name(identifier: str) -> ast.Name:
    return ast.Name(identifier, ast.Load())


def assign(identifier: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    return at(ast.Assign([ast.Name(identifier, ast.Store())], value), place)


def set_flag(flag: str, place: ast.AST) -> ast.stmt:
    return assign(flag, ast.Constant(True), place)


def none_of(flags: Sequence[str], place: ast.AST) -> ast.expr:
    """not a and not b and …"""
    tests: list[ast.expr] = [ast.UnaryOp(ast.Not(), name(flag)) for flag in flags]
    return at(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests), place)
