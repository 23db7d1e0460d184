"""More functions with side effects, as they stand in programs that train models; a table for `test_effects`.

They were written without looking at the mechanism: classes that count, metrics, caches, loaders, monitors.
"""

from __future__ import annotations

import abc
import array
import collections
import contextlib
import contextvars
import dataclasses
import datetime as dt
import enum
import functools
import glob
import io
import itertools
import math
import operator
import os
import os.path
import pathlib
import queue
import random as stdlib_random
import sqlite3
import sys
import threading
import time
import timeit
import types
import uuid
import weakref
from datetime import datetime
from functools import partial, wraps
from random import choice, shuffle

import numpy as np
from numpy.random import default_rng, randn

import purax as px
import purax.numpy as jnp
from purax import lax

PROGRAMS = []


def impure(kind, *args):
    def register(function):
        PROGRAMS.append((kind, function, args or (1.0,)))
        return function

    return register


x3 = np.arange(3.0)

# -- classes that keep books


class Meter:
    """A running mean."""

    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def mean(self):
        return self.sum / max(self.count, 1)


meter = Meter()


@impure("leak")
def updates_a_meter(x):
    loss = x**2
    meter.update(loss)
    return loss


class Model:
    instances = 0
    registry = {}
    names = []

    def __init__(self, width):
        self.width = width
        self.calls = 0
        self.state = {"mean": np.zeros(3)}
        self.activations = []
        self.cache = {}
        self._training = True

    def forward(self, x):
        self.calls += 1
        return x * self.width

    def record(self, x):
        self.activations.append(x)
        return x

    def batch_norm(self, x):
        self.state["mean"] = 0.9 * self.state["mean"] + 0.1 * x
        return x - self.state["mean"]

    def eval(self):
        self._training = False
        return self

    def __call__(self, x):
        return self.inner(x)

    def inner(self, x):
        self.last_shape = jnp.shape(x)
        return x + 1

    @classmethod
    def counted(cls, x):
        cls.instances += 1
        return x

    @staticmethod
    def registered(x):
        Model.registry[len(Model.registry)] = 1
        return x

    def named(self, x):
        self.names.append("call")  # of the class
        return x


model = Model(2.0)
impure("mutation")(model.forward)
impure("leak")(model.record)
impure("leak", x3)(model.batch_norm)
impure("mutation")(model)
impure("mutation")(Model.counted)
impure("mutation")(Model.registered)
impure("mutation")(model.named)


@impure("mutation")
def switches_to_evaluation(x):
    return model.eval().width * x


class Layer(abc.ABC):
    @abc.abstractmethod
    def __call__(self, x): ...


class Dense(Layer):
    def __init__(self, scale):
        self.scale = scale
        self.uses = 0

    def __call__(self, x):
        self.uses = self.uses + 1
        return x * self.scale


class Sequential(Layer):
    def __init__(self, *layers):
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


impure("mutation")(Sequential(Dense(1.0), Dense(2.0)))


class Base:
    def __init__(self):
        self.hooks = collections.defaultdict(list)
        self.step = 0

    def tick(self):
        self.step += 1


class Child(Base):
    def run(self, x):
        super().tick()
        return x

    def hook(self, x):
        self.hooks["forward"].append(jnp.shape(x))
        return x


child = Child()
impure("mutation")(child.run)
impure("mutation")(child.hook)


class Described:
    """A property with a setter."""

    def __init__(self):
        self._rate = 1.0

    @property
    def rate(self):
        return self._rate

    @rate.setter
    def rate(self, value):
        self._rate = value


described = Described()


@impure("mutation")
def sets_a_property(x):
    described.rate = 2.0
    return x * described.rate


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


slotted = Slotted(1.0)


@impure("leak")
def fills_a_slot(x):
    slotted.value = x
    return x


@dataclasses.dataclass
class TrainState:
    step: int = 0
    losses: list = dataclasses.field(default_factory=list)
    best: float = math.inf


train_state = TrainState()


@impure("mutation")
def counts_steps_in_a_dataclass(x):
    train_state.step += 1
    return x


@impure("leak")
def appends_to_a_field(x):
    train_state.losses.append(x**2)
    return x


@impure("leak")
def keeps_the_best(x):
    train_state.best = jnp.minimum(train_state.best, x)
    return x


