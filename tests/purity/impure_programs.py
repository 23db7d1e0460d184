"""Functions with side effects, each with the kind that must be found; a table of data for `test_effects`.

`impure(kind, *args)` registers a function to be traced with `args` (one number if none are given).
"""

from __future__ import annotations

import bisect
import collections
import copy
import dataclasses
import datetime
import functools
import heapq
import io
import itertools
import json
import operator
import os
import pathlib
import pickle
import pprint
import random
import secrets
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from random import gauss
from time import perf_counter

import numpy as np

import purax as px
import purax.numpy as jnp
from purax import lax

PROGRAMS = []
FOLDER = tempfile.gettempdir()


def impure(kind, *args):
    def register(function):
        PROGRAMS.append((kind, function, args or (1.0,)))
        return function

    return register


# -- assignment

counter = 0
last = None
total = 0.0
table = {}
log = []
seen = set()
queue = collections.deque()
history = {"loss": []}
buffer = np.zeros(3)
names = ["a"]
counts = collections.Counter()
groups = collections.defaultdict(list)
heap = [3, 5]
rng = np.random.default_rng(0)
generator = (i for i in range(100))
numbers = iter(range(100))
ticks = itertools.count()
stdlib_rng = random.Random(0)


@impure("global")
def counts_calls(x):
    global counter
    counter += 1
    return x


@impure("leak")
def keeps_last(x):
    global last
    last = x * 2
    return x


@impure("leak")
def adds_to_a_total(x):
    global total
    total = total + x
    return x


def _bump():
    global counter
    counter = counter + 1


@impure("global")
def bumps_through_a_helper(x):
    _bump()
    return x + 1


@impure("global")
def deletes_a_global(x):
    global temporary
    temporary = 1
    del temporary
    return x


def _make_counting():
    n = 0

    def counting(x):
        nonlocal n
        n += 1
        return x

    return counting


impure("nonlocal")(_make_counting())


def _make_keeping():
    kept = None

    def keeping(x):
        nonlocal kept
        kept = jnp.sin(x)
        return kept

    return keeping


impure("leak")(_make_keeping())


@impure("global")
def globals_dict(x):
    globals()["made_up"] = 1
    return x


# -- containers


@impure("leak")
def appends_a_tracer(x):
    log.append(x)
    return x


@impure("mutation")
def appends_a_string(x):
    log.append("called")
    return x


@impure("leak")
def appends_in_a_loop(x):
    for i in range(3):
        log.append(x * i)
    return x


@impure("mutation")
def extends(x):
    log.extend([1, 2])
    return x


@impure("leak")
def sets_an_entry(x):
    table["x"] = x
    return x


@impure("mutation")
def counts_in_a_dict(x):
    table["n"] = table.get("n", 0) + 1
    return x


@impure("mutation")
def updates_a_dict(x):
    table.update(a=1)
    return x


@impure("mutation")
def adds_to_a_set(x):
    seen.add("here")
    return x


@impure("mutation")
def appends_to_a_deque(x):
    queue.append(3)
    return x


@impure("leak")
def appends_to_a_nested_list(x):
    history["loss"].append(x)
    return x


@impure("mutation")
def through_a_local_name(x):
    where = history["loss"]
    where.append(1)
    return x


@impure("mutation")
def writes_into_a_numpy_array(x):
    buffer[0] = 3.0
    return x


@impure("mutation")
def adds_to_a_numpy_array(x):
    b = buffer
    b += 1
    return x


@impure("mutation")
def numpy_out(x):
    np.add(1.0, 2.0, out=buffer[:1]) if False else np.add(buffer, 1.0, out=buffer)
    return x


@impure("mutation")
def numpy_fill(x):
    buffer.fill(7.0)
    return x


@impure("mutation")
def numpy_copyto(x):
    np.copyto(buffer, 2.0)
    return x


@impure("mutation")
def in_place_list(x):
    mine = names
    mine += ["b"]
    return x


@impure("mutation")
def deletes_an_entry(x):
    table["gone"] = 1
    del table["gone"]
    return x


@impure("mutation")
def pops(x):
    log.append(1)
    log.pop()
    return x


@impure("mutation")
def counter_class(x):
    counts["f"] += 1
    return x


@impure("leak")
def default_dict(x):
    groups["f"].append(x)
    return x


@impure("mutation")
def heap_push(x):
    heapq.heappush(heap, 4)
    return x


@impure("mutation")
def sorted_insert(x):
    bisect.insort(heap, 4)
    return x


@impure("mutation")
def operator_setitem(x):
    operator.setitem(table, "k", 1)
    return x


@impure("mutation")
def unbound_append(x):
    list.append(log, 1)
    return x


@impure("leak")
def mutable_default(x, seen_so_far=[]):  # noqa: B006
    seen_so_far.append(x)
    return x


def _record(where, value):
    where.append(value)


@impure("leak")
def appends_in_a_helper(x):
    _record(log, x)
    return x


