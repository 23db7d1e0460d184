"""Pure functions in the idioms that people use, none of which may raise an alarm; a table for `test_effects`."""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import json
import logging
import math
import operator
import os
import re
import string
import types
import typing
import warnings
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial, reduce

import numpy as np

import purax as px
import purax.numpy as jnp
from purax import lax, random, tree

PROGRAMS = []


def pure(*args):
    def register(function):
        PROGRAMS.append((function, args or (1.5,)))
        return function

    return register


def all_pure(*functions, args=(1.5,)):
    for function in functions:
        PROGRAMS.append((function, args))


X = np.arange(6.0).reshape(2, 3)
key = np.array([0, 7], np.uint32)

# -- captured values

lr = 0.1
SIZES = (4, 8)
LAYERS = [1.0, 2.0, 3.0]
CONFIG = {"lr": 0.1, "layers": [2, 3], "act": "tanh", "nested": {"a": 1}}
ARRAY = np.arange(3.0)
weights = jnp.arange(3.0)
params = {"w": jnp.ones(3), "b": jnp.zeros(3)}
NAMES = {"a", "b"}
ACTIVATIONS = {"tanh": jnp.tanh, "relu": lambda x: jnp.maximum(x, 0)}
namespace = types.SimpleNamespace(scale=2.0, mode="train")
arguments = argparse.Namespace(lr=0.3, steps=2)
Point = collections.namedtuple("Point", "x y")
origin = Point(1.0, 2.0)
act = jnp.sin
VERBOSE = False
logger = logging.getLogger("tests.purity")
logger.setLevel(logging.ERROR)
pattern = re.compile("a+")


class Mode(enum.Enum):
    TRAIN = 1
    EVAL = 2


class Kind(enum.IntEnum):
    A = 1


mode = Mode.TRAIN

all_pure(
    lambda x: x * lr,
    lambda x: x + SIZES[0],
    lambda x: x * sum(LAYERS),
    lambda x: x * CONFIG["lr"],
    lambda x: x * CONFIG["nested"]["a"],
    lambda x: x * CONFIG.get("lr", 1.0),
    lambda x: x * CONFIG.get("missing", 2.0),
    lambda x: x * len(CONFIG["layers"]),
    lambda x: x + ARRAY,
    lambda x: x + ARRAY.sum(),
    lambda x: x + weights,
    lambda x: x @ params["w"] if jnp.ndim(x) else params["w"] * x + params["b"],
    lambda x: ACTIVATIONS["tanh"](x),
    lambda x: ACTIVATIONS[CONFIG["act"]](x),
    lambda x: x * namespace.scale,
    lambda x: x * arguments.lr,
    lambda x: x + origin.x,
    lambda x: act(x),
    lambda x: x if mode is Mode.TRAIN else -x,
    lambda x: x * Mode.EVAL.value,
    lambda x: x * Kind.A,
    lambda x: x * math.pi,
    lambda x: x * np.float32(3),
    lambda x: x * math.sqrt(2) + math.floor(2.5),
    lambda x: x + len([n for n in NAMES]),
    lambda x: x * (2 if "a" in NAMES else 3),
    lambda x: x + jnp.asarray(LAYERS),
    lambda x: x + np.asarray(LAYERS).sum(),
    lambda x: [x * n for n in LAYERS],
    lambda x: {name: x for name in sorted(NAMES)},
    lambda x: tuple(x * n for n in LAYERS),
    lambda x: reduce(operator.add, [x, x, x]),
    lambda x: sum(map(lambda n: x * n, LAYERS)),
    lambda x: [x * n for n in filter(None, LAYERS)],
    lambda x: x * max(LAYERS, key=lambda n: -n),
    lambda x: x + (print("verbose") or 0 if VERBOSE else 0),
    lambda x: x * bool(pattern.match("aaa")),
    lambda x: x + len(string.ascii_letters),
    lambda x: x + int("12"),
    lambda x: x + len(json.dumps({"a": 1})),
    lambda x: x + len(os.path.join("a", "b")),
    lambda x: tree.map(lambda p: p * x, params),
    lambda x: tree.map(lambda p, q: p + q * x, params, params),
    lambda x: px.grad(lambda y: y**2 * lr)(x),
    lambda x: px.vmap(lambda y: y * lr)(x * jnp.ones(2)),
    lambda x: px.value_and_grad(lambda y: jnp.sum(y * weights))(x),
    lambda x: lax.cond(x > 0, lambda y: y * lr, lambda y: -y, x),
    lambda x: lax.fori_loop(0, 3, lambda i, y: y * lr, x),
    lambda x: lax.while_loop(lambda y: y < 10, lambda y: y * 2, x),
    lambda x: lax.scan(lambda c, a: (c + a, c), x, weights),
    lambda x: random.normal(random.PRNGKey(0), (3,)) * x,
    lambda x: px.checkpoint(lambda y: jnp.sin(y) * lr)(x),
    lambda x: np.random.default_rng(0).normal() * x,
    lambda x: partial(jnp.add, x)(2.0),
    lambda x: partial(lambda a, b: a * b * lr, b=2.0)(x),
    lambda x: (lambda y, s=lr: y * s)(x),
    lambda x: functools.partial(px.nn.softmax, axis=-1)(x * weights),
    lambda x: jnp.where(x > 0, x, 0.0),
    lambda x: weights.at[0].set(x),
    lambda x: weights.at[0].add(x).at[1].multiply(2),
    lambda x: (y := x * 2) + y,
    lambda x: f"{lr}" and x,
    lambda x: isinstance(x, float) and x or x,
    lambda x: itertools.chain([x], [x]) and x,
    lambda x: [a + b for a, b in zip([x, x], itertools.count(), strict=False)],
    lambda x: x + next(iter(LAYERS)),
    lambda x: dict(CONFIG, x=1) and x,
    lambda x: {**params, "c": x},
    lambda x: [*LAYERS, x][-1],
    lambda x: sorted(CONFIG) and x,
    lambda x: copy.deepcopy(CONFIG)["lr"] * x,
    lambda x: x + hash("a") * 0,
    lambda x: getattr(namespace, "scale") * x,  # noqa: B009
    lambda x: getattr(namespace, "nothing", 3.0) * x,
    lambda x: x * typing.cast(float, 2.0),
)


