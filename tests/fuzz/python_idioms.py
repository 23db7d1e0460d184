"""Random functions made of idioms: small parts with state of their own, whose steps are mixed under traced conditions.

Each idiom is what a library of Python's, or a part of the language, does with state: iterators, heaps, coroutines,
exceptions, classes with methods that Python calls itself, arrays of NumPy that functions write to. In the text of an
idiom, `@` is its number, `#` a number and `?` a condition. `python_functions` compares them with plain Python.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.fuzz import library_idioms

HEADER = (
    library_idioms.HEADER
    + """\
import bisect, collections, contextlib, copy, dataclasses, enum, functools, heapq, itertools, math, operator, random
import types
import numpy as np

class Flagged:
    def __init__(self, v):
        self.v, self.asked = v, 0
    def __bool__(self):
        self.asked += 1
        return self.v > 0.25
    def __contains__(self, v):
        return v < self.v
    def __lt__(self, other):
        return self.v < other.v
    def __iadd__(self, v):
        self.v = self.v + v
        return self
    def __enter__(self):
        self.v = self.v + 1.0
        return self
    def __exit__(self, kind, error, trace):
        self.v = self.v * 0.5
        return kind is ValueError

class Cells:
    def __init__(self):
        self.a, self.writes = np.zeros(3), 0
    def __setitem__(self, i, v):
        self.a[i] = v
        self.writes += 1
    def __getitem__(self, i):
        return self.a[i]
    def __len__(self):
        return self.writes

class Base:
    made = 0
    def __init__(self, v):
        self.__v = v
        Base.made = Base.made + 1
    def step(self, v):
        if v > 0.75:
            self.__v = self.__v + v
        return self.__v

class Child(Base):
    def step(self, v):
        r = super().step(v)
        return r - 1.0 if r > 2.25 else r

class Doubling:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, owner, kind):
        return getattr(owner, self.name, 0.0)
    def __set__(self, owner, v):
        setattr(owner, self.name, 2 * v)
        owner.sets = getattr(owner, "sets", 0) + 1

class Described:
    v = Doubling()

