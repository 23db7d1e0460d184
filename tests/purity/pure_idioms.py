"""More pure functions, many of which look as if they had side effects; a table for `test_effects`.

They were written without looking at the mechanism: builders, accumulators and caches that belong to one call, classes
that are only read, configuration of every kind.
"""

from __future__ import annotations

import abc
import bisect
import contextlib
import copy
import dataclasses
import datetime as dt
import enum
import fractions
import functools
import heapq
import inspect
import io
import itertools
import json
import logging
import math
import operator
import os
import pathlib
import random as stdlib_random
import re
import statistics
import string
import textwrap
import threading
import types
import typing
import uuid
import warnings
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce, singledispatch, wraps
from operator import attrgetter, itemgetter, methodcaller

import numpy as np
from numpy.random import default_rng

import purax as px
import purax.numpy as jnp
from purax import lax, random, tree

PROGRAMS = []


def pure(*args):
    def register(function):
        PROGRAMS.append((function, args or (1.5,)))
        return function

    return register


x3 = np.arange(3.0)
key = np.array([0, 7], np.uint32)
log = logging.getLogger("tests.purity.idioms")
log.setLevel(logging.CRITICAL)
lock = threading.Lock()

# -- state of one call


@pure()
def builds_a_list(x):
    results = []
    push = results.append
    for i in range(3):
        push(x * i)
    results.extend([x, x])
    results += [x]
    results[0] = x
    del results[1]
    results.sort(key=lambda r: 0)
    return results


@pure()
def builds_a_dict(x):
    out = {}
    out["a"] = x
    out.update(b=x * 2)
    out.setdefault("c", x)
    out |= {"d": x}
    return out


@pure()
def groups_and_counts(x):
    groups = defaultdict(list)
    for i in range(4):
        groups[i % 2].append(x * i)
    counter = Counter("abca")
    counter["z"] += 1
    counter.update("aa")
    return sum(groups[0]) * counter["a"]


@pure()
def keeps_a_window(x):
    window = deque(maxlen=2)
    for i in range(4):
        window.append(x * i)
    window.rotate(1)
    return sum(window)


@pure()
def fills_an_array(x):
    table = np.zeros(4)
    table[1:] = 2
    table[0] += 1
    table *= 2
    np.add.at(table, [0, 0], 1)
    np.multiply(table, 2, out=table)
    view = table[1:3]
    view += 1
    table.sort()
    table.T[0] = 3
    return x * table.sum()


@pure()
def copies_before_writing(x):
    mine = BASE_ARRAY.copy()
    mine[0] = 5
    mine += 1
    other = np.array(BASE_ARRAY)
    other.fill(2.0)
    third = BASE_ARRAY * 1.0
    third[...] = 0
    fourth = BASE_ARRAY.astype(np.float32)
    fourth[0] = 1
    fifth = np.sort(BASE_ARRAY)
    fifth[0] = 9
    return x * (mine.sum() + other.sum() + third.sum() + fourth.sum() + fifth.sum())


BASE_ARRAY = np.arange(4.0)
BASE_LIST = [3, 1, 2]
BASE_DICT = {"lr": 0.1, "steps": 3, "inner": {"a": 1}}
BASE_SET = {1, 2}


@pure()
def copies_containers(x):
    items = list(BASE_LIST)
    items.append(4)
    items.sort()
    config = dict(BASE_DICT, lr=0.5)
    config["new"] = 1
    deep = copy.deepcopy(BASE_DICT)
    deep["inner"]["a"] = 7
    names = set(BASE_SET)
    names.add(9)
    merged = {**BASE_DICT, "b": 2}
    merged.pop("lr")
    sliced = BASE_LIST[:]
    sliced.pop()
    other = BASE_LIST + [1]
    other[0] = 100
    return x * (
        len(items) + config["lr"] + deep["inner"]["a"] + len(names) + len(merged) + len(sliced) + other[0]
    )


@pure()
def rebinds_a_name_that_was_outside(x):
    items = BASE_LIST
    items = items + [1]
    items.append(2)
    return x * len(items)


@pure()
def adds_immutable_values_in_place(x):
    total = START
    total += 1
    text = PREFIX
    text += "b"
    pair = PAIR
    pair += (3,)
    return x * total * len(text) * len(pair)