class Accumulator:
    def __init__(self):
        self.total = 0

    def __iadd__(self, other):
        self.total += other
        return self

    def __setitem__(self, key, value):
        self.__dict__[key] = value

    def __enter__(self):
        self.total += 1
        return self

    def __exit__(self, *error):
        return False

    def __getitem__(self, key):
        self.total += 1
        return 2.0

    def __len__(self):
        self.total += 1
        return 3


accumulator = Accumulator()


@impure("mutation")
def adds_in_place_to_an_object(x):
    global accumulator
    accumulator += 1
    return x


@impure("mutation")
def enters_a_context_that_counts(x):
    with accumulator:
        return x * 2


@impure("mutation")
def looks_up_in_a_counting_table(x):
    return x * accumulator["a"]


@impure("mutation")
def asks_for_a_counting_length(x):
    return x * len(accumulator)


# -- containers

settings = {"lr": 0.1, "history": {"loss": []}}
counter = collections.Counter()
by_key = collections.defaultdict(int)
window = collections.deque(maxlen=5)
visited = set()
ordered = collections.OrderedDict(a=1)
chained = collections.ChainMap({}, {"a": 1})
numbers_array = array.array("d", [1.0, 2.0])
namespace = types.SimpleNamespace(count=0)
shared_list = []
grid = np.zeros((3, 3))
vector = np.ones(4)
structured = np.zeros(2, dtype=[("a", np.float64), ("b", np.float64)])
record_queue = queue.Queue()
deck = np.arange(50)
weak = weakref.WeakKeyDictionary()
stack = [1, 2, 3]
append_alias = shared_list.append
nested = {"a": [{"b": []}]}


@impure("mutation")
def counts_shapes(x):
    counter[jnp.shape(x)] += 1
    return x


@impure("mutation")
def counts_with_update(x):
    counter.update(["call"])
    return x


@impure("mutation")
def counts_with_a_default(x):
    by_key["calls"] += 1
    return x


@impure("leak")
def slides_a_window(x):
    window.append(x)
    return x


@impure("mutation")
def marks_as_visited(x):
    if "here" not in visited:
        visited.add("here")
        visited.discard("there")
    return x


@impure("mutation")
def unions_in_place(x):
    global visited
    visited |= {"b"}
    return x


@impure("mutation")
def moves_to_the_end(x):
    ordered["b"] = 2
    ordered.move_to_end("a")
    return x


@impure("mutation")
def writes_through_a_chain(x):
    chained["b"] = 3
    return x


@impure("mutation")
def appends_to_an_array(x):
    numbers_array.append(3.0)
    return x


@impure("mutation")
def counts_in_a_namespace(x):
    namespace.count += 1
    return x


@impure("leak")
def appends_through_an_alias(x):
    append_alias(x)
    return x


@impure("leak")
def appends_through_a_local_alias(x):
    push = shared_list.append
    for i in range(2):
        push(x * i)
    return x


@impure("leak")
def appends_deep_inside(x):
    inner = nested["a"][0]["b"]
    inner.append(x)
    return x


@impure("mutation")
def pops_from_a_stack(x):
    return x * stack.pop()


@impure("mutation")
def deletes_an_item(x):
    del settings["lr"]
    return x


@impure("mutation")
def updates_with_an_operator(x):
    global settings
    settings |= {"momentum": 0.9}
    return x


@impure("leak")
def extends_a_history(x):
    history = settings["history"]
    history["loss"] += [x]
    return x


@impure("mutation")
def extends_by_multiplication(x):
    global stack
    stack *= 2
    return x


@impure("mutation")
def assigns_a_slice_of_a_list(x):
    stack[:2] = [7, 8]
    return x


@impure("mutation")
def swaps_items(x):
    stack[0], stack[-1] = stack[-1], stack[0]
    return x


@impure("mutation")
def sorts_a_list(x):
    stack.sort(reverse=True)
    return x * stack[0]


@impure("mutation")
def puts_on_a_queue(x):
    record_queue.put(1)
    return x


@impure("mutation")
def appends_in_a_comprehension(x):
    [shared_list.append(i) for i in range(2)]
    return x


@impure("leak")
def appends_in_map(x):
    list(map(shared_list.append, [x, x]))
    return x