@dataclasses.dataclass
class Item:
    cost: float
    name: str = "n"
    done: bool = False

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3
"""
)


class Idiom(NamedTuple):
    """Lines that make its state, statements that change it, and the number it comes to."""

    setup: tuple[str, ...]
    steps: tuple[str, ...]
    total: str


IDIOMS = (
    Idiom(  # objects that a branch makes, with several names
        ("p@ = [1.0, 2.0]", "q@ = p@", "h@ = types.SimpleNamespace(u=p@, v=p@)"),
        (
            "p@ = [#, 1.0]; q@ = p@",
            "q@ = [#, a]; h@.u = q@; h@.v = [q@]",
            "p@ = (h@.u, h@.u)[0]",
            "p@[0] += #",
            "q@[1] = #",
            "a += p@[0] if p@ is q@ else q@[1]",
            "h@.u = p@; h@.v = h@.u",
        ),
        "p@[0] + 2.0 * q@[1] + h@.u[0] + (1.0 if h@.u is h@.v else 0.0)",
    ),
    Idiom(
        ("g@ = random.Random(3)",),
        ("a += g@.random()", "g@.shuffle(l)", "a = g@.choice([1.0, 2.0]) + #"),
        "g@.random()",
    ),
    Idiom(
        ("g@ = np.random.default_rng(2)",), ("a += g@.integers(1, 4)", "g@.random()"), "g@.integers(0, 100)"
    ),
    Idiom(
        (
            "def total@():",
            "    t = 0.0",
            "    while True:",
            "        v = yield t",
            "        if v > 0.75: t = t + v",
            "s@ = total@()",
            "next(s@)",
        ),
        ("s@.send(#)", "a = s@.send(1.0)"),
        "s@.send(0.0)",
    ),
    Idiom(
        (
            "def parts@(n):",
            "    for k in range(n):",
            "        if k < #: yield k * 1.0",
        ),
        ("a += sum(parts@(3))", "l.extend(parts@(2))", "for p in parts@(3): a = a + p"),
        "sum(parts@(2))",
    ),
    Idiom(
        ("def down@(v, n):", "    if n == 0 or v < 0.25: return 1.0", "    return v * down@(v - 1.0, n - 1)"),
        ("a = down@(#, 3)", "a += down@(x, 2)"),
        "down@(x, 4)",
    ),
    Idiom(
        ("def away@(v):", "    return v if v < 1.25 else away@(v - 1.0) + 0.5"), ("a = away@(#)",), "away@(x)"
    ),
    Idiom(
        ("o@ = Flagged(#)", "w@ = o@"),
        (
            "o@ += #",
            "if o@: a += 1.0",
            "a = 2.0 if not o@ else a",
            "o@.v -= 1.0",
            "if # in o@: a = a - 1.0",
            "with o@: a += o@.v",
            "o@ = min(o@, Flagged(1.0))",
            "with o@:\n    if ?: raise ValueError('left')\n    a += 4.0",
        ),
        "o@.v + 2 * w@.v",
    ),
    Idiom(
        ("names@ = ['a', 'bb', 'ccc']", "i@ = 0"),
        (
            "if ?: i@ = 1",
            "i@ = (i@ + 1) % 3",
            "a += len(names@[i@])",
            "names@[i@] += 'z'",
            "a += len(names@[:i@])",
            "a += ord('abcd'[i@]) - 96",
            "a += len('abcd'[i@:])",
        ),
        "i@ + sum(map(len, names@))",
    ),
    Idiom(
        ("rows@ = [('p', 1.0), ('q', x), ('r', 2.0)]", "best@ = 0"),
        (
            "for j in range(3):\n    if rows@[j][1] > rows@[best@][1]: best@ = j",
            "a += rows@[best@][1]",
            "rows@.append(rows@.pop(best@)) if len(rows@) > 2 else None",
        ),
        "len(rows@) + best@",
    ),
    Idiom(
        ("b@ = np.zeros(3)", "c@ = b@[1:]"),
        (
            "b@.fill(#)",
            "np.copyto(b@, #)",
            "b@.flat[1] = #",
            "operator.setitem(b@, 0, #)",
            "b@[b@ > 0.75] *= 2.0",
            "np.put(b@, [0], #)",
            "np.add(b@, #, out=b@)",
            "c@[0] += #",
            "np.add.at(b@, [0, 0], #)",
            "b@[[0, 2]] = b@[[2, 0]]",
            "b@.__setitem__(2, #)",
        ),
        "b@.sum() + 2 * c@[0]",
    ),
    Idiom(
        ("m@ = np.array([x, 1.0, 2.0])", "z@ = np.zeros_like(m@)"),
        (
            "m@[0] = #",
            "m@[1:] += #",
            "z@[0] += m@[1]",
            "m@ = np.where(m@ > 0.75, m@, -m@)",
            "a += m@.max()",
            "m@.sort()",
            "z@ = m@",
            "z@ = m@.copy()",
            "m@ = np.concatenate([m@[1:], m@[:1]])",
        ),
        "m@[0] + 2 * m@[1] + 3 * z@.sum()",
    ),
    Idiom(
        ("e@ = Cells()",),
        ("e@[0] = #", "e@[1] = 2.0", "a += e@[0]", "if e@: a += 1.0"),
        "e@.a.sum() + len(e@)",
    ),
    Idiom(("k@ = Child(#)",), ("a = k@.step(#)", "k@ = Child(1.0)", "k@.step(1.0)"), "k@.step(0.0)"),
    Idiom(
        ("d@ = Described()",), ("d@.v = #", "a = d@.v", "d@.v = d@.v + 1.0"), "d@.v + getattr(d@, 'sets', 0)"
    ),
    Idiom(
        ("j@ = [Item(1.0), Item(x), Item(2.0)]",),
        (
            "for t in j@:\n    if not t.done and t.cost < #: t.done = True; a += t.cost",
            "j@[0].cost = #",
            "max(j@, key=lambda t: t.cost).name = 'best'",
            "j@.sort(key=lambda t: t.cost)",
            "j@[1] = dataclasses.replace(j@[1], cost=#)",
        ),
        "sum(t.cost * (2.0 if t.done else 1.0) + len(t.name) for t in j@)",
    ),
    Idiom(
        ("h@ = [1.0, 3.0]",),
        ("heapq.heappush(h@, #)", "a = heapq.heappop(h@) if h@ else a"),
        "sum(h@) + len(h@)",
    ),
    Idiom(
        ("n@ = itertools.count(1)", "y@ = itertools.cycle([1.0, 2.0])"),
        ("a += next(n@)", "a += next(y@)", "next(n@)", "while next(n@) < x: a += 0.5"),
        "next(n@) + next(y@)",
    ),
    Idiom(
        ("u@ = collections.OrderedDict(p=1.0, q=x)", "f@ = collections.defaultdict(list)"),
        (
            "u@.move_to_end('p')",
            "u@['r'] = #",
            "f@['hi' if ? else 'lo'].append(1.0)",
            "u@.popitem() if len(u@) > 1 else None",
            "u@.pop('q', None)",
        ),
        "sum((i + 1) * v for i, v in enumerate(u@.values())) + len(f@['hi'])",
    ),
    Idiom(
        ("log@ = []", "@contextlib.contextmanager", "def open@(v):", "    log@.append(v)", "    try: yield v")
        + ("    finally: log@.append(-1.0)",),
        ("with open@(#) as v: a += v", "with open@(1.0):\n    if ?: log@.append(2.0)"),
        "sum(i * v for i, v in enumerate(log@))",
    ),
    Idiom(
        (
            "calls@ = []",
            "@functools.lru_cache(None)",
            "def cached@(n):",
            "    calls@.append(n)",
            "    return n * 2.0",
        ),
        ("a += cached@(1)", "a += cached@(len(l))", "cached@.cache_clear()"),
        "len(calls@)",
    ),
    Idiom(
        ("tries@ = 0", "def attempt@(v):", "    nonlocal tries@", "    tries@ += 1")
        + ("    if v > tries@: raise RuntimeError('again')", "    return v"),
        (
            "for _ in range(3):\n    try: a = attempt@(#); break\n    except RuntimeError: continue\nelse: a = -1.0",
            "try: attempt@(#)\nexcept RuntimeError: a += 1.0\nelse: a += 2.0\nfinally: a += 0.25",
        ),
        "tries@",
    ),
    Idiom(
        ("state@ = 'idle'",),
        (
            "match state@:\n    case 'idle' if ?: state@ = 'run'\n    case 'run': state@ = 'stop'\n    case _: a += 1",
            "a += {'idle': 1.0, 'run': 2.0, 'stop': 3.0}[state@]",
            "state@ = 'run'",
        ),
        "len(state@)",
    ),
    Idiom(
        ("lv@ = Level.LOW", "bits@ = 1"),
        ("if ?: lv@ = Level.HIGH", "bits@ = bits@ << 1 if ? else bits@ | 4", "a += lv@ * 1.0"),
        "lv@ + (bits@ & 7)",
    ),
    Idiom(
        ("v@ = [x, 2.0, 1.0]",),
        (
            "for i in range(2):\n    if v@[i] > v@[i + 1]: v@[i], v@[i + 1] = v@[i + 1], v@[i]",
            "v@[0], *rest = v@[1:] + [#]",
            "a += sum(p for p in v@ if p > 0.75)",
            "a += next((p for p in v@ if p > 1.25), -1.0)",
            "bisect.insort(v@, 1.5) if ? else None",
            "if (w := v@[0] + #) > 0.75: a = w",
        ),
        "v@[0] + 2 * v@[1] + len(v@)",
    ),
    Idiom(
        ("q@ = copy.deepcopy([[1.0], [x]])", "r@ = copy.copy(q@)"),
        ("q@[0].append(#)", "r@[1][0] = #", "q@ = q@ + [[0.5]]", "r@[0], r@[1] = r@[1], r@[0]"),
        "sum(map(sum, q@)) + len(r@) + 2 * r@[0][0]",
    ),
    Idiom(
        ("ops@ = [lambda v: v + 1.0, lambda v: v * 2.0]", "pick@ = 0"),
        ("pick@ = 1 - pick@", "a = ops@[pick@](#)", "ops@.reverse()", "if ?: pick@ = 1"),
        "ops@[0](1.0) + pick@",
    ),
)
IDIOMS += tuple(Idiom(*each) for each in library_idioms.LIBRARY_IDIOMS)


class Mixer:
    """Writes one function of a few idioms."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.loops = 0

    def number(self) -> str:
        return self.random.choice(
            ["x", "a", "x", "1.0", "0.5", "2.0", "(x - 1.0)", "(a + 0.5)", "l[0]", "abs(a)"]
        )

    def condition(self) -> str:
        limit = self.random.choice(["0.25", "-0.25", "1.25", "0.75", "2.25"])
        simple = f"{self.random.choice(['x', 'x', 'a', 'l[0]'])} {self.random.choice('<>')} {limit}"
        return self.random.choice([simple, simple, f"not {simple}", f"{simple} and x < 2.25", "len(l) > 2"])

    def add(self, text: str, number: int) -> None:
        text = (
            text.replace("@", str(number)) if "@contextlib" not in text and "@functools" not in text else text
        )
        while "#" in text:
            text = text.replace("#", self.number(), 1)
        while "?" in text:
            text = text.replace("?", self.condition(), 1)
        self.lines += ["    " * self.depth + line for line in text.split("\n")]

    def block(self, chosen: list[tuple[int, Idiom]], most: int) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement(chosen)

    def statement(self, chosen: list[tuple[int, Idiom]]) -> None:
        kind = self.random.random()
        number, idiom = self.random.choice(chosen)
        if kind < 0.5 or self.depth > 2:
            self.add(self.random.choice([*idiom.steps, "l.append(#)"]), number)
            return
        if kind < 0.8 or self.loops:
            self.add("if ?:", number)
        elif kind < 0.9:
            self.add(
                self.random.choice(["for v in (0.5, 1.5):", "for v in (x, 1.0):", "for v in range(2):"]),
                number,
            )
        else:
            self.add("left = x\nwhile left > 0.25:\n    left = left - 1.0", number)
        is_loop = "if" not in self.lines[-1].split(":")[0]
        self.loops += is_loop
        self.depth += 1
        self.block(chosen, 2)
        if is_loop and self.random.random() < 0.4:
            self.add("if ?: " + self.random.choice(["break", "continue", "return a + sum(l)"]), number)
        self.depth -= 1
        self.loops -= is_loop
        if not is_loop and self.random.random() < 0.4:
            self.add("else:", number)
            self.depth += 1
            self.block(chosen, 2)
            self.depth -= 1

    def program(self) -> str:
        chosen = list(enumerate(self.random.sample(IDIOMS, self.random.choice((1, 1, 2)))))
        self.lines = ["def f(x):", "    a, l = 1.0, [x, 0.5]"]
        for number, idiom in chosen:
            for line in idiom.setup:
                self.add(line, number)
        for _ in range(self.random.randint(1, 4)):
            self.statement(chosen)
        totals = [idiom.total.replace("@", str(number)) for number, idiom in chosen]
        self.add(f"return a + sum(l) + len(l) + {' + '.join(totals)}", 0)
        return "\n".join(self.lines) + "\n"