# -- local state


@pure()
def local_list(x):
    out = []
    for i in range(3):
        out.append(x * i)
    return out


@pure()
def local_dict(x):
    out = {}
    out["x"] = x
    out.update(y=x)
    out.setdefault("z", x)
    return out


@pure()
def local_counter(x):
    n = 0
    for _ in range(3):
        n += 1
    return x * n


@pure()
def local_set(x):
    seen = set()
    for name in ("a", "b", "a"):
        if name not in seen:
            seen.add(name)
            x = x + 1
    return x


@pure()
def local_numpy(x):
    table = np.zeros(3)
    table[0] = 1.0
    table += 2
    return x * table


@pure()
def local_nonlocal(x):
    n = 0

    def step(y):
        nonlocal n
        n += 1
        return y * n

    return step(step(x))


@pure()
def local_list_in_closure(x):
    hidden = []

    def layer(y, i):
        y = jnp.sin(y * i)
        hidden.append(y)
        return y

    for i in range(2):
        x = layer(x, i)
    return x, hidden


@pure()
def list_handed_to_helper(x):
    out = []
    _fill(out, x)
    return out


def _fill(out, x):
    out.append(x)
    out += [x]


@pure()
def local_object(x):
    p = _Builder()
    p.add(x)
    p.total = p.total + 1
    return p.total


class _Builder:
    def __init__(self):
        self.total = 0.0
        self.items = []

    def add(self, x):
        self.items.append(x)
        self.total = self.total + x
        return self


@pure()
def chained_builder(x):
    return _Builder().add(x).add(x).total


@pure()
def local_deque(x):
    queue = collections.deque([x], maxlen=3)
    queue.append(x * 2)
    return queue.popleft()


@pure()
def local_defaultdict(x):
    groups = collections.defaultdict(list)
    groups["a"].append(x)
    return dict(groups)


@pure()
def local_iterator(x):
    numbers = iter([1, 2, 3])
    return x * next(numbers) + next(numbers)


@pure()
def local_generator(x):
    return sum(x * i for i in range(3))


def _numbers():
    n = 0
    while n < 3:
        yield n
        n += 1


@pure()
def user_generator(x):
    return sum(x * n for n in _numbers())


@pure()
def copied_dict(x):
    mine = dict(CONFIG)
    mine["lr"] = 2.0
    return x * mine["lr"]


@pure()
def copied_list(x):
    mine = list(LAYERS)
    mine.append(3.0)
    mine[0] = 2.0
    return x * sum(mine)


@pure()
def copied_array(x):
    mine = ARRAY.copy()
    mine[0] = 5.0
    return x + mine


@pure()
def deep_copied(x):
    mine = copy.deepcopy(CONFIG)
    mine["nested"]["a"] = 7
    return x * mine["nested"]["a"]


@pure()
def sliced_list(x):
    mine = LAYERS[:]
    mine.append(1.0)
    return x * len(mine)