@impure("mutation")
def extends_in_a_conditional_expression(x):
    shared_list.extend([1]) if len(shared_list) < 100 else None
    return x


@impure("mutation")
def reduces_into_a_list(x):
    functools.reduce(lambda acc, i: (acc.append(i), acc)[1], [1, 2], shared_list)
    return x


@impure("mutation")
def appends_through_the_class(x):
    list.append(shared_list, 1)
    return x


@impure("mutation")
def appends_through_methodcaller(x):
    operator.methodcaller("append", 1)(shared_list)
    return x


@impure("mutation")
def appends_through_partial(x):
    partial(shared_list.append, 1)()
    return x


# -- NumPy in place


@impure("mutation")
def adds_to_a_vector(x):
    global vector
    vector += 1
    return x * vector.sum()


@impure("mutation")
def scales_a_slice(x):
    vector[1:3] *= 2
    return x


@impure("mutation")
def writes_a_row(x):
    grid[0] = 1
    return x


@impure("mutation")
def writes_a_masked_part(x):
    grid[grid > 5] = 0
    return x


@impure("mutation")
def writes_through_a_view(x):
    row = grid[1]
    row += 1
    return x


@impure("mutation")
def writes_through_a_reshaped_view(x):
    flat = grid.reshape(-1)
    flat[0] = 3.0
    return x


@impure("mutation")
def writes_the_transpose(x):
    grid.T[0, 1] = 4.0
    return x


@impure("mutation")
def writes_flat(x):
    grid.flat[2] = 1.0
    return x


@impure("mutation")
def adds_with_out(x):
    np.add(vector, 1, out=vector)
    return x


@impure("mutation")
def adds_with_positional_out(x):
    np.multiply(vector, 2, vector)
    return x


@impure("mutation")
def adds_at(x):
    np.add.at(vector, [0, 0], 1)
    return x


@impure("mutation")
def sums_into(x):
    vector.sum(out=np.zeros(()))
    np.cumsum(vector, out=vector)
    return x


@impure("mutation")
def clips_in_place(x):
    vector.clip(0, 1, out=vector)
    return x


@impure("mutation")
def fills_a_diagonal(x):
    np.fill_diagonal(grid, 1)
    return x


@impure("mutation")
def writes_a_field(x):
    structured["a"][0] = 1.0
    return x


@impure("mutation")
def sorts_in_place(x):
    vector.sort()
    return x


@impure("mutation", np.zeros((2, 2)))
def shuffles_in_place(x):
    default_rng(0).shuffle(deck)
    return x


@impure("argument", {"w": 1.0, "b": 2.0})
def updates_its_parameters(params):
    params["w"] = params["w"] - 0.1
    return params


@impure("argument", [1.0, 2.0])
def pops_its_argument(xs):
    return xs.pop()


@impure("argument", {"layers": [1.0, 2.0]})
def changes_a_nested_argument(params):
    params["layers"][0] = 0.0
    return params["layers"][1]


# -- variables


epoch = 0
best_loss = math.inf
flag = False
cache_value = None


@impure("global")
def counts_epochs(x):
    global epoch
    epoch += 1
    return x


@impure("leak")
def remembers_the_best_loss(x):
    global best_loss
    best_loss = jnp.minimum(best_loss, x)
    return x


@impure("global")
def assigns_through_globals(x):
    globals()["flag"] = True
    return x


@impure("leak")
def caches_a_traced_value(x):
    global cache_value
    if cache_value is None:
        cache_value = x * 2
    return cache_value + x


@impure("global")
def assigns_in_a_for_target(x):
    global epoch
    for epoch in range(3):
        x = x + epoch
    return x


@impure("global")
def assigns_by_import(x):
    global colorsys
    import colorsys

    return x


@impure("global")
def defines_a_global_function(x):
    global made

    def made(y):
        return y

    return made(x)


def make_counter():
    calls = 0
    last = None
    items = []

    def count(x):
        nonlocal calls
        calls += 1
        return x * 2

    def keep(x):
        nonlocal last
        last = x
        return x

    def helper(x):
        def innermost():
            nonlocal calls
            calls = calls + 1

        innermost()
        return x

    def collect(x):
        items.append(jnp.shape(x))
        return x

    return count, keep, helper, collect


for _kind, _function in zip(("nonlocal", "leak", "nonlocal", "mutation"), make_counter(), strict=True):
    impure(_kind)(_function)


