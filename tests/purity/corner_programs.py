"""Side effects in corners of the language, and pure programs that look like them; a table for `test_effects`.

What changes an object is here not the line that names it: a parent class, a metaclass, a view, a thread, a cache.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import struct

import numpy as np

IMPURE = []
PURE = []


def impure(kind):
    return lambda function: IMPURE.append((kind, function, (1.0,))) or function


def pure(function):
    PURE.append((function, (1.5,)))
    return function


log = []
groups = {}
tables = {}
memory = bytearray(8)
numbers = np.zeros(3)


class History(list):
    def append(self, value):
        super().append(value)


history = History()


class Registry(type):
    made: list = []  # noqa: RUF012

    def __call__(cls, *args):
        Registry.made.append(cls.__name__)
        return super().__call__(*args)


class Registered(metaclass=Registry):
    def __init__(self, value):
        self.value = value


class Depth:
    def __init__(self):
        self.entered = 0

    def __enter__(self):
        self.entered += 1
        return self

    def __exit__(self, *_):
        pass


depth = Depth()


@impure("mutation")
def a_method_of_the_parent(x):
    history.append(1)
    return x


@impure("mutation")
def a_metaclass_that_counts(x):
    return Registered(x).value


@impure("mutation")
def memory_through_a_view(x):
    memoryview(memory)[0] = 1
    return x


@impure("mutation")
def memory_by_struct(x):
    struct.pack_into("i", memory, 4, 3)
    return x


@impure("mutation")
def a_part_of_an_array_as_out(x):
    np.add(1, 2, out=numbers[:1])
    return x


@impure("mutation")
def a_pool_of_threads(x):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(log.append, 3).result()
    return x


@impure("mutation")
def a_group_in_a_dict(x):
    groups.setdefault("a", []).append(1)
    return x


@impure("mutation")
def a_named_group_in_a_dict(x):
    group = groups.setdefault("b", {})
    group["last"] = 1
    return x


@impure("mutation")
def a_context_that_counts(x):
    with depth:
        return x


@impure("mutation")
def an_attribute_as_the_target_of_a_loop(x):
    for depth.entered in range(3):
        pass
    return x


@pure
def a_cache_in_a_cache(x):
    table = tables.setdefault("squares", {})
    if 3 not in table:
        table[3] = 9
    return x * table[3]


@pure
def a_default_in_a_dict(x):
    return x * tables.setdefault("two", 2)


@pure
def the_same_on_its_own_objects(x):
    own = History()
    own.append(x)
    mine = bytearray(8)
    memoryview(mine)[0] = 1
    struct.pack_into("i", mine, 4, 3)
    part = np.zeros(3)
    np.add(1, 2, out=part[:1])
    inner = {}
    inner.setdefault("a", []).append(2.0)
    with Depth() as entered:
        return own[0] * sum(mine) * part[0] * inner["a"][0] * entered.entered


@pure
def a_generator_that_is_sent_values(x):
    def halves():
        value = x
        while True:
            value = value * 0.5
            given = yield value
            value = value if given is None else given

    steps = halves()
    first, second = next(steps), steps.send(2.0)
    steps.close()
    return first + second


@pure
def a_stack_of_contexts(x):
    found = []
    with contextlib.ExitStack() as stack:
        stack.callback(found.append, x)
    return found[0]


@pure
def a_coroutine_by_hand(x):
    async def double(y):
        return y * 2

    try:
        double(x).send(None)
    except StopIteration as stop:
        return stop.value


@pure
def small_classes(x):
    @dataclasses.dataclass
    class Pair:
        first: float
        seen: list = dataclasses.field(default_factory=list)

    pair = dataclasses.replace(Pair(x), first=x * 2)
    pair.seen.append(x)
    queue = collections.deque([x], maxlen=2)
    queue.append(functools.reduce(lambda a, b: a * b, [x, 2.0]))
    queue.rotate(1)
    return pair.first + pair.seen[0] + queue[0]