@pure()
def joined_lists(x):
    mine = LAYERS + [4.0]
    mine.append(1.0)
    return x * len(mine)


@pure({"w": 1.0, "b": 2.0})
def copied_argument(p):
    p = dict(p)
    p["w"] = p["w"] * 2
    return p


@pure({"w": 1.0, "b": 2.0})
def merged_argument(p):
    return {**p, "w": p["w"] * 2}


@pure({"w": 1.0, "b": 2.0})
def comprehension_of_argument(p):
    return {name: value * 2 for name, value in p.items()}


@pure([1.0, 2.0])
def loops_over_argument(xs):
    out = 0.0
    for x in xs:
        out += x
    return out


@pure([1.0, 2.0])
def in_place_number(xs):
    a, b = xs
    a += b
    a *= 2
    return a


@pure(X)
def in_place_array_name(x):
    x += 1
    x *= 2
    return x


@pure()
def generator_expression_state(x):
    it = (x * i for i in range(3))
    return next(it) + next(it)


@pure()
def branches(x, verbose=False):
    if verbose:
        print("never")
    return x


@pure()
def guarded_print(x):
    if VERBOSE:
        print("never")
    if namespace.mode == "debug":
        CONFIG["seen"] = True
    return x


@pure()
def sorted_local(x):
    order = [3, 1, 2]
    order.sort()
    order.reverse()
    return x * order[0]


@pure()
def try_and_except(x):
    try:
        scale = CONFIG["none"]
    except KeyError:
        scale = 2.0
    return x * scale


@pure()
def with_block(x):
    with contextlib.suppress(ValueError), px.named_scope("here"):
        return x * 2


@pure()
def context_of_the_users(x):
    with _scope("a") as factor:
        return x * factor


@contextlib.contextmanager
def _scope(name):
    yield len(name) * 2.0


@pure()
def match_statement(x):
    match CONFIG["act"]:
        case "tanh":
            return jnp.tanh(x)
        case _:
            return x


@pure()
def star_arguments(x):
    return _stars(x, 2.0, c=3.0)


def _stars(*args, **kwargs):
    return sum(args) * kwargs["c"]


@pure()
def keyword_only(x):
    return _keyword(x, scale=lr)


def _keyword(x, *, scale=1.0, shift=0.0):
    return x * scale + shift


@pure()
def recursion(x):
    return _power(x, 4)


def _power(x, n):
    return x if n == 1 else x * _power(x, n - 1)


@pure()
def recursive_inner(x):
    def go(y, n):
        return y if n == 0 else go(y * 2, n - 1)

    return go(x, 3)


@pure()
def raises_nothing(x):
    if not isinstance(CONFIG, dict):
        raise TypeError("no")
    assert len(SIZES) == 2, "sizes"
    return x


@pure()
def imports_inside(x):
    import math as m
    from functools import reduce as fold

    return fold(lambda a, b: a + b, [x, m.pi])


@pure()
def logs(x):
    logger.debug("tracing %s", x)
    logging.getLogger("tests.purity").info("again")
    return x