def counted(function):
    """A decorator that counts calls, as people write it."""

    @wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


@impure("mutation")
@counted
def counted_function(x):
    return x + 1


@impure("mutation")
def sets_an_attribute_of_itself(x):
    sets_an_attribute_of_itself.calls = getattr(sets_an_attribute_of_itself, "calls", 0) + 1
    return x


def timed(function):
    @wraps(function)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        result = function(*args, **kwargs)
        elapsed = time.perf_counter() - start
        return result, elapsed

    return wrapper


@impure("clock")
@timed
def timed_function(x):
    return x + 1


@impure("mutation")
def default_that_grows(x, seen=[]):  # noqa: B006
    seen.append(1)
    return x * len(seen)


@impure("mutation")
def keyword_default_that_grows(x, *, cache={}):  # noqa: B006
    cache["n"] = cache.get("n", 0) + 1
    return x


@impure("mutation")
def assigns_a_module_attribute(x):
    math.tau2 = 1.0
    del math.tau2
    return x


@impure("mutation")
def uses_setattr(x):
    setattr(namespace, "name", 1.0)  # noqa: B010
    return x


@impure("mutation")
def uses_dict_of_object(x):
    namespace.__dict__["n"] = 1
    return x


@impure("mutation")
def uses_vars(x):
    vars(namespace).update(n=2)
    return x


context_variable = contextvars.ContextVar("context_variable", default=0)
local_storage = threading.local()


@impure("mutation")
def sets_a_context_variable(x):
    context_variable.set(1)
    return x


@impure("mutation")
def sets_thread_local_state(x):
    local_storage.value = 1
    return x


# -- the outside world


@impure("print")
def prints_to_stderr(x):
    print("x =", x, file=sys.stderr)
    return x


@impure("print")
def prints_through_an_alias(x):
    show = print
    show("hello")
    return x


@impure("print")
def prints_in_a_lambda(x):
    tap = lambda v: (print(v), v)[1]  # noqa: E731
    return tap(x) * 2


@impure("file")
def writes_to_stdout(x):
    sys.stdout.write("hello\n")
    return x


@impure("file")
def writes_to_stderr(x):
    sys.stderr.write("hello\n")
    return x


@impure("print")
def prints_in_map(x):
    list(map(print, [1, 2]))
    return x


@impure("clock")
def reads_now(x):
    return x * datetime.now().second


@impure("clock")
def reads_now_with_a_zone(x):
    return x * dt.datetime.now(dt.UTC).year


@impure("clock")
def reads_a_timestamp(x):
    return x + dt.date.today().day


@impure("clock")
def formats_the_time(x):
    return x * len(time.strftime("%H"))


@impure("clock")
def reads_the_default_timer(x):
    return x + timeit.default_timer()


@impure("clock")
def sleeps(x):
    time.sleep(0)
    return x


@impure("random")
def draws_a_choice(x):
    return x * choice([1.0, 2.0])


@impure("random")
def shuffles_a_copy(x):
    order = [0, 1, 2]
    shuffle(order)
    return x * order[0]


@impure("random")
def draws_from_numpy(x):
    return x + randn()


@impure("random")
def draws_with_the_module(x):
    return x + np.random.uniform(0, 1, size=3)


@impure("random")
def seeds_and_draws(x):
    np.random.seed(0)
    return x + np.random.rand()


@impure("random")
def draws_without_a_seed(x):
    return x + default_rng().normal()


noise_source = default_rng(3)
legacy = np.random.RandomState(0)
python_source = stdlib_random.Random(1)


@impure("random")
def draws_from_a_global_generator(x):
    return x + noise_source.standard_normal(3)


@impure("random")
def draws_from_a_random_state(x):
    return x + legacy.randn(3)


@impure("random")
def draws_from_a_python_source(x):
    return x + python_source.random()


class Augment:
    def __init__(self, seed):
        self.rng = default_rng(seed)

    def __call__(self, x):
        return x * self.rng.uniform(0.9, 1.1)


impure("random")(Augment(0))


@impure("random")
def makes_a_unique_name(x):
    return x * len(str(uuid.uuid4()))


@impure("environment")
def reads_a_variable(x):
    return x * float(os.environ.get("SCALE_OF_TEST", "1"))


