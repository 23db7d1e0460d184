"""The syntax tree of a function, rewritten: statements become calls of `purax.purity.control_flow`.

The blocks of a statement become nested functions that share the variables of the function around them. Lines are those
of the original.
"""

from __future__ import annotations

import ast
import collections
import itertools
import os
from collections.abc import Sequence
from typing import Any

from purax.purity.rewriting_jumps import at, has_nested_jump, jumps, lower_jumps, name, put_at
from purax.purity.rewriting_names import bound_names, changed_paths, declared_names, names_read, own_nodes
from purax.purity.rewriting_plain import HELPERS, assigns, simplified
from purax.purity.rewriting_source import FunctionNode, NotRewritable, copied

PREFIX = "_purax_block_"
_COMPOUND = (ast.If, ast.While, ast.For)
_CONSUMERS = frozenset(("sum", "any", "all", "max", "min", "next", "len"))


class Converter(ast.NodeTransformer):
    """Rewrites the body of one function, and of the functions nested in it."""

    def __init__(self, file: str, private_to: str):
        self.file = os.path.basename(file)
        self.private_to = private_to
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.numbers = itertools.count(1)
        self.first_argument = ""
        self.watched: set[str] = set()  # names that may be without a value because of a branch or a loop
        self.variables: set[str] = set()  # names of this function and of those around it
        self.in_try = False
        self.reads: collections.Counter[str] = (
            collections.Counter()
        )  # how often names are read in the function

    # -- functions

    def convert(self, node: FunctionNode) -> None:
        """Rewrites a function in place, without what was done when it was defined: decorators and defaults."""
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args]
        self.first_argument = named[0].arg if named else ""
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            return
        for kind in (ast.AsyncFor, ast.AsyncWith, ast.Yield, ast.YieldFrom, ast.Await):
            if any(isinstance(n, kind) for n in own_nodes(node.body)):
                raise NotRewritable(f"`{node.name}` is a generator or a coroutine")
        self.globals = declared_names(node.body, ast.Global)
        self.nonlocals = declared_names(node.body, ast.Nonlocal)
        body = node.body
        body = simplified(body)
        if has_nested_jump(body):
            body = lower_jumps(body)
        self.watched = self.watched | bound_names(n for n in own_nodes(body) if isinstance(n, _COMPOUND))
        parameters = {a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg)}
        local = bound_names(body) - self.globals - self.nonlocals - parameters
        self.variables = self.variables | local | parameters
        self.watched = self.watched | {
            p for n in own_nodes(body) if isinstance(n, _COMPOUND) for p in changed_paths([n])
        }
        self.reads = names_read(body)
        body = self.statements(body)
        # Python must see that a name which only nested functions assign belongs to this one.
        never: list[ast.stmt] = (
            [ast.Assign([ast.Name(n, ast.Store()) for n in sorted(local)], ast.Constant(None))]
            if local
            else []
        )
        first = node.body[0]
        header: list[ast.stmt] = [ast.If(ast.Constant(False), never, [])] if never else []
        header += [ast.Global(sorted(self.globals))] if self.globals else []
        header += [ast.Nonlocal(sorted(self.nonlocals))] if self.nonlocals else []
        node.body = [*(at(statement, first) for statement in header), *body]

    def visit_FunctionDef(self, node):
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        inner = Converter(self.file, self.private_to)
        inner.numbers, inner.watched, inner.variables = self.numbers, self.watched, self.variables
        try:
            inner.convert(node)
        except NotRewritable as reason:  # a generator stays one
            node.body = [PlainTests(self, str(reason)).visit(statement) for statement in node.body]
        node.name = self.mangled(node.name)
        return node

    def visit_Lambda(self, node):
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        node.body = self.visit(node.body)
        return node

    def visit_ClassDef(self, node):
        return node

    def visit_AsyncFunctionDef(self, node):
        return node

    def visit_Global(self, node):
        return at(ast.Pass(), node)

    visit_Nonlocal = visit_Global

    # -- statements

    def statements(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            done.extend(new if isinstance(new, list) else [new])
        return done

    def visit_If(self, node):
        raising = [ends_in_raise(node.body), ends_in_raise(node.orelse)]
        reason = self.reason_against(node)
        state = Shared(self, node)
        test = self.test(node.test)
        body, orelse = self.statements(node.body), self.statements(node.orelse)
        if reason:
            node.test, node.body, node.orelse = (
                self.call("plain", node, test, ast.Constant(reason)),
                body,
                orelse,
            )
            return node
        then, then_name = self.block(body, node, state)
        otherwise, else_name = self.block(orelse, node, state)
        call = self.call(
            "branch",
            node,
            test,
            name(then_name),
            name(else_name),
            state.object(),
            *([ast.Constant(tuple(raising))] if any(raising) else []),
        )
        return [*state.definitions(), then, otherwise, at(ast.Expr(call), node)]

    def visit_While(self, node):
        reason = self.reason_against(node)
        state = Shared(self, node)
        test = self.test(node.test)
        body = self.statements(node.body)
        if reason:
            node.test, node.body = self.call("plain", node, test, ast.Constant(reason)), body
            node.orelse = self.statements(node.orelse)
            return node
        condition, condition_name = self.block(
            [at(ast.Return(self.goes_on(node, test)), node.test)], node, state
        )
        step, step_name = self.block(body, node, state)
        call = self.call("repeat_while", node, name(condition_name), name(step_name), state.object())
        return [
            *state.definitions(),
            condition,
            step,
            at(ast.Expr(call), node),
            *self.statements(node.orelse),
        ]

    def visit_For(self, node):
        reason = self.reason_against(node)
        state = Shared(self, node)
        iterable, target = self.visit(node.iter), self.visit(node.target)
        body = self.statements(node.body)
        if reason:
            node.iter, node.target, node.body = iterable, target, body
            node.orelse = self.statements(node.orelse)
            return node
        item = f"{PREFIX}item"
        bind = at(ast.Assign([target], name(item)), node.target)
        step, step_name = self.block([bind, *body], node, state, [item])
        stops = getattr(node, "stops", ())
        stopped = at(ast.Return(self.call("any_of", node, *map(name, stops))), node)
        stop, stop_name = self.block([stopped], node, state)
        call = self.call("repeat_for", node, iterable, name(step_name), name(stop_name), state.object())
        return [*state.definitions(), step, stop, at(ast.Expr(call), node), *self.statements(node.orelse)]

    def visit_AnnAssign(self, node):
        # An annotated name cannot be shared with a nested function.
        if node.value is None:
            return at(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def visit_Assert(self, node):
        text = ast.unparse(node.test)
        message = [thunk(self.visit(node.msg))] if node.msg is not None else []
        call = self.call("check", node, self.test(node.test), ast.Constant(text), *message)
        return at(ast.Expr(call), node)

    def visit_Match(self, node):
        node.subject = self.visit(node.subject)
        for part in node.cases:
            part.guard = part.guard and self.test(part.guard)
            part.body = self.statements(part.body)
        return node

    def visit_Try(self, node):
        outer, self.in_try = self.in_try, self.in_try or bool(node.handlers)
        node.body = self.statements(node.body)
        self.in_try = outer
        for handler in node.handlers:
            handler.body = self.statements(handler.body)
        node.orelse, node.finalbody = self.statements(node.orelse), self.statements(node.finalbody)
        return node

    def reason_against(self, node: ast.If | ast.While | ast.For) -> str:
        """Why a statement must stay as it is; empty if it can become functions."""
        if jumps([node]) or not hasattr(node, "stops") and jumps(node.body):
            return "a `return`, `break` or `continue` leaves it in a way that is not understood"
        if self.in_try and any(isinstance(n, ast.Raise) for n in own_nodes([node])):
            return "it raises inside of a `try` block whose handlers cannot see what happens when the program runs"
        return ""

    def goes_on(self, node: ast.While, test: ast.expr) -> ast.expr:
        """The test of a loop, with the flags that end it."""
        stops = getattr(node, "stops", ())
        if not stops:
            return test
        flags = self.call("none_of", node, *map(name, stops))
        return self.call("all_of", node, thunk(flags), thunk(test))

    def block(self, body, node, state: Shared, arguments: Sequence[str] = ()) -> tuple[ast.stmt, str]:
        """A block as a nested function, and the name of that."""
        identifier = f"{PREFIX}{next(self.numbers)}"
        [function] = moved(ast.parse(f"def {identifier}({', '.join(arguments)}): pass"), node).body
        function.body = [
            at(statement, node) for statement in (*state.declarations(), *(body or [ast.Pass()]))
        ]
        return function, identifier

    # -- expressions

    def test(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth matters."""
        if isinstance(node, ast.BoolOp) and not assigns(node):
            helper = "all_of" if isinstance(node.op, ast.And) else "one_of"
            return self.call(helper, node, *(thunk(self.test(value)) for value in node.values))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.call("negate", node, self.test(node.operand))
        return self.visit(node)

    def visit_BoolOp(self, node):
        if assigns(node):
            return self.generic_visit(node)
        helper = "value_of_and" if isinstance(node.op, ast.And) else "value_of_or"
        return self.call(helper, node, *(thunk(self.visit(value)) for value in node.values))

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return self.call("negate", node, self.test(node.operand))
        return self.generic_visit(node)

    def visit_IfExp(self, node):
        if assigns(node.body) or assigns(node.orelse):
            return self.generic_visit(node)
        branches = [thunk(self.visit(value)) for value in (node.body, node.orelse)]
        return self.call("choose", node, self.test(node.test), *branches, self.place(node))

    def visit_Compare(self, node):
        if len(node.ops) == 1 and not isinstance(node.ops[0], (ast.In, ast.NotIn)) or assigns(node):
            return self.generic_visit(node)
        steps = []
        for comparison, right in zip(node.ops, node.comparators, strict=True):
            steps += [ast.Constant(type(comparison).__name__), thunk(self.visit(right))]
        return self.call("compare", node, self.visit(node.left), *steps)

    def visit_comprehension(self, node):
        self.generic_visit(node)
        reason = ast.Constant("the length of what this makes would depend on the values")
        advice = ast.Constant(
            "Keep all items, and make those that do not count neutral (`x if condition else 0`), or consume the items "
            "at once: `sum`, `any`, `all`, `max`, `min`, `next` and `len` of such a comprehension are understood"
        )
        node.ifs = [self.call("plain", test, test, reason, advice) for test in node.ifs]
        return node

    def consumer(self, node: ast.Call) -> ast.expr:
        """sum(x for x in xs if c), and the like: the items come with their conditions."""
        made: Any
        made, *others = node.args
        conditions: list[ast.expr] = []
        for part in made.generators:
            part.target, part.iter = self.visit(part.target), self.visit(part.iter)
            tests = [thunk(self.test(test)) for test in part.ifs]
            conditions += tests
            part.ifs = [self.call("may_hold", node, *map(copied, tests))] if tests else []
        item = self.call("chosen", node, thunk(self.visit(made.elt)), *map(copied, conditions))
        items = at(ast.GeneratorExp(item, made.generators), made)
        options = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        call = self.call("consume", node, self.visit(node.func), items, *map(self.visit, others))
        call.keywords = options
        return call

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            node.args = [at(name("__class__"), node), at(name(self.first_argument), node)]
            return node
        if isinstance(node.func, ast.Name) and node.func.id in (
            "locals",
            "globals",
            "vars",
            "eval",
            "exec",
            "dir",
        ):
            return self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", None) == HELPERS:
            return self.generic_visit(node)
        if is_consumed(node):
            return self.consumer(node)
        self.generic_visit(node)
        node.func = self.call("call", node, node.func)
        return node

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and node.id in self.watched:
            return self.call("load", node, node)
        node.id = self.mangled(node.id)
        return node

    def visit_Attribute(self, node):
        node.attr = self.mangled(node.attr)
        return self.generic_visit(node)

    def mangled(self, identifier: str) -> str:
        """A name as Python sees it in a class body: `__x` is private to the class."""
        private = self.private_to and identifier.startswith("__") and not identifier.endswith("__")
        return f"_{self.private_to.lstrip('_')}{identifier}" if private else identifier

    # -- making nodes

    def call(self, helper: str, node: ast.AST, *arguments: ast.expr) -> ast.Call:
        function = ast.Attribute(name(HELPERS), helper, ast.Load())
        return at(ast.Call(function, list(arguments), []), node)

    def place(self, node: ast.expr | ast.stmt) -> ast.expr:
        return ast.Constant(f"{self.file}:{node.lineno}")


class PlainTests(ast.NodeTransformer):
    """Lets the conditions of a function that is not rewritten tell why, where a traced value decides."""

    def __init__(self, converter: Converter, reason: str):
        self.converter, self.reason = converter, reason

    def visit_If(self, node):
        self.generic_visit(node)
        node.test = self.converter.call("plain", node.test, node.test, ast.Constant(self.reason))
        return node

    visit_While = visit_IfExp = visit_If

    def visit_FunctionDef(self, node):
        return node

    visit_Lambda = visit_ClassDef = visit_AsyncFunctionDef = visit_FunctionDef


class Shared:
    """The variables that a statement may change, and the code that reads and writes them."""

    def __init__(self, converter: Converter, node: ast.stmt):
        self.converter, self.node = converter, node
        self.names = sorted(bound_names([node]))
        paths = sorted(p for p in changed_paths([node]) if "." in p or p in converter.variables)
        self.changed = [".".join(map(converter.mangled, path.split("."))) for path in paths]
        self.writer = f"{PREFIX}{next(converter.numbers)}"
        inside = names_read([node])
        self.live = [n for n in self.names if converter.reads.get(n, 0) > inside.get(n, 0)]

    def declarations(self) -> list[ast.stmt]:
        globals_ = [n for n in self.names if n in self.converter.globals]
        plain = [path for path in self.changed if "." not in path]
        others = [n for n in (*self.names, *plain) if n not in self.converter.globals]
        return ([ast.Global(globals_)] if globals_ else []) + ([ast.Nonlocal(others)] if others else [])

    def definitions(self) -> list[ast.stmt]:
        """The function that writes the variables."""
        [writer] = moved(
            ast.parse(f"def {self.writer}({PREFIX}values): {self.targets} = {PREFIX}values"), self.node
        ).body
        writer.body[:0] = [at(statement, self.node) for statement in self.declarations()]
        return [writer]

    @property
    def targets(self) -> str:
        return "".join(f"{path}, " for path in (*self.names, *self.changed)) or "()"

    def object(self) -> ast.expr:
        """_purax.State(names, changed, read, write, place)"""
        paths = [*self.names, *self.changed]
        read = f"lambda: ({' '.join(f'{HELPERS}.read(lambda: {path}),' for path in paths)})"
        place = f"{self.converter.file}:{self.node.lineno}"
        text = f"{HELPERS}.State({self.names!r}, {self.changed!r}, {read}, {self.writer}, {place!r}, {self.live!r})"
        return moved(ast.parse(text, mode="eval"), self.node).body


def moved(tree: Any, place: ast.AST) -> Any:
    """A new syntax tree, all of it at the place of another node."""
    for part in ast.walk(tree):
        if hasattr(part, "lineno"):
            put_at(part, place)
    return tree


def thunk(expression: ast.expr) -> ast.expr:
    """lambda: expression"""
    return at(ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression), expression)


def is_consumed(node: ast.Call) -> bool:
    """Whether a call consumes a comprehension with conditions at once."""
    return (
        isinstance(node.func, ast.Name)
        and node.func.id in _CONSUMERS
        and bool(node.args)
        and isinstance(node.args[0], (ast.GeneratorExp, ast.ListComp))
        and any(part.ifs for part in node.args[0].generators)
        and not any(part.is_async for part in node.args[0].generators)
        and not assigns(node)
    )


def ends_in_raise(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Raise)
