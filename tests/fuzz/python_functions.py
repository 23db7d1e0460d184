"""Random Python functions with state under traced conditions: plain Python against `jit`, `vmap` and `grad`.

A function gets a number and changes variables, lists, dicts, objects, NumPy arrays and iterators, by statements,
methods, helpers, closures and aliases, under conditions and in loops that depend on the number. An error is allowed,
another value than that of plain Python is not. Numbers are small multiples of powers of two, so that rounding decides
nothing.
"""

from __future__ import annotations

import collections
import linecache
import random
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import purax as px
from tests.fuzz.python_idioms import HEADER as IDIOMS_HEADER
from tests.fuzz.python_idioms import Mixer

INPUTS = (-1.5, 0.5, 2.5)
HEADER = """\
import collections, functools, heapq, operator
import numpy as np

class Box:
    total = 0.0
    def __init__(self, v=0.0):
        self.v = v
        self.items = [v, 1.0]
    def add(self, v):
        self.v = self.v + v
        return self.v
    def push(self, v):
        self.items.append(v)
    def put(self, i, v):
        if v > 0.25:
            self.items[i] = v
        else:
            self.total = self.total - v
    @property
    def twice(self):
        return 2 * self.v

class Point:
    __slots__ = ("a", "b")
    def __init__(self, a, b):
        self.a, self.b = a, b
    def moved(self, v):
        return Point(self.a + v, self.b)

def write(items, i, v):
    items[i] = v

def bump(box, v):
    box.v += v
    if v > 1.25:
        box.total = box.total + 1.0
    return box
"""