START = 1.0
PREFIX = "a"
PAIR = (1, 2)


@pure(jnp.arange(3.0))
def adds_in_place_to_a_traced_value(x):
    y = x
    y += 1
    y *= WEIGHTS
    z = WEIGHTS
    z += 1
    z -= x
    return y + z


WEIGHTS = jnp.arange(3.0)


@pure()
def makes_objects_and_changes_them(x):
    node = Node(x)
    node.value = node.value * 2
    node.children.append(Node(x))
    node.children[0].value += 1
    node.bump()
    return node.value + node.children[0].value


class Node:
    def __init__(self, value):
        self.value = value
        self.children = []
        self.reset()

    def reset(self):
        self.count = 0

    def bump(self):
        self.count += 1
        self.value = self.value + self.count


@pure()
def changes_a_dataclass_of_its_own(x):
    state = State(step=0, value=x)
    for _ in range(3):
        state.step += 1
        state.value = state.value * 2
        state.history.append(state.value)
    return state.value + sum(state.history)


@dataclass
class State:
    step: int
    value: typing.Any
    history: list = field(default_factory=list)


@pure()
def counts_with_nonlocal_inside(x):
    calls = 0

    def bump(y):
        nonlocal calls
        calls += 1
        return y * calls

    return bump(x) + bump(x)


@pure()
def collects_with_a_closure_inside(x):
    seen = []

    def visit(y):
        seen.append(y)
        return y

    visit(x)
    visit(x * 2)
    return sum(seen)


@pure()
def uses_its_own_iterators(x):
    numbers = iter(range(3))
    first = next(numbers)
    rest = sum(numbers)
    pairs = zip(range(3), BASE_LIST, strict=True)
    _, b = next(pairs)
    ticks = itertools.count(5)
    return x * (first + rest + b + next(ticks))


@pure()
def uses_its_own_generator(x):
    def produce():
        total = 0
        for i in range(3):
            total += i
            yield x * total

    return sum(produce())


@pure()
def loops_over_outside_containers(x):
    for i, w in enumerate(BASE_LIST):
        x = x + i * w
    for name, value in BASE_DICT.items():
        x = x + len(name) if isinstance(value, dict) else x * 1.1
    for a, b in zip(BASE_LIST, PAIR, strict=False):
        x = x + a * b
    return x * sum(sorted(BASE_SET)) * max(BASE_LIST)


@pure()
def uses_a_heap_of_its_own(x):
    heap = [3, 1, 2]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    bisect.insort(heap, 5)
    return x * heapq.heappop(heap) + len(heap)


@pure()
def writes_text_in_memory(x):
    buffer = io.StringIO()
    buffer.write("abc")
    buffer.seek(0)
    return x * len(buffer.read())


@pure()
def uses_a_seeded_source(x):
    noise = default_rng(0).normal(size=3)
    source = stdlib_random.Random(1)
    state = np.random.RandomState(3)
    return x * noise.sum() + source.random() + state.rand()


@pure()
def uses_a_deterministic_identifier(x):
    return x * len(str(uuid.uuid5(uuid.NAMESPACE_DNS, "a")))


@pure()
def uses_dates_that_are_given(x):
    day = dt.date(2020, 1, 1) + dt.timedelta(days=3)
    return x * day.day


@pure()
def uses_pure_paths(x):
    path = pathlib.PurePosixPath("a") / "b.txt"
    return x * len(path.suffix) * len(os.path.join("a", "b")) * len(pathlib.Path("a/b").name)


@pure()
def formats_text(x):
    text = f"{jnp.shape(x)} {BASE_DICT['lr']:.2f}"
    return x * len(text) * len(textwrap.dedent("  a")) * len(json.dumps(BASE_DICT))