@impure("environment")
def reads_a_variable_by_getenv(x):
    return x if os.getenv("DEBUG_OF_TEST") else x * 2


@impure("environment")
def asks_whether_a_variable_is_set(x):
    return x if "DEBUG_OF_TEST" in os.environ else x * 2


@impure("environment")
def sets_a_variable(x):
    os.environ["PURAX_TEST_VARIABLE"] = "1"
    return x


@impure("file")
def reads_this_file(x):
    return x * len(pathlib.Path(__file__).read_text())


@impure("file")
def opens_with_a_context(x):
    with open(__file__) as f:
        return x * len(f.readline())


@impure("file")
def opens_by_path(x):
    with pathlib.Path(__file__).open() as f:
        return x * len(f.readline())


@impure("file")
def asks_whether_a_file_exists(x):
    return x if os.path.exists("/nowhere") else x * 2


@impure("file")
def lists_files(x):
    return x * len(glob.glob("/nowhere/*"))


@impure("file")
def saves_an_array(x):
    np.save(io.BytesIO(), vector)
    return x


@impure("process")
def asks_for_the_process(x):
    return x * (os.getpid() > 0)


@impure("file")
def opens_a_database(x):
    sqlite3.connect(":memory:").close()
    return x


# -- iterators

batches = iter([1.0, 2.0, 3.0] * 30)
numbered = enumerate(["a"] * 1000)
pairs = zip(range(1000), range(1000), strict=True)
endless = itertools.cycle([1.0, 2.0])
counting = itertools.count()


def _stream():
    while True:
        yield 1.0


stream = _stream()


class Loader:
    def __init__(self):
        self.position = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.position += 1
        return float(self.position)


loader = Loader()


@impure("iterator")
def takes_a_batch(x):
    return x * next(batches)


@impure("iterator")
def takes_a_numbered_item(x):
    i, _ = next(numbered)
    return x * i


@impure("iterator")
def loops_over_pairs(x):
    for a, b in pairs:
        x = x + a * b
        if a > 2:
            break
    return x


@impure("iterator")
def takes_from_a_cycle(x):
    return x * next(endless)


@impure("iterator")
def zips_with_a_stream(x):
    return x * sum(a * b for a, b in zip(stream, [1, 2], strict=False))


@impure("iterator")
def slices_a_count(x):
    return x * sum(itertools.islice(counting, 3))


@impure("iterator")
def sends_to_a_generator(x):
    return x * stream.send(None)


@impure("mutation")
def takes_from_a_loader(x):
    return x * next(loader)


@impure("iterator")
def takes_by_method(x):
    return x * batches.__next__()


# -- effects inside of bodies

trace_log = []
steps_done = 0


@impure("leak")
def leaks_in_a_scan(x):
    def body(carry, item):
        trace_log.append(carry)
        return carry + item, None

    return lax.scan(body, x, jnp.arange(3.0))[0]


@impure("global")
def counts_in_a_scan(x):
    def body(carry, _):
        global steps_done
        steps_done += 1
        return carry * 2, None

    return lax.scan(body, x, None, length=3)[0]


@impure("print")
def prints_in_a_branch(x):
    return lax.cond(x > 0, lambda v: (print("yes"), v)[1], lambda v: -v, x)


@impure("clock")
def reads_the_clock_in_a_while(x):
    return lax.while_loop(lambda v: v < 10, lambda v: v + 1 + 0 * time.time(), x)


@impure("leak", x3)
def leaks_in_vmap(x):
    outside = trace_log

    def one(v):
        outside.append(v)
        return v * 2

    return px.vmap(one)(x)


@impure("random")
def draws_in_a_checkpoint(x):
    return px.checkpoint(lambda v: v * np.random.rand())(x)


@px.custom_vjp
def clipped(x):
    return x


def _clipped_forward(x):
    trace_log.append("forward")
    return x, None


def _clipped_backward(_, g):
    trace_log.append("backward")
    return (g,)


clipped.defvjp(_clipped_forward, _clipped_backward)


@impure("mutation")
def logs_in_a_custom_rule(x):
    return px.grad(clipped)(x)


@impure("print")
def prints_in_a_fori_loop(x):
    def body(i, v):
        print(i)
        return v + i

    return lax.fori_loop(0, 3, body, x)