@impure("leak")
def in_an_inner_function(x):
    def inner(y):
        log.append(y)
        return y

    return inner(x)


@impure("leak")
def in_a_comprehension(x):
    [log.append(x + i) for i in range(2)]
    return x


@impure("mutation")
def sorts(x):
    names.sort()
    return x


def _make_closure_list():
    trace = []

    def f(x):
        trace.append(x)
        return x

    return f


impure("leak")(_make_closure_list())


# -- objects


class Model:
    calls = 0

    def __init__(self):
        self.steps = 0
        self.outputs = []
        self.state = None
        self.cache = {}

    def forward(self, x):
        self.steps += 1
        return x

    def saves(self, x):
        self.state = x
        return x

    def remembers(self, x):
        self.outputs.append(x)
        return x

    def counts_class(self, x):
        type(self).calls += 1
        return x

    def counts_class_by_name(self, x):
        Model.calls = Model.calls + 1
        return x

    def inner(self, x):
        self._touch()
        return x

    def _touch(self):
        self.steps = self.steps + 1

    def __call__(self, x):
        setattr(self, "steps", 5)  # noqa: B010
        return x

    @property
    def bumped(self):
        self.steps += 1
        return 2.0

    def uses_property(self, x):
        return x * self.bumped


model = Model()
impure("mutation")(Model().forward)
impure("leak")(Model().saves)
impure("leak")(Model().remembers)
impure("mutation")(Model().counts_class_by_name)
impure("mutation")(Model().counts_class)
impure("mutation")(Model().inner)
impure("mutation")(Model())
impure("mutation")(Model().uses_property)


@impure("mutation")
def global_object(x):
    model.steps += 1
    return x


@impure("leak")
def global_object_keeps(x):
    model.state = x
    return x


@impure("mutation")
def deletes_an_attribute(x):
    model.extra = 1
    del model.extra
    return x


@impure("mutation")
def object_setattr(x):
    object.__setattr__(model, "steps", 3)
    return x


@impure("mutation")
def function_attribute(x):
    function_attribute.calls = 1
    return x


@dataclass
class State:
    step: int = 0
    losses: list = field(default_factory=list)


state = State()


@impure("mutation")
def dataclass_field(x):
    state.step += 1
    return x


@impure("leak")
def dataclass_list(x):
    state.losses.append(x)
    return x


@impure("mutation")
def partial_object(x, where=None):
    return x


PROGRAMS.pop()


def _appending(where, x):
    where.append(1)
    return x


impure("mutation")(functools.partial(_appending, log))


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        log.append(function.__name__)
        return function(*args)

    return wrapper


@impure("mutation")
@decorated
def logged(x):
    return x


# -- arguments


@impure("argument", {"a": 1.0})
def changes_a_dict_argument(d):
    d["a"] = d["a"] * 2
    return d


@impure("argument", [1.0, 2.0])
def changes_a_list_argument(xs):
    xs.append(3.0)
    return sum(xs)


@impure("argument", {"a": 1.0, "b": 2.0})
def pops_from_an_argument(d):
    a = d.pop("a")
    return a + d["b"]


@impure("argument", {"p": {"w": 1.0}})
def changes_a_nested_argument(d):
    d["p"]["w"] += 1.0
    return d


@px.tree_util.register_dataclass
@dataclass
class Params:
    w: float
    b: float


@impure("argument", Params(1.0, 2.0))
def changes_an_object_argument(p):
    p.w = p.w * 2
    return p


# -- iterators


@impure("iterator")
def takes_next(x):
    return x + next(numbers)


@impure("iterator")
def takes_from_a_generator(x):
    return x + next(generator)


@impure("iterator")
def counts_ticks(x):
    return x * next(ticks)


@impure("iterator")
def loops_over_an_iterator(x):
    for i in numbers:
        x = x + i
        if i > 3:
            break
    return x


@impure("iterator")
def zips_an_iterator(x):
    return x + sum(a for a, _ in zip([1, 2], numbers, strict=False))


# -- the world


@impure("print")
def prints(x):
    print("x is", x)
    return x


@impure("print")
def prints_in_a_branch(x, verbose=True):
    if verbose:
        print("x")
    return x


def _report(x):
    print("reporting")
    return x


@impure("print")
def prints_in_a_helper(x):
    return _report(x)


@impure("print")
def pretty_prints(x):
    pprint.pprint([1])
    return x


@impure("file")
def writes_to_stdout(x):
    sys.stdout.write("x")
    return x


@impure("clock")
def reads_the_clock(x):
    return x + time.time()


@impure("clock")
def imported_clock(x):
    start = perf_counter()
    y = x * 2
    return y, perf_counter() - start


@impure("clock")
def sleeps(x):
    time.sleep(0)
    return x


@impure("clock")
def now(x):
    return x + datetime.datetime.now().second


@impure("clock")
def today(x):
    return x + datetime.date.today().day


@impure("random")
def python_random(x):
    return x + random.random()


@impure("random")
def python_gauss(x):
    return x + gauss(0, 1)


