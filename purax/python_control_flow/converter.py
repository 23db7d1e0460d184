"""The syntax tree of a function, rewritten: statements become calls of `purax.python_control_flow.branches`.

The blocks of a statement become nested functions that share the variables of the function around them. Lines are those
of the original.
"""

from __future__ import annotations

import ast
import collections
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from purax.python_control_flow.function_source import FunctionNode, NotRewritable
from purax.python_control_flow.heap import SCOPE
from purax.python_control_flow.jumps import at, has_nested_jump, jumps, lower_jumps, name, put_at
from purax.python_control_flow.names import bound_names, declared_names, names_read, own_nodes
from purax.python_control_flow.simplify import HELPERS, assigns, simplified

PREFIX = "_purax_block_"
_COMPOUND = (ast.If, ast.While, ast.For)
_IN_PLACE = {
    ast.Add: "iadd",
    ast.Sub: "isub",
    ast.Mult: "imul",
    ast.Div: "itruediv",
    ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod",
    ast.Pow: "ipow",
    ast.MatMult: "imatmul",
    ast.BitAnd: "iand",
    ast.BitOr: "ior",
    ast.BitXor: "ixor",
    ast.LShift: "ilshift",
    ast.RShift: "irshift",
}
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
        self.own: list[str] = []  # names of variables of this function, and of those around it that it uses
        self.free: list[str] = []
        self.in_try = False
        self.catches_division = False  # whether a handler names the error of a division by zero
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
        parameters = {a.arg for a in ast.walk(arguments) if isinstance(a, ast.arg)}
        local = bound_names(body) - self.globals - self.nonlocals - parameters
        self.reads = names_read(body)
        around = self.variables | self.nonlocals
        self.own = sorted(local | parameters)
        self.free = sorted(n for n in around - local - parameters if n in self.reads or n in self.nonlocals)
        self.variables = self.variables | local | parameters
        self.watched = self.watched | nested_nonlocals(body)
        self.watched = self.watched | bound_names(n for n in own_nodes(body) if isinstance(n, _COMPOUND))
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
        # All variables become cells, which are found by this function.
        names = ", ".join(map(self.mangled, (*self.own, *self.free)))
        [scope] = moved(ast.parse(f"{SCOPE} = lambda: ({names}{',' if names else ''})"), first).body
        node.body = [*(at(statement, first) for statement in header), scope, *body]

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
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.bases = [self.visit(base) for base in node.bases]
        inner = Converter(self.file, node.name)
        inner.numbers, inner.watched, inner.variables = self.numbers, self.watched, self.variables
        node.body = [inner.visit(s) if isinstance(s, ast.FunctionDef) else s for s in node.body]
        node.name = self.mangled(node.name)
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
        return [then, otherwise, at(ast.Expr(call), node)]

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
            condition,
            step,
            at(ast.Expr(call), node),
            *self.statements(node.orelse),
        ]

    def visit_For(self, node):
        reason = self.reason_against(node)
        state = Shared(self, node)
        iterable = self.visit(node.iter)
        body = self.statements(node.body)
        if reason:
            node.iter, node.target, node.body = iterable, self.visit(node.target), body
            node.orelse = self.statements(node.orelse)
            return node
        item = f"{PREFIX}item"
        bound = self.visit(at(ast.Assign([node.target], name(item)), node.target))
        bind = bound if isinstance(bound, list) else [bound]
        step, step_name = self.block([*bind, *body], node, state, [item])
        stops = getattr(node, "stops", ())
        stopped = at(ast.Return(self.call("any_of", node, *map(name, stops))), node)
        stop, stop_name = self.block([stopped], node, state)
        call = self.call("repeat_for", node, iterable, name(step_name), name(stop_name), state.object())
        return [step, stop, at(ast.Expr(call), node), *self.statements(node.orelse)]

    def visit_Assign(self, node):
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            value = self.visit(node.value)
            return at(
                ast.Expr(self.call("store", node, value, self.visit(target.value), self.index(target.slice))),
                node,
            )
        if any(isinstance(part, ast.Subscript) for target in node.targets for part in targets_in(target)):
            return self.one_by_one(node)
        return self.generic_visit(node)

    def one_by_one(self, node: ast.Assign) -> list[ast.stmt]:
        """`a[i], b = value` as `t, u = value`, `a[i] = t`, `b = u`: a subscript is stored by a call."""
        value = f"{PREFIX}value_{next(self.numbers)}"
        done: list[ast.stmt] = [at(ast.Assign([ast.Name(value, ast.Store())], self.visit(node.value)), node)]
        for target in node.targets:
            parts: list[tuple[str, ast.expr]] = []

            def renamed(part: ast.expr, parts: list[tuple[str, ast.expr]] = parts) -> ast.expr:
                if isinstance(part, (ast.Tuple, ast.List)):
                    return ast.Tuple([renamed(x) for x in part.elts], ast.Store())
                if isinstance(part, ast.Starred):
                    return ast.Starred(renamed(part.value), ast.Store())
                parts.append((f"{PREFIX}part_{next(self.numbers)}", part))
                return ast.Name(parts[-1][0], ast.Store())

            done.append(at(ast.Assign([renamed(target)], name(value)), node))
            for identifier, part in parts:
                new = self.visit(at(ast.Assign([part], name(identifier)), node))
                done.extend(new if isinstance(new, list) else [new])
        return done

    def visit_AugAssign(self, node):
        operation = at(
            ast.Attribute(
                ast.Attribute(name(HELPERS), "operator", ast.Load()), _IN_PLACE[type(node.op)], ast.Load()
            ),
            node,
        )
        value = self.visit(node.value)
        if isinstance(node.target, ast.Subscript):
            base, index = self.visit(node.target.value), self.index(node.target.slice)
            compute = thunk(value)
            if assigns(node.value):  # a function of its own would keep the name to itself
                known = f"{PREFIX}value_{next(self.numbers)}"
                compute = thunk(at(name(known), node))
                before = at(ast.Assign([ast.Name(known, ast.Store())], value), node)
                return [
                    before,
                    at(ast.Expr(self.call("augment_item", node, operation, base, index, compute)), node),
                ]
            return at(ast.Expr(self.call("augment_item", node, operation, base, index, compute)), node)
        if isinstance(node.target, ast.Name):
            read = self.visit(at(name(node.target.id), node.target))
            target = at(ast.Name(self.mangled(node.target.id), ast.Store()), node.target)
            return at(ast.Assign([target], self.call("augment", node, operation, read, value)), node)
        return self.generic_visit(node)

    def visit_Subscript(self, node):
        if isinstance(node.ctx, ast.Load):
            return self.call("item", node, self.visit(node.value), self.index(node.slice))
        return self.generic_visit(node)

    def index(self, node: ast.expr) -> ast.expr:
        """What stands in a subscript, as an expression."""
        if isinstance(node, ast.Slice):
            parts = [
                self.visit(x) if x is not None else ast.Constant(None)
                for x in (node.lower, node.upper, node.step)
            ]
            return self.call("slice", node, *parts)
        if isinstance(node, ast.Tuple) and any(isinstance(x, ast.Slice) for x in node.elts):
            return at(ast.Tuple([self.index(x) for x in node.elts], ast.Load()), node)
        return self.visit(node)

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
        outer = self.in_try, self.catches_division
        self.in_try = self.in_try or bool(node.handlers)
        kinds = " ".join(ast.unparse(handler.type) for handler in node.handlers if handler.type is not None)
        self.catches_division |= "ZeroDivisionError" in kinds or "ArithmeticError" in kinds
        node.body = self.statements(node.body)
        self.in_try, self.catches_division = outer
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

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not self.catches_division or not isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
            return node
        node.right = self.call("divisor", node.right, node.right)
        return node

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
        is_plain = len(node.ops) == 1 and not isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot))
        if is_plain or assigns(node):
            return self.generic_visit(node)
        steps = []
        for comparison, right in zip(node.ops, node.comparators, strict=True):
            steps += [ast.Constant(type(comparison).__name__), thunk(self.visit(right))]
        return self.call("compare", node, self.visit(node.left), *steps)

    def visit_comprehension(self, node):
        self.generic_visit(node)
        node.iter = self.call("iterated", node.iter, node.iter)
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
        flag: str | None = None  # what says whether the item is there; each condition is computed once
        for part in made.generators:
            part.target, part.iter = self.visit(part.target), self.visit(part.iter)
            tests = [thunk(self.test(test)) for test in part.ifs]
            if tests:
                before = [thunk(at(name(flag), node))] if flag is not None else []
                flag = f"{PREFIX}flag_{next(self.numbers)}"
                known = ast.NamedExpr(ast.Name(flag, ast.Store()), self.call("all_of", node, *before, *tests))
                part.ifs = [self.call("may_hold", node, at(known, node))]
        assert flag is not None
        item = self.call("chosen", node, thunk(self.visit(made.elt)), at(name(flag), node))
        items = at(ast.GeneratorExp(item, made.generators), made)
        options = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        call = self.call("consume", node, self.visit(node.func), items, *map(self.visit, others))
        call.keywords = options
        return call

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            node.args = [at(name("__class__"), node), at(name(self.first_argument), node)]
            return node
        if isinstance(node.func, ast.Name) and node.func.id == "vars" and len(node.args) == 1:
            return self.call("attributes_of", node, self.visit(node.args[0]))
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
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return self.call("attribute", node, node.value, ast.Constant(node.attr))

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
    """The variables that a statement binds, and what tells of those of its function."""

    def __init__(self, converter: Converter, node: ast.stmt):
        self.converter, self.node = converter, node
        self.names = sorted(bound_names([node]))
        inside = names_read([node])
        self.live = [n for n in self.names if converter.reads.get(n, 0) > inside.get(n, 0)]

    def declarations(self) -> list[ast.stmt]:
        globals_ = [n for n in self.names if n in self.converter.globals]
        others = [n for n in self.names if n not in self.converter.globals]
        return ([ast.Global(globals_)] if globals_ else []) + ([ast.Nonlocal(others)] if others else [])

    def object(self) -> ast.expr:
        """_purax.State(scope, free, place, live)"""
        place = f"{self.converter.file}:{self.node.lineno}"
        text = f"{HELPERS}.State({SCOPE}, {self.converter.free!r}, {place!r}, {self.live!r})"
        return moved(ast.parse(text, mode="eval"), self.node).body


def nested_nonlocals(body: Sequence[ast.stmt]) -> set[str]:
    """The names that functions nested in a block declare `nonlocal`."""
    everything = itertools.chain.from_iterable(map(ast.walk, body))
    return {name for node in everything if isinstance(node, ast.Nonlocal) for name in node.names}


def moved(tree: Any, place: ast.AST) -> Any:
    """A new syntax tree, all of it at the place of another node."""
    for part in ast.walk(tree):
        if hasattr(part, "lineno"):
            put_at(part, place)
    return tree


def targets_in(target: ast.expr) -> Iterator[ast.expr]:
    """The single targets of an assignment."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from targets_in(part)
    elif isinstance(target, ast.Starred):
        yield from targets_in(target.value)
    else:
        yield target


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