@impure("leak")
def leaks_in_grad(x):
    def loss(v):
        value = v**2
        trace_log.append(value)
        return value

    return px.grad(loss)(x)


@impure("mutation", x3)
def logs_in_tree_map(x):
    return px.tree.map(lambda v: (trace_log.append(1), v)[1], {"a": x})


@impure("mutation")
def logs_in_an_inner_jit(x):
    @px.jit
    def inner(v):
        trace_log.append("inner")
        return v

    return inner(x)


@impure("leak")
def leaks_in_switch(x):
    box = namespace

    def first(v):
        box.value = v
        return v

    return lax.switch(0, [first, first], x)


@impure("mutation")
def a_cached_helper_with_an_effect(x):
    return x * _cached_and_logging(object())


@functools.lru_cache
def _cached_and_logging(key):
    trace_log.append(1)
    return 2.0


@impure("print")
def a_generator_that_prints(x):
    def produce():
        for i in range(3):
            print(i)
            yield x * i

    return sum(produce())


@impure("leak")
def a_generator_that_leaks(x):
    def produce():
        for i in range(3):
            shared_list.append(x)
            yield x * i

    return sum(produce())


@impure("mutation")
def changes_state_in_a_try(x):
    try:
        shared_list.append(1)
        return x / 0.5
    except ZeroDivisionError:
        return x
    finally:
        shared_list.append(2)


@impure("mutation")
def changes_state_in_an_except(x):
    try:
        {}["missing"]
    except KeyError:
        shared_list.append("missed")
    return x


@impure("print")
def prints_in_a_handler(x):
    with contextlib.suppress(KeyError):
        try:
            {}["missing"]
        except KeyError as error:
            print(error)
            raise
    return x


class Color(enum.Enum):
    RED = 1


@impure("mutation")
def hangs_things_on_an_enum(x):
    Color.RED.extra = 1
    return x


@impure("mutation")
def reads_and_writes_in_match(x):
    match settings:
        case {"history": history}:
            history["epoch"] = 1
    return x


@impure("mutation")
def unpacks_and_changes(x):
    first, *rest = nested["a"]
    first["c"] = 1
    return x


@impure("mutation")
def changes_in_a_walrus(x):
    if (items := nested.get("a")) is not None:
        items.append({})
    return x


@impure("mutation")
def changes_what_a_helper_returns(x):
    _the_settings()["n"] = settings.get("n", 0) + 1
    return x


def _the_settings():
    return settings


@impure("mutation")
def changes_a_loop_variable(x):
    for group in nested["a"]:
        group["seen"] = group.get("seen", 0) + 1
    return x


@impure("mutation")
def changes_values_of_a_dict(x):
    for part in nested.values():
        part.append({})
    return x


@impure("mutation")
def changes_through_getattr(x):
    getattr(namespace, "__dict__")["k"] = 1  # noqa: B009
    return x


@impure("leak")
def keeps_a_closure(x):
    shared_list.append(lambda: x)
    return x


@impure("leak")
def keeps_a_partial(x):
    settings["later"] = partial(jnp.add, x)
    return x


@impure("leak")
def keeps_an_object(x):
    settings["object"] = types.SimpleNamespace(value=[x])
    return x


@impure("leak")
def keeps_a_generator(x):
    settings["generator"] = (x * i for i in range(3))
    return x


@impure("leak")
def keeps_a_bound_method(x):
    settings["method"] = x.sum if hasattr(x, "sum") else None
    return x


class Tensor:
    """Operators that count."""

    uses = []

    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        self.uses.append("mul")
        return self.value * other

    def __neg__(self):
        self.uses.append("neg")
        return -self.value


tensor = Tensor(2.0)


@impure("mutation")
def multiplies_by_a_counting_object(x):
    return tensor * x


@impure("mutation")
def negates_a_counting_object(x):
    return x + -tensor


# -- in statements that a traced value decides about


@impure("print")
def prints_under_a_traced_condition(x):
    if x > 0:
        print("positive")
    return x


@impure("global")
def counts_under_a_traced_condition(x):
    global steps_done
    for i in range(3):
        steps_done += 1
        if x > i:
            x = x + 1
    return x


@impure("clock")
def reads_the_clock_after_a_traced_return(x):
    if x < 0:
        return x
    return x + 0 * time.time()