@pure()
def logs_and_warns(x):
    log.debug("x has shape %s", jnp.shape(x))
    log.info("config %s", BASE_DICT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("careful", UserWarning, stacklevel=2)
    return x


@pure()
def takes_a_lock(x):
    with lock:
        return x * 2


@pure()
def handles_errors(x):
    try:
        value = BASE_DICT["missing"]
    except KeyError:
        value = 2.0
    finally:
        done = []
        done.append(1)
    return x * value


@pure()
def asks_for_kinds(x):
    return x * (2 if isinstance(BASE_LIST, list) and callable(math.sin) and hasattr(BASE_DICT, "keys") else 3)


@pure()
def deletes_local_names(x):
    y = x * 2
    del x
    parts = {"a": y}
    del parts["a"]
    return y


# -- functions


def compose(*functions: Callable) -> Callable:
    return reduce(lambda f, g: lambda x: g(f(x)), functions)


pure()(compose(jnp.sin, jnp.cos, lambda x: x * 2))
pure()(partial(lambda a, x, b: a * x + b, 2.0, b=1.0))


def traced_once(function):
    @wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    wrapper.info = {"name": function.__name__}
    return wrapper


@pure()
@traced_once
def decorated(x):
    return x + START


@singledispatch
def dispatch(kind, x):
    return x


@dispatch.register
def _(kind: str, x):
    return x * 2


@pure()
def dispatches(x):
    return dispatch("a", x) + dispatch(1, x)


@pure()
def uses_operator_functions(x):
    return x * itemgetter("lr")(BASE_DICT) * attrgetter("real")(2.0) * len(methodcaller("upper")("a"))


@functools.cache
def window_of(n):
    return np.hanning(n + 2)


@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@pure()
def uses_cached_tables(x):
    return x * window_of(4).sum() * fibonacci(10)


_tables = {}


def table_of(n):
    if n not in _tables:
        _tables[n] = np.arange(n)
    return _tables[n]


@pure()
def uses_a_dictionary_cache(x):
    return x * table_of(3).sum()


@pure()
def recursion_over_a_tree(x):
    def total(node):
        if isinstance(node, dict):
            return sum(total(v) for v in node.values())
        return node * x

    return total({"a": 1.0, "b": {"c": 2.0}})


@pure()
def default_arguments(x, scale=2.0, axes=(0, 1), *, names=("a",), table={"a": 1.0}):  # noqa: B006
    return x * scale * len(axes) * table[names[0]]


@pure()
def keyword_functions(x):
    def inner(a, /, b, *args, c=1.0, **kwargs):
        return a * b * c + sum(args) + sum(kwargs.values())

    return inner(x, 2.0, 3.0, c=4.0, d=5.0)


@pure()
def stacks_of_contexts(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(ValueError))
        return x * 2


@contextlib.contextmanager
def scope(name):
    yield name


@pure()
def uses_a_context_manager(x):
    with scope("a") as name:
        return x * len(name)


# -- classes


class Config:
    """Plain attributes, a class attribute, a property, a nested object."""

    depth = 2

    def __init__(self):
        self.rate = 0.1
        self.sizes = [1, 2]
        self.names = {"a": 1}
        self.table = np.arange(3.0)
        self.child = types.SimpleNamespace(scale=2.0)

    @property
    def double(self):
        return self.rate * 2

    @functools.cached_property
    def squares(self):
        return [s * s for s in self.sizes]

    def apply(self, x):
        return (
            x * self.rate * self.depth * self.double * sum(self.squares) * self.child.scale * self.table.sum()
        )

    def __call__(self, x):
        local = self.sizes.copy()
        local.append(1)
        return x * sum(local)

    def __repr__(self):
        return f"Config({self.rate})"


config = Config()
pure()(config.apply)
pure()(config)
pure()(lambda x: config.apply(x) * len(repr(config)))


class Module(abc.ABC):
    def __init__(self, **parameters):
        self.__dict__.update(parameters)

    @abc.abstractmethod
    def forward(self, x): ...

    def __call__(self, x):
        return self.forward(x)


class Linear(Module):
    def forward(self, x):
        return x @ self.w + self.b


class Stack(Module):
    def forward(self, x):
        outputs = []
        for layer in self.layers:
            x = self.activation(layer(x))
            outputs.append(x)
        return x, outputs


network = Stack(
    layers=[Linear(w=jnp.ones((3, 3)) * 0.1, b=jnp.zeros(3)), Linear(w=np.eye(3), b=np.ones(3))],
    activation=jnp.tanh,
)
pure(x3)(network)


@px.tree_util.register_pytree_node_class
class Parameters:
    def __init__(self, w, b):
        self.w = w
        self.b = b

    def tree_flatten(self):
        return (self.w, self.b), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    def replace(self, **changes):
        new = copy.copy(self)
        for name, value in changes.items():
            setattr(new, name, value)
        return new


@pure(x3)
def replaces_a_copy(x):
    params = Parameters(x, 1.0)
    new = params.replace(b=x.sum() if hasattr(x, "sum") else x)
    return new.w * new.b


@dataclass(frozen=True)
class Frozen:
    rate: float = 0.1
    sizes: tuple = (1, 2)

    def __post_init__(self):
        object.__setattr__(self, "total", sum(self.sizes))


frozen = Frozen()


@pure()
def uses_frozen_dataclasses(x):
    local = Frozen(0.5)
    changed = dataclasses.replace(frozen, rate=2.0)
    return x * frozen.total * local.rate * changed.rate * len(dataclasses.asdict(frozen))


class Vector(namedtuple("Vector", "x y")):
    def scaled(self, k):
        return self._replace(x=self.x * k)


vector = Vector(1.0, 2.0)


@pure()
def uses_named_tuples(x):
    return vector.scaled(x).x + Vector(x, x).scaled(2).y


class Activation(enum.Enum):
    TANH = "tanh"
    RELU = "relu"

    def apply(self, x):
        return {"tanh": jnp.tanh, "relu": lambda v: jnp.maximum(v, 0)}[self.value](x)


@pure()
def uses_an_enum(x):
    return sum(kind.apply(x) for kind in Activation)


class Matrix:
    """Operators of its own."""

    def __init__(self, rows):
        self.rows = rows

    def __matmul__(self, other):
        return Matrix([r * other for r in self.rows])

    def __getitem__(self, i):
        return self.rows[i]

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __iadd__(self, other):
        return Matrix([r + other for r in self.rows])

    def __eq__(self, other):
        return self.rows == other.rows

    def __hash__(self):
        return 1


matrix = Matrix([1.0, 2.0])


@pure()
def uses_operators_of_a_class(x):
    product = matrix @ x
    own = Matrix([x])
    own += 1
    return product[0] + sum(product) * len(product) + own[0]


class Singleton:
    _instance = None

    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance.scale = 2.0
        return cls._instance


@pure()
def uses_a_singleton(x):
    return x * Singleton().scale


class Lazy:
    def __init__(self):
        self._table = None

    @property
    def table(self):
        if self._table is None:
            self._table = np.arange(4.0)
        return self._table


lazy = Lazy()


@pure()
def uses_a_lazy_property(x):
    return x * lazy.table.sum()


class Builder:
    def __init__(self):
        self.parts = []

    def add(self, part):
        self.parts.append(part)
        return self

    def build(self):
        return sum(self.parts)


@pure()
def uses_a_builder(x):
    return Builder().add(x).add(x * 2).build()


# -- transformations


def optimizer(rate):
    def init(params):
        return tree.map(jnp.zeros_like, params)

    def update(grads, state):
        state = tree.map(lambda s, g: 0.9 * s + g, state, grads)
        return tree.map(lambda s: -rate * s, state), state

    return init, update


init, update = optimizer(0.1)


@pure({"w": x3, "b": 1.0})
def a_training_step(params):
    state = init(params)
    losses = []
    for _ in range(2):
        loss, grads = px.value_and_grad(lambda p: jnp.sum(p["w"] ** 2) + p["b"] ** 2)(params)
        updates, state = update(grads, state)
        params = tree.map(operator.add, params, updates)
        losses.append(loss)
    return params, jnp.stack(losses)


@pure({"w": x3, "b": 1.0})
def copies_its_parameters(params):
    params = dict(params)
    params["w"] = params["w"] * 2
    new = {k: v + 1 for k, v in params.items()}
    new.pop("b")
    return new


@pure([1.0, 2.0])
def copies_its_list(xs):
    xs = list(xs)
    xs.append(xs[0])
    xs.reverse()
    return xs


@pure(x3)
def a_scan_with_a_closure(x):
    weights = [1.0, 2.0]

    def body(carry, item):
        parts = []
        for w in weights:
            parts.append(carry * w + item)
        return sum(parts), parts[0]

    return lax.scan(body, 0.0, x)


@pure(x3)
def random_numbers_with_keys(x):
    keys = random.split(key, 3)
    return sum(random.normal(k, (3,)) * x for k in keys)


@pure(x3)
def a_callback_that_writes(x):
    seen = []
    px.debug.callback(lambda v: seen.append(v), x)
    return x


@pure(x3)
def a_debug_print(x):
    px.debug.print("x = {}", x, ordered=False) if False else None
    return x


@pure(x3)
def updates_with_at(x):
    y = x.at[0].set(1.0) if hasattr(x, "at") else jnp.asarray(x).at[0].set(1.0)
    return y.at[1:].add(2.0)


@px.custom_vjp
def clip_gradient(x):
    return x


clip_gradient.defvjp(lambda x: (x, ()), lambda res, g: (jnp.clip(g, -1, 1),))


@pure()
def a_custom_rule(x):
    return px.grad(lambda v: clip_gradient(v) ** 3)(x)


@pure(x3)
def inner_jits_and_checkpoints(x):
    @px.jit
    def inner(v):
        parts = {}
        parts["a"] = v
        return parts["a"] * START

    return px.checkpoint(inner)(x) + px.vmap(inner)(x)


@pure()
def asserts_and_raises(x):
    if START > 5:
        raise ValueError("too large")
    assert START < 5, "too large"
    return x


@pure()
def imports_inside(x):
    import math as m
    from collections import deque as d

    q = d([1.0])
    q.append(m.pi)
    return x * sum(q)


@pure()
def matches_configuration(x):
    match BASE_DICT:
        case {"lr": float(rate), "inner": {"a": a}}:
            return x * rate * a
        case _:
            return x


@pure()
def comprehensions_of_every_kind(x):
    squares = {i: i * i for i in range(3)}
    names = {n for n in BASE_LIST if n > 1}
    nested = [[a * b for a in range(2)] for b in range(2)]
    return x * (sum(squares.values()) + sum(names) + sum(map(sum, nested)) + sum(i for i in BASE_LIST))


@pure()
def a_walrus_and_unpacking(x):
    first, *rest = BASE_LIST
    if (n := len(rest)) > 1:
        x = x * n
    (a, b), c = (1, 2), 3
    return x * (first + a + b + c)


@pure()
def strings_and_patterns(x):
    found = re.findall("a", "banana")
    text = "".join(sorted(string.ascii_lowercase[:3]))
    return x * len(found) * len(text) * statistics.mean([1, 2]) * float(fractions.Fraction(1, 2))


@pure()
def a_class_inside(x):
    class Local:
        factor = 2.0

        def __init__(self, v):
            self.v = v

        def get(self):
            Local.factor += 1
            return self.v * self.factor

    return Local(x).get()


@pure()
def ordered_and_chained(x):
    ordered = OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    chained = ChainMap({}, BASE_DICT)
    chained["new"] = 3
    return x * list(ordered.values())[0] * chained["new"] * chained["lr"]


@pure()
def inspects_a_signature(x):
    return x * len(inspect.signature(table_of).parameters)


@pure()
def sorts_with_a_key(x):
    order = sorted(BASE_DICT, key=lambda k: len(k))
    ranked = sorted(range(3), key=BASE_LIST.__getitem__)
    return x * len(order[0]) * ranked[0] + min(BASE_LIST, key=lambda v: -v)


@pure()
def maps_a_method_of_its_own(x):
    seen = []
    list(map(seen.append, [x, x * 2]))
    return sum(seen)


@pure(x3)
def numpy_on_static_shapes(x):
    n = np.prod(np.shape(x))
    mask = np.tril(np.ones((3, 3), bool))
    index = np.arange(3)
    index[0] = 2
    return jnp.asarray(x)[index] * n * mask.sum()


@pure()
def local_thread_state(x):
    storage = threading.local()
    storage.value = x
    return storage.value * 2


@pure()
def prints_to_a_buffer_of_its_own(x):
    buffer = io.StringIO()
    print("a", file=buffer)
    return x * len(buffer.getvalue())


@pure()
def builds_in_traced_control_flow(x):
    parts = []
    total = 0.0
    for i in range(3):
        if x > i:
            x = x * 0.5
        parts.append(x)
        total = total + x
    state = {}
    while x < 3:
        x = x + 1
    state["x"] = x
    return parts, total, state