@impure("random")
def shuffles(x):
    order = [1, 2, 3]
    random.shuffle(order)
    return x * order[0]


@impure("random")
def own_stdlib_rng(x):
    return x + stdlib_rng.uniform(0, 1)


@impure("random")
def numpy_random(x):
    return x + np.random.normal()


@impure("random")
def numpy_rand(x):
    return x + np.random.rand(3)


@impure("random")
def numpy_seed(x):
    np.random.seed(0)
    return x


@impure("random")
def numpy_generator(x):
    return x + rng.normal(size=3)


@impure("random")
def unseeded_generator(x):
    return x + np.random.default_rng().normal()


@impure("random")
def makes_a_uuid(x):
    return x + len(str(uuid.uuid4()))


@impure("random")
def secret(x):
    return x + secrets.randbelow(3)


@impure("random")
def os_random(x):
    return x + os.urandom(1)[0]


@impure("environment")
def reads_environ(x):
    return x * float(os.environ.get("SCALE", "2"))


@impure("environment")
def reads_getenv(x):
    return x * float(os.getenv("SCALE", "2"))


@impure("environment")
def reads_environ_item(x):
    return x * len(os.environ["PATH"])


@impure("environment")
def asks_environ(x):
    return x * (2 if "HOME" in os.environ else 3)


@impure("file")
def opens(x):
    with open(os.devnull) as file:
        return x * len(file.read())


@impure("file")
def path_text(x):
    return x * len(pathlib.Path(os.devnull).read_text())


@impure("file")
def path_exists(x):
    where = pathlib.Path(FOLDER)
    return x * where.exists()


@impure("file")
def numpy_load(x):
    try:
        np.load(os.devnull)
    except (ValueError, EOFError, OSError):
        pass
    return x


out_file = io.StringIO()


@impure("file")
def writes_to_an_open_file(x):
    out_file.write("x")
    return x


@impure("file")
def dumps_to_a_file(x):
    json.dump([1], out_file)
    return x


@impure("file")
def pickles(x):
    pickle.dump([1], io.BytesIO())
    return x


@impure("process")
def runs_a_program(x):
    subprocess.run(["true"], check=True)
    return x


@impure("process")
def lists_a_folder(x):
    return x * len(os.listdir(FOLDER))


@impure("exec")
def executes(x):
    exec("pass")
    return x


# -- under transformations


@impure("leak")
def in_a_scan_body(x):
    def body(carry, _):
        log.append(carry)
        return carry + 1.0, None

    return lax.scan(body, x, None, length=3)[0]


@impure("print")
def in_a_branch(x):
    def yes(y):
        print("yes")
        return y

    return lax.cond(x > 0, yes, lambda y: -y, x)


@impure("mutation")
def in_a_loop_condition(x):
    def condition(y):
        log.append(1)
        return y < 10

    return lax.while_loop(condition, lambda y: y * 2, x)


@impure("leak")
def in_vmap(x):
    def f(y):
        log.append(y)
        return y

    return px.vmap(f)(x * jnp.ones(3))


@impure("leak")
def in_checkpoint(x):
    @px.checkpoint
    def f(y):
        table["h"] = y
        return jnp.sin(y)

    return f(x)


@impure("leak")
def in_grad(x):
    def loss(y):
        log.append(y)
        return y**2

    return px.grad(loss)(x)


@impure("print")
def in_nested_jit(x):
    @px.jit
    def f(y):
        print("inner")
        return y

    return f(x)


@impure("leak")
def in_tree_map(x):
    px.tree.map(lambda y: log.append(y), {"a": x})
    return x


@impure("argument")
def in_a_scan_carry(x):
    def body(carry, _):
        carry["x"] = carry["x"] + 1.0
        return carry, None

    return lax.scan(body, {"x": x}, None, length=2)[0]


@impure("print")
def in_fori(x):
    def body(i, y):
        print(i)
        return y

    return lax.fori_loop(0, 3, body, x)


ACTIONS = {"log": lambda x: log.append(1), "nothing": lambda x: None}


@impure("mutation")
def through_a_table_of_functions(x):
    for action in ACTIONS.values():
        action(x)
    return x


@impure("mutation")
def through_getattr(x):
    getattr(log, "append")(1)  # noqa: B009
    return x


class Callback:
    def __call__(self, x):
        log.append("callback")
        return x


callbacks = [Callback()]


@impure("mutation")
def through_callbacks(x):
    for callback in callbacks:
        x = callback(x)
    return x


class Base:
    def run(self, x):
        self.ran = True
        return x


class Derived(Base):
    def run(self, x):
        return super().run(x) * 2


impure("mutation")(Derived().run)


@impure("mutation")
def deep_copy_shares(x):
    shallow = copy.copy(history)
    shallow["loss"].append(1)
    return x


@impure("mutation")
def replaced_dataclass_shares(x):
    new = dataclasses.replace(state, step=1)
    new.losses.append(1)
    return x