class Maker:
    """Writes one function."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.loops = 0
        self.names = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def number(self) -> str:
        """An expression for a number."""
        pick = self.random.choice
        return pick(
            [
                *("x", "a", "b", "c", "x", "a"),
                *(
                    "l[0]",
                    "k[1]",
                    "d['p']",
                    "d['q']",
                    "o.v",
                    "o.items[0]",
                    "p.a",
                    "p.b",
                    "t[0]",
                    "o.twice",
                    "o.total",
                ),
                *("g[0, 1]", "row[1]", "flat[2]", "mark.k", "[1.0, 2.0, 3.0][n % 3]", "len('ab' * n)"),
                *("r[0]", "r[1]", "q[0]", "q[-1]", "sum(l)", "len(l)", "m[0][1]", "m[1][0]"),
                pick(["0.5", "1.0", "2.0", "-1.0", "3.0"]),
                f"(a + {pick(['b', 'c', 'x', '1.0'])})",
                f"(x - {pick(['0.5', 'a', 'c'])})",
                f"max({pick(['a', 'b'])}, {pick(['x', 'c', '0.5'])})",
                "helper(a)",
                "abs(b)",
            ]
        )

    def condition(self) -> str:
        pick = self.random.choice
        simple = f"{self.number()} {pick(['>', '<', '>=', '<='])} {pick(['0.25', '-0.25', '1.25', '0.75', '-2.25'])}"
        return pick(
            [
                *(simple, simple, simple, simple),
                f"x > {pick(['0.25', '1.25', '-0.75'])}",
                f"x > {pick(['0.25', '1.25', '-0.75'])}",
                f"not {simple}",
                f"{simple} and x < 2.25",
                f"{simple} or x > 1.75",
                "l is k",
                "w is l",
                "mode == 'up'",
                "0.25 < a < 2.25",
                "'z' in d",
                "y is None",
                "hasattr(o, 'late')",
                "len(l) > 2",
                "count() > 2",
            ]
        )

    def statement(self) -> None:
        pick = self.random.choice
        kinds = [self.store] * 10 + [self.branch] * 6 + [self.choice] * 2 + [self.attempt, self.with_return]
        if self.loops < 2:
            kinds += [self.loop] * 2 + [self.for_loop] * 2
        pick(kinds)()

    def store(self) -> None:
        pick, v = self.random.choice, self.number()
        self.add(
            pick(
                [
                    *(f"a = {v}", f"b = {v}", f"c = a + {v}", f"a += {v}", f"b -= {v}", f"a, b = b, {v}"),
                    *(f"l[0] = {v}", f"l[1] += {v}", f"k[0] = {v}", f"write(l, 0, {v})", f"write(k, 1, {v})"),
                    *(
                        f"d['p'] = {v}",
                        f"d['q'] += {v}",
                        f"d.update(p={v})",
                        f"d['z'] = {v}",
                        "d.pop('z', None)",
                    ),
                    *(f"o.add({v})", f"o.push({v})", f"o.put(0, {v})", f"o.v = {v}", f"setattr(o, 'v', {v})"),
                    *(f"bump(o, {v})", "o.late = 1.0", f"o.items[1] = {v}", "o = Box(b)", "boxes[0].add(a)"),
                    *(f"p = p.moved({v})", f"p.a += {v}", f"p.b = {v}", f"p = Point({v}, p.a)"),
                    *(
                        f"l.append({v})",
                        "l.reverse()",
                        "l = l + [1.0]",
                        "l += [0.5]",
                        "k = l",
                        "l = [a, b]",
                        "w = l",
                    ),
                    *("l.insert(0, b)", "q.rotate(1)", f"q.append({v})", "q.popleft()", "k, l = l, k"),
                    *(
                        "r[0] = 1.0",
                        f"r[1] += {v}",
                        f"r[:2] = {v}",
                        "r += 1.0",
                        "r = r * 2",
                        "s = r",
                        "s[1] = 4.0",
                    ),
                    *("m[0][1] += 1.0", f"m[1][0] = {v}", "m[0] = m[1]", f"m.append([{v}, 0.0])"),
                    *("step(a)", "step(1.0)", "mode = 'up'", "mode = 'down'", "y = None", f"y = {v}"),
                    *("a = next(it, 0.0)", "u.add(len(u))", "t = (a, t[0])", "del d['p']; d['p'] = 1.0"),
                    *(
                        "heapq.heappush(h, a)",
                        "b = heapq.heappop(h) if h else 0.0",
                        "operator.setitem(k, 0, a)",
                    ),
                    *(
                        "inner = l.append; inner(c)",
                        "functools.partial(write, k, 0)(b)",
                        "vars(o)['v'] = 2.0",
                    ),
                    *("vars(o).update(v=a)", "c = sum(v for v in (1.0, 2.0) if v < x)", "a = [b, c][-1]"),
                    *("row += 1.0", f"row[1] = {v}", f"flat[2] = {v}", "g[1] += row", "for z in g: z += 0.5"),
                    *("n = 2", "n += 1", "mark.k = a", "Mark.k = 3.0", f"l[0], l[1] = l[1], {v}"),
                    *("b = max((l, k), key=lambda z: z[0])[0]", "a = next((z for z in it if z > x), 0.5)"),
                    *(
                        "b = 1.0 * any(step(z) > x for z in (0.5, 1.5))",
                        "c = 1.0 * all(step(z) < x for z in (0.5, 1.5))",
                    ),
                ]
            )
        )

    def block(self, most: int = 3) -> None:
        self.depth += 1
        for _ in range(self.random.randint(1, most)):
            if self.depth > 4:
                self.store()
            else:
                self.statement()
        self.depth -= 1

    def branch(self) -> None:
        self.add(f"if {self.condition()}:")
        self.block()
        if self.random.random() < 0.3:
            self.add(f"elif {self.condition()}:")
            self.block()
        if self.random.random() < 0.5:
            self.add("else:")
            self.block()

    def choice(self) -> None:
        pick = self.random.choice
        self.add(
            pick(
                [
                    f"w = l if {self.condition()} else k",
                    f"a = o.add(1.0) if {self.condition()} else helper(b)",
                    f"mode = 'up' if {self.condition()} else 'down'",
                    f"b = {self.number()} if {self.condition()} else {self.number()}",
                    f"o = o if {self.condition()} else boxes[0]",
                    f"({self.condition()}) and step(1.0)",
                    f"({self.condition()}) or l.append(2.0)",
                    f"f = helper if {self.condition()} else abs; b = f(a)",
                ]
            )
        )

    def loop(self) -> None:
        self.loops += 1
        self.names += 1
        n = f"n{self.names}"
        self.add(f"{n} = x")
        self.add(f"while {n} > 0.25:")
        self.depth += 1
        self.add(f"{n} = {n} - 1.0")
        self.depth -= 1
        self.block(2)
        self._end_of_loop()
        self.loops -= 1

    def for_loop(self) -> None:
        self.loops += 1
        self.add(f"for v in {self.random.choice(['(0.5, 1.5)', 'range(3)', 'list(l)', '(x, a, 1.0)'])}:")
        self.block(2)
        self._end_of_loop()
        self.loops -= 1

    def _end_of_loop(self) -> None:
        way = self.random.random()
        if way < 0.35:
            self.depth += 1
            self.add(f"if {self.condition()}:")
            self.add("    " + self.random.choice(["break", "continue", "break", "return a + b"]))
            self.store()
            self.depth -= 1
        if way < 0.15:
            self.add("else:")
            self.block(1)

    def attempt(self) -> None:
        self.add("try:")
        self.block(2)
        if self.random.random() < 0.5:
            self.depth += 1
            self.add(f"if {self.condition()}: raise ValueError('no')")
            self.depth -= 1
        if self.random.random() < 0.7:
            self.add(f"except {self.random.choice(['ValueError', 'Exception'])}:")
            self.block(1)
            if self.random.random() < 0.3:
                self.add("finally:")
                self.block(1)
        else:
            self.add("finally:")
            self.block(1)

    def with_return(self) -> None:
        self.add(f"if {self.condition()}:")
        self.depth += 1
        self.store()
        self.add(f"return a + {self.number()}")
        self.depth -= 1

    def program(self) -> str:
        self.lines = ["def f(x):"]
        for line in (
            "a, b, c, y, mode = 1.0, 0.5, x, None, 'up'",
            "l, k, t, u = [1.0, 2.0], [0.5, x], (1.0, 2.0), {1}",
            "w = l",
            "d = {'p': 1.0, 'q': x}",
            "o, p, boxes = Box(a), Point(1.0, x), [Box(2.0)]",
            "r = np.zeros(3)",
            "s = r",
            "m, h = [[0.0, 1.0]] * 2, [0.5, 2.0]",
            "q, it = collections.deque([1.0, 2.0]), iter([1.0, 2.0, 3.0])",
            "g = np.zeros((2, 2))",
            "row, flat, n = g[0], g.reshape(-1), 1",
            "class Mark:",
            "    k = 1.0",
            "mark = Mark()",
            "steps = 0",
            "def step(v):",
            "    nonlocal steps, a",
            "    steps += 1",
            "    if v > 0.75: a = a + v",
            "    return v",
            "def helper(v):",
            "    if v > 1.25: return v - 1.0",
            "    return v",
            "def count():",
            "    return len(l) + steps",
        ):
            self.add(line)
        for _ in range(self.random.randint(3, 7)):
            self.statement()
        for line in (
            "total = a + 2 * b + 3 * c + sum(l) + sum(k) + d['p'] + d['q'] + o.v + sum(o.items) + p.a + p.b",
            "total = total + len(mode) + (0 if y is None else y) + t[0] + steps + len(u) + sum(w) + o.total",
            "total = total + g.sum() + 2 * row[1] + 3 * flat[2] + n + mark.k",
            "return total + r[0] + 2 * s[1] + sum(q) + m[0][1] + 3 * m[1][0] + sum(h) + boxes[0].v + len(d)",
        ):
            self.add(line)
        return "\n".join(self.lines) + "\n"


def header_of(text: str) -> str:
    """The classes that a program uses: it begins as the programs of one of the two generators do."""
    return IDIOMS_HEADER if text.startswith(_OF_IDIOMS) else HEADER


_OF_IDIOMS = "def f(x):  # of idioms\n"


def program_of(seed: int) -> str:
    """A random program: of one large state, or of idioms with states of their own."""
    return Maker(seed).program() if seed % 2 else Mixer(seed).program().replace("def f(x):\n", _OF_IDIOMS, 1)


def defined(text: str, name: str) -> Any:
    """The function of a program, with its source where Python looks for it."""
    whole = header_of(text) + text
    linecache.cache[name] = (len(whole), None, whole.splitlines(True), name)
    sys.modules.setdefault("fuzzed", types.ModuleType("fuzzed"))  # `dataclass` looks there
    space: dict[str, Any] = {"__name__": "fuzzed"}
    exec(compile(whole, name, "exec"), space)
    return space["f"]


def attempted(function: Any, *args: Any) -> Any:
    try:
        return np.asarray(function(*args), np.float64)
    except Exception as error:
        return error


def check(text: str, name: str) -> tuple[str, int, int]:
    """What is wrong with a program, "" if nothing; how many inputs plain Python takes, and how many failed compiled."""
    function = defined(text, name)
    wanted = [attempted(function, x) for x in INPUTS]
    fine = [isinstance(y, np.ndarray) for y in wanted]
    compiled = px.jit(function)
    refused = 0
    for x, y, is_fine in zip(INPUTS, wanted, fine, strict=True):
        got = attempted(compiled, x)
        if isinstance(got, Exception):
            refused += is_fine
        elif not is_fine:
            return f"jit(f)({x}) is {got}, where plain Python raises {y!r}", 0, 0
        elif not np.allclose(got, y, rtol=1e-5, atol=1e-5, equal_nan=True):
            return f"jit(f)({x}) is {got}, plain Python gives {y}", 0, 0
    if all(fine) and not refused:
        got = attempted(px.vmap(function), np.asarray(INPUTS, np.float32))
        if not isinstance(got, Exception) and not np.allclose(
            got, np.stack(wanted), rtol=1e-5, atol=1e-5, equal_nan=True
        ):
            return (
                f"vmap(f)({list(INPUTS)}) is {got.tolist()}, plain Python gives {np.stack(wanted).tolist()}",
                0,
                0,
            )
        for x in INPUTS:
            eager, traced = attempted(px.grad(function), x), attempted(px.grad(compiled), x)
            both = not isinstance(eager, Exception) and not isinstance(traced, Exception)
            if both and not np.allclose(eager, traced, rtol=1e-4, atol=1e-4, equal_nan=True):
                return f"grad(jit(f))({x}) is {traced}, grad(f)({x}) is {eager}", 0, 0
    return "", sum(fine), refused


def shrunk(text: str, name: str) -> str:
    """A shorter program with the same kind of failure: statements are left out as long as it fails."""
    lines = text.splitlines()
    changed, tries = True, 0
    while changed and tries < 150:
        changed = False
        for i in range(len(lines) - 1, 0, -1):
            indent = len(lines[i]) - len(lines[i].lstrip())
            end = i + 1
            while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > indent:
                end += 1
            candidate = "\n".join(lines[:i] + lines[end:]) + "\n"
            tries += 1
            try:
                failure = check(candidate, f"{name}.{tries}")[0]
            except SyntaxError:
                continue
            if failure:
                lines, changed = candidate.splitlines(), True
                break
    return "\n".join(lines) + "\n"


def run(seed: int, statistics: collections.Counter | None = None) -> Iterator[str | None]:
    """Tries random functions; yields failures as programs that show them."""
    while True:
        text = program_of(seed)
        with warnings.catch_warnings(), px.purity("off"):
            warnings.simplefilter("ignore")
            name = f"<fuzzed {seed}>"
            failure, fine, refused = check(text, name)
            if failure:
                short = shrunk(text, name)
                failure = check(short, f"{name}s")[0] or failure
        if statistics is not None:
            statistics.update(programs=1, inputs=fine, errors=refused)
        yield f"# seed {seed}: {failure}\n{header_of(short)}\n{short}" if failure else None
        seed += 1