@pure()
def warns(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
    return x


@pure()
def debug_print(x):
    px.debug.print("x {}", x)
    return x


sink = []


def _collect(x):
    sink.append(float(x))


@pure()
def debug_callback(x):
    px.debug.callback(_collect, x)
    return x


@pure()
def pure_callback(x):
    return px.pure_callback(lambda y: np.asarray(y) * 2, px.ShapeDtypeStruct((), np.float32), x)


# -- caches


@lru_cache(maxsize=None)  # noqa: UP033 (one of the idioms)
def _table(n):
    return np.arange(n) ** 2


@cache
def _factor(n):
    return n * 2.0


_memo = {}
_lazy = None


def _memoized(n):
    if n not in _memo:
        _memo[n] = np.ones(n)
    return _memo[n]


def _memoized_by_get(n):
    found = _memo.get(("g", n))
    if found is None:
        found = _memo[("g", n)] = np.ones(n)
    return found


def _memoized_by_try(n):
    try:
        return _memo["t", n]
    except KeyError:
        _memo["t", n] = np.ones(n)
        return _memo["t", n]


def _lazily():
    global _lazy
    if _lazy is None:
        _lazy = np.arange(3.0)
    return _lazy


class Lazy:
    def __init__(self):
        self._table = None
        self._cache = {}

    @property
    def table(self):
        if self._table is None:
            self._table = np.arange(3.0)
        return self._table

    @cached_property
    def squares(self):
        return np.arange(3.0) ** 2

    def scale(self, n):
        if n not in self._cache:
            self._cache[n] = n * 2.0
        return self._cache[n]

    @lru_cache  # noqa: B019
    def factor(self, n):
        return n * 3.0

    def __call__(self, x):
        return x * self.scale(2) + self.table.sum() + self.squares.sum() * self.factor(1)


lazy = Lazy()
all_pure(
    lambda x: x + _table(3),
    lambda x: x * _factor(2),
    lambda x: x + _memoized(3),
    lambda x: x + _memoized_by_get(3),
    lambda x: x + _memoized_by_try(3),
    lambda x: x + _lazily(),
    lambda x: x + lazy.table,
    lambda x: x + lazy.squares,
    lambda x: x * lazy.scale(3),
    lambda x: x * lazy.factor(3),
    Lazy(),
)


# -- classes


@dataclass(frozen=True)
class Frozen:
    lr: float = 0.1
    sizes: tuple = (2, 3)

    @property
    def double(self):
        return self.lr * 2

    @staticmethod
    def shift(x):
        return x + 1

    @classmethod
    def default(cls):
        return cls()

    def apply(self, x):
        return self.shift(x) * self.double


@dataclass
class Plain:
    lr: float = 0.1
    names: list = field(default_factory=lambda: ["a"])

    def __post_init__(self):
        self.total = self.lr + len(self.names)


frozen, plain = Frozen(), Plain()
all_pure(
    lambda x: x * frozen.lr,
    lambda x: x * frozen.double,
    lambda x: frozen.apply(x),
    frozen.apply,
    lambda x: x * Frozen.default().lr,
    lambda x: x * Plain(lr=2.0).total,
    lambda x: x * plain.total,
    lambda x: x * dataclasses.replace(frozen, lr=3.0).lr,
    lambda x: x * len(plain.names),
    lambda x: Frozen.shift(x),
    lambda x: x * dataclasses.asdict(plain)["lr"],
)


class Dense:
    def __init__(self, size, activation=jnp.tanh):
        self.w = jnp.full((3, size), 0.1)
        self.b = jnp.zeros(size)
        self.activation = activation

    def __call__(self, x):
        return self.activation(x @ self.w + self.b)


class Network:
    scale = 2.0

    def __init__(self):
        self.layers = [Dense(3), Dense(3, jnp.sin)]
        self.by_name = {"head": Dense(3)}
        self.config = Frozen()
        self.training = False
        self.steps = 0

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x) * self.config.lr

    def head(self, x):
        if self.training:
            self.steps += 1
        return self.by_name["head"](x) * self.scale

    def with_enumerate(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        return x

    def with_zip(self, x):
        for layer, scale in zip(self.layers, LAYERS, strict=False):
            x = layer(x) * scale
        return x

    def with_items(self, x):
        for name, layer in self.by_name.items():
            x = layer(x) * len(name)
        return x

    def loss(self, x):
        return jnp.sum(self(x) ** 2)

    def gradient(self, x):
        return px.grad(self.loss)(x)

    __hash__ = object.__hash__


class Wide(Network):
    def __init__(self):
        super().__init__()
        self.wide = True

    def head(self, x):
        return super().head(x) + 1.0


network, wide = Network(), Wide()
all_pure(
    network,
    wide,
    network.head,
    network.with_enumerate,
    network.with_zip,
    network.with_items,
    network.loss,
    network.gradient,
    lambda x: network(x),
    lambda x: px.vmap(network)(x),
    lambda x: Dense(3)(x),
    lambda x: [layer(x) for layer in network.layers],
    lambda x: reduce(lambda y, layer: layer(y), network.layers, x),
    args=(X,),
)


class Container(typing.NamedTuple):
    w: typing.Any
    b: typing.Any

    def apply(self, x):
        return x * self.w + self.b


@px.tree_util.register_dataclass
@dataclass
class TrainState:
    params: dict
    step: typing.Any

    def updated(self, gradients):
        new = {name: p - lr * gradients[name] for name, p in self.params.items()}
        return dataclasses.replace(self, params=new, step=self.step + 1)


@px.tree_util.register_pytree_node_class
class Module:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return x * self.w

    def tree_flatten(self):
        return (self.w,), None

    @classmethod
    def tree_unflatten(cls, auxiliary, children):
        return cls(*children)


all_pure(lambda c: c.apply(2.0), lambda c: c._replace(w=c.w * 2), args=(Container(1.0, 2.0),))
all_pure(lambda s: s.updated(s.params), args=(TrainState({"w": 1.0}, 0),))
all_pure(lambda m: m(2.0), lambda m: px.grad(lambda n: n(3.0))(m), args=(Module(2.0),))


class Operators:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return Operators(self.x + other.x)

    def __getitem__(self, i):
        return self.x * i

    def __iter__(self):
        return iter([self.x, self.x])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __len__(self):
        return 2


@pure()
def operators(x):
    with Operators(x) as a:
        return (a + Operators(2.0))[3] + sum(a) * len(a)


# -- functions of functions


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def scaled(factor):
    def decorate(function):
        def wrapper(x):
            return function(x) * factor

        return wrapper

    return decorate


@timed
@scaled(2.0)
def decorated(x):
    return x + lr


def compose(*functions):
    def run(x):
        for function in functions:
            x = function(x)
        return x

    return run


def dense(size):
    def initialize(k):
        return {"w": jnp.ones((3, size)) * 0.1}

    def apply(p, x):
        return x @ p["w"]

    return initialize, apply


def sgd(rate, momentum=0.9):
    """In the style of gradient transformations."""

    def init(p):
        return tree.map(jnp.zeros_like, p)

    def update(gradients, state, p=None):
        state = tree.map(lambda g, m: g + momentum * m, gradients, state)
        return tree.map(lambda m: -rate * m, state), state

    return types.SimpleNamespace(init=init, update=update)


optimizer = sgd(0.1)
initialize, apply_dense = dense(3)
pipeline = compose(jnp.sin, jnp.cos, lambda x: x * lr)
jitted = px.jit(lambda x: x * lr)
static = px.jit(lambda x, n: x * n, static_argnums=1)
gradient = px.grad(lambda x: x**2 * lr)


@px.custom_jvp
def custom(x):
    return jnp.sin(x) * lr


custom.defjvp(lambda primals, tangents: (custom(primals[0]), tangents[0] * lr))


@pure()
def optimizer_step(x):
    p = {"w": x}
    updates, state = optimizer.update({"w": x}, optimizer.init(p), p)
    return tree.map(jnp.add, p, updates), state


@pure()
def training_loop(x):
    p = {"w": x, "b": x}
    for _ in range(2):
        g = px.grad(lambda q: q["w"] ** 2 + q["b"])(p)
        p = tree.map(lambda a, b: a - lr * b, p, g)
    return p


@pure()
def scan_with_dict_carry(x):
    def body(carry, _):
        return {"x": carry["x"] + 1.0, "n": carry["n"] + 1}, carry["x"]

    return lax.scan(body, {"x": x, "n": 0}, None, length=3)


@pure()
def scan_over_closure(x):
    scale = lr * 2

    def body(carry, w):
        return carry * scale + w, None

    return lax.scan(body, x, weights)[0]


@pure()
def split_keys(x):
    k = random.PRNGKey(0)
    k, sub = random.split(k)
    return random.uniform(sub) * x


@pure()
def switch(x):
    return lax.switch(1, [lambda y: y, lambda y: y * lr], x)


@pure()
def late_binding(x):
    steps = []
    for factor in LAYERS:
        steps.append(lambda y, factor=factor: y * factor)
    for step in steps:
        x = step(x)
    return x


@pure()
def returns_a_closure(x):
    return compose(lambda y: y + x, jnp.sin)(x)


@pure()
def class_inside(x):
    class Local:
        factor = 2.0

        def __init__(self, y):
            self.y = y

        def go(self):
            self.y = self.y * self.factor
            return self.y

    return Local(x).go()


@pure()
def array_methods(x):
    y = jnp.ones((2, 3)) * x
    return y.sum(axis=0).reshape(3, 1).T.astype(jnp.float32).mean(), jnp.sort(y), y.max()


@pure()
def unpacking(x):
    (a, b), *rest = [(x, 1.0), x, x]
    first, second = CONFIG["layers"]
    return a * b + sum(rest) * first * second


all_pure(
    decorated,
    pipeline,
    jitted,
    gradient,
    custom,
    lambda x: decorated(x),
    lambda x: pipeline(x),
    lambda x: jitted(x) + static(x, 3),
    lambda x: gradient(x),
    lambda x: custom(x),
    lambda x: px.grad(custom)(x),
    lambda x: apply_dense(initialize(None), x * jnp.ones(3)),
    partial(lambda a, b, c=1.0: a * b * c, 2.0, c=3.0),
    px.vmap(lambda x: x * lr, axis_size=2, in_axes=None),
    px.checkpoint(lambda x: jnp.sin(x)),
    px.jit(px.vmap(lambda x: x, axis_size=2, in_axes=None)),
    jnp.sin,
    np.sin and jnp.cos,
)
