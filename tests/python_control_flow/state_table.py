"""Functions that change state under traced conditions, in every way that Python has; `test_state.py` runs them."""

from __future__ import annotations

import collections
import dataclasses
import functools
import heapq
import io
import operator
import random
from typing import Any

import numpy as np

import purax.numpy as jnp

CASES: list[Any] = []


def case(function):
    CASES.append(function)
    return function


class Meter:
    s = 0.0

    def add(self, v):
        self.s = self.s + v


class Stack:
    def __init__(self):
        self.items = []

    def push(self, v):
        self.items.append(v)

    def pop(self):
        return self.items.pop()


class Slotted:
    __slots__ = ("count", "last")

    def __init__(self):
        self.count, self.last = 0, None


# -- arrays of NumPy


@case
def numpy_store(x):
    a = np.zeros(2)
    if x > 0:
        a[0] = 1.0
    return a.sum()


@case
def numpy_alias(x):
    a = np.zeros(2)
    b = a
    if x > 0:
        b += 1.0
    return a.sum() + 10 * b[0]


@case
def numpy_histogram(x):
    a = np.zeros(12)
    for i in range(12):
        if x > i / 4:
            a[i % 3] += 1.0
    return a @ np.arange(12.0)


@case
def numpy_traced_value(x):
    a = np.zeros(3)
    for i in range(3):
        if x > i:
            a[i] = x
    return a.sum()


@case
def numpy_in_a_loop(x):
    a = np.zeros(3)
    while x > 0:
        a[0] += 1
        a[1:] = a[1:] + x
        x = x - 1
    return a[0] + a[2]


@case
def numpy_in_both(x):
    a = np.arange(4.0)
    if x > 0:
        a[0] = x
    else:
        a[3] = -x
    return a * 2


@case
def numpy_view(x):
    a = np.zeros(4)
    b = a[1:]
    if x > 0:
        b[0] = 3.0
    return a.sum()


@case
def numpy_in_an_object(x):
    m = Meter()
    m.s = np.zeros(2)
    keep = [m.s]
    if x > 0:
        m.s[1] = 5.0
    return keep[0].sum()


@case
def numpy_chosen(x):
    w = np.ones(2) if x > 0 else np.zeros(2)
    return w * x


@case
def numpy_filled(x):
    a = np.empty(3)
    if x > 0:
        a.fill(2.0)
    else:
        a[:] = x
    return a.sum()


# -- objects


@case
def method(x):
    m = Meter()
    for v in (1.0, 2.0, 3.0):
        if v < x:
            m.add(v)
    return m.s


@case
def objects_in_a_list(x):
    ms = [Meter(), Meter()]
    if x > 0:
        ms[0].add(1.0)
    else:
        ms[1].add(2.0)
    return ms[0].s + 10 * ms[1].s


@case
def slots(x):
    s = Slotted()
    s.last = 0.0
    for v in (1.0, 2.0):
        if v < x:
            s.count += 1
            s.last = v
    return s.count * 10 + s.last


@case
def set_attribute(x):
    m = Meter()
    if x > 0:
        setattr(m, "s", 3.0)  # noqa: B010
    return m.s


@case
def vars_of_an_object(x):
    m = Meter()
    m.s = 1.0
    if x > 0:
        vars(m)["s"] = 7.0
    return m.s


@case
def attribute_of_one_side(x):
    m = Meter()
    if x > 0:
        m.extra = 4.0
    return m.extra if x > 0 else 0.0


@case
def has_attribute(x):
    m = Meter()
    if x > 0:
        m.extra = 4.0
    return 1.0 if hasattr(m, "extra") else 2.0


@case
def object_replaced(x):
    m = Meter()
    other = m
    if x > 0:
        m = Meter()
        m.s = 5.0
    m.add(1.0)
    return m.s * 10 + other.s


@case
def frozen_records(x):
    @dataclasses.dataclass(frozen=True)
    class Record:
        a: Any
        b: Any

    r = Record(1.0, 2.0)
    if x > 0:
        r = dataclasses.replace(r, b=x)
    return r.a + r.b


@case
def properties(x):
    class Clipped:
        def __init__(self):
            self._v = 0.0

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, new):
            if new > 1:
                self._v = new
            else:
                self._v = -1.0

    c = Clipped()
    c.v = x
    return c.v


@case
def context_manager(x):
    class Log:
        def __init__(self):
            self.total = 0.0

        def __enter__(self):
            self.total += 1
            return self

        def __exit__(self, *error):
            self.total += 10

    log = Log()
    if x > 0:
        with log:
            y = log.total
    else:
        y = 5.0
    return y + log.total


@case
def local_classes(x):
    class Base:
        def __init__(self, v):
            self.__v = v

        def f(self):
            if self.__v > 0:
                return self.__v * 2
            return self.__v

    class Derived(Base):
        def f(self):
            r = super().f()
            if r > 1:
                r = r + 1
            return r

    return Derived(x).f()


@case
def class_of_operators(x):
    class Sum:
        def __init__(self, v):
            self.v = v
            self.calls = 0

        def __add__(self, other):
            self.calls += 1
            if other > 0:
                return self.v + other
            return self.v - other

    s = Sum(1.0)
    y = s + x
    return y + 10 * s.calls


# -- containers


@case
def helper(x):
    def put(items, v):
        items[0] = v

    items = [0.0, 1.0]
    if x > 0:
        put(items, 5.0)
    return items[0] + items[1]


@case
def closure_over_a_dict(x):
    d = {"a": 1.0}

    def update(v):
        d["a"] = d["a"] + v

    if x > 0:
        update(x)
    else:
        update(2.0)
    return d["a"]


@case
def stack_push(x):
    s = Stack()
    s.push(1.0)
    if x > 0:
        s.push(2.0)
    return sum(s.items)


@case
def stack_pop(x):
    s = Stack()
    s.push(1.0)
    s.push(3.0)
    if x > 0:
        s.pop()
    return s.pop()


@case
def counter(x):
    c = collections.Counter()
    for k in "aab":
        if x > 0:
            c[k] += 1
    return c["a"] * 10 + c["b"]


@case
def default_dict(x):
    d = collections.defaultdict(float)
    d["a"] += 1.0
    if x > 0:
        d["a"] += x
    return d["a"]


@case
def rotated(x):
    d = collections.deque([1.0, 2.0, 3.0])
    if x > 0:
        d.rotate(1)
    return d[0] + 10 * d[1]


@case
def bounded_deque(x):
    d = collections.deque([1.0, 2.0], maxlen=2)
    if x > 0:
        d.append(x)
    return d[0] + 10 * d[1]


@case
def ordered(x):
    d = collections.OrderedDict(a=1.0, b=2.0)
    if x > 0:
        d.move_to_end("a")
    return next(iter(d.values()))


@case
def operator_setitem(x):
    items = [1.0, 2.0]
    if x > 0:
        operator.setitem(items, 0, 9.0)
    return items[0]


@case
def method_setitem(x):
    items = [1.0, 2.0]
    if x > 0:
        items.__setitem__(1, 9.0)
    return items[1]


@case
def bound_method(x):
    items = []
    add = items.append
    if x > 0:
        add(1.0)
    else:
        add(2.0)
    return items[0]


@case
def partial(x):
    def put(items, v):
        items[0] += v

    items = [0.0]
    add = functools.partial(put, items)
    if x > 0:
        add(2.0)
    add(1.0)
    return items[0]


@case
def heap_push(x):
    h = [3.0, 5.0]
    if x > 0:
        heapq.heappush(h, 1.0)
    return heapq.heappop(h)


@case
def heap_push_of_a_traced_value(x):
    h = [1.0, 5.0]
    heapq.heappush(h, x)
    return heapq.heappop(h)


@case
def sorted_in_place(x):
    items = [3.0, 1.0, x]
    items.sort()
    return items[0] + 10 * items[1] + 100 * items[2]


@case
def byte_array(x):
    b = bytearray(b"\x01\x02")
    if x > 0:
        b[0] = 7
    return b[0] * 1.0 + b[1]


@case
def sets(x):
    s = {1, 2}
    if x > 0:
        s.add(3)
    return float(len(s))


@case
def deleted_key(x):
    d = {"a": 1.0, "b": 2.0}
    if x > 0:
        del d["a"]
    return sum(d.values())


@case
def lengths(x):
    items = [1.0, 2.0] if x > 0 else [1.0]
    return len(items) * 1.0


@case
def grows_in_a_python_loop(x):
    out = []
    for v in (1.0, 2.0, 3.0, 4.0):
        if v < x:
            out.append(v)
    return sum(out) + len(out) * 100


@case
def lists_of_a_side_that_returns(x):
    items = []
    if x > 0:
        items.append(1.0)
        return sum(items)
    items.append(2.0)
    items.append(3.0)
    return sum(items)


@case
def traced_position_in_a_list(x):
    items = [1.0, 2.0, 3.0]
    i = 0
    while i < 2 and items[i] < x:
        items[i] = items[i] * 10
        i += 1
    return sum(items) + i


@case
def text_buffer(x):
    b = io.StringIO()
    if x > 0:
        b.write("abc")
    b.write("d")
    return len(b.getvalue()) * 1.0


# -- what is consumed


@case
def iterator(x):
    it = iter([1.0, 2.0, 3.0])
    if x > 0:
        next(it)
    return next(it)


@case
def generator(x):
    def numbers():
        yield 1.0
        yield 2.0
        yield 3.0

    it = numbers()
    if x > 0:
        next(it)
    return next(it)


@case
def generator_that_branches(x):
    def numbers():
        for i in range(3):
            if x > i:
                yield i

    return sum(numbers())


@case
def zipped(x):
    pairs = zip((1.0, 2.0), (3.0, 4.0), strict=True)
    if x > 0:
        next(pairs)
    return sum(next(pairs))


@case
def random_numbers(x):
    r = random.Random(0)
    if x > 0:
        r.random()
    return r.random()


@case
def numpy_random_numbers(x):
    r = np.random.default_rng(0)
    if x > 0:
        r.random()
    return r.random()


# -- names


@case
def nonlocal_in_a_loop(x):
    n = 0.0

    def increment():
        nonlocal n
        n += 1

    while x > 1:
        x = x - 1
        increment()
    return n


@case
def nonlocal_in_expressions(x):
    count = 0

    def visit(v):
        nonlocal count
        count += 1
        return v * 2

    y = visit(x) if x > 0 else x
    y = y and visit(y)
    return y + 100 * count


@case
def effects_of_both_sides(x):
    items = [0.0]

    def one():
        items[0] += 1
        return 2.0

    def other():
        items[0] += 10
        return 3.0

    y = one() if x > 0 else other()
    return y + items[0]


@case
def effects_of_or(x):
    calls = [0.0]

    def check(v):
        calls[0] += 1
        return v

    check(x > 0) or check(x < -5)
    return calls[0]


@case
def walrus(x):
    items = [0.0]
    if (y := x * 2) > 0:
        items[0] = y
    return items[0] + y


@case
def strings(x):
    mode = "up" if x > 0 else "down"
    return len(mode) * x


@case
def functions(x):
    f = jnp.sin if x > 0 else jnp.cos
    return f(x)


@case
def none_or_a_value(x):
    y = None
    if x > 0:
        y = x
    return 0.0 if y is None else y


@case
def deleted_variable(x):
    y = 1.0
    if x > 0:
        del y
        y = 2.0
    return y


# -- aliases


@case
def one_of_two_lists(x):
    a, b = [1.0], [2.0]
    c = a if x > 0 else b
    c[0] = 9.0
    return a[0] + 10 * b[0]


@case
def rows_that_are_one(x):
    rows = [[0.0] * 2] * 2
    if x > 0:
        rows[0][0] = 1.0
    return rows[1][0]


@case
def longer_in_place(x):
    items = [1.0]
    same = items
    if x > 0:
        items += [2.0]
    return sum(same)


@case
def identity(x):
    a, b = [1.0], [1.0]
    c = a if x > 0 else b
    return 1.0 if c is a else 0.0


@case
def result_changed_by_finally(x):
    items = [1.0]

    def g():
        try:
            if x > 0:
                return items
            return items
        finally:
            items[0] += 10

    return g()[0]


@case
def swapped_in_a_loop(x):
    a, b = [1.0], [2.0]
    while x > 0:
        a, b = b, a
        x = x - 1
    return a[0] * 10 + b[0]


@case
def cycle_of_objects(x):
    a, b = Meter(), Meter()
    a.other, b.other = b, a
    if x > 0:
        a.other.add(2.0)
    return b.s + b.other.s


# -- loops


@case
def state_of_a_loop(x):
    m, items, d = Meter(), [0.0, 0.0], {"n": 0}
    while x > 0:
        m.add(x)
        items[1] += 1
        d["n"] += 2
        x = x - 1
    return m.s + items[1] * 10 + d["n"] * 100


@case
def records_in_a_loop(x):
    @dataclasses.dataclass
    class Pair:
        a: Any
        b: Any

    p = Pair(0.0, 1.0)
    while x > 0:
        p = Pair(p.b, p.a + p.b)
        x = x - 1
    return p.a + 100 * p.b


@case
def list_that_grows_in_a_loop(x):
    values = []
    while x < 20:
        values.append(x)
        x = x * 2 + 3
    return len(values) * x + sum(values)


@case
def temporary_list_in_a_loop(x):
    total = 0.0
    while x > 0:
        parts = []
        if x > 1:
            parts.append(x)
        parts.append(1.0)
        total = total + sum(parts)
        x = x - 1
    return total


@case
def for_else(x):
    for v in (1.0, 2.0, 3.0):
        if v > x:
            return v
    else:
        return -1.0


@case
def while_else(x):
    i = 0
    while i < 3:
        if i > x:
            return i * 1.0
        i += 1
    else:
        return -5.0


@case
def while_else_with_break(x):
    while x > 0:
        x = x - 1
        if x < 0.2:
            break
    else:
        return x * 100
    return x


# -- exceptions


@case
def error_of_a_traced_condition_is_not_caught(x):
    try:
        if x > 0:
            y = 1.0
        else:
            y = 2.0
    except Exception:
        y = 3.0
    return y


@case
def raised_inside_try(x):
    try:
        if x > 0:
            raise ValueError
        y = 1.0
    except ValueError:
        y = 2.0
    return y


@case
def bare_except(x):
    items = []
    try:
        if x > 0:
            items.append(1.0)
        y = len(items) * 1.0
    except:  # noqa: E722
        y = 7.0
    return y


@case
def finally_changes_state(x):
    items = [0.0]
    try:
        if x > 0:
            items[0] += 1.0
    finally:
        items[0] += 10.0
    return items[0]


@case
def error_of_one_side_is_caught(x):
    d = {}
    try:
        if x > 0:
            y = d["k"]
        else:
            y = 1.0
    except KeyError:
        y = 2.0
    return y


@case
def error_of_a_helper_is_caught(x):
    def positive(v):
        if v < 0:
            raise ValueError("negative")
        return v

    try:
        y = positive(x)
    except ValueError:
        y = -5.0
    return y


@case
def error_in_a_loop_is_caught(x):
    items = [1.0, 2.0]
    total = 0.0
    try:
        while x > 0:
            total += items.pop()
            x = x - 1
    except IndexError:
        total = -total
    return total


@case
def assertion_is_caught(x):
    try:
        assert x > 0
        y = 1.0
    except AssertionError:
        y = 2.0
    return y


@case
def error_is_suppressed(x):
    import contextlib

    items = [1.0]
    with contextlib.suppress(IndexError):
        if x > 0:
            items[3] = 1.0
        items[0] = 5.0
    return items[0]


@case
def ambiguous_value_in_try(x):
    mode = "up"
    if x > 0:
        mode = "down"
    try:
        y = len(mode) * 1.0
    except Exception:
        y = -1.0
    return y


@case
def cleaned_up(x):
    log = []
    try:
        log.append(1.0)
        if x > 0:
            raise RuntimeError
        log.append(2.0)
    except RuntimeError:
        log.append(10.0)
    else:
        log.append(20.0)
    finally:
        log.append(100.0)
    return sum(log)


@case
def views_of_a_dict(x):
    d = {"a": 1.0}
    values = d.values()
    if x > 0:
        d["a"] = 3.0
    return sum(values)


@case
def slot_method(x):
    items = [1.0]
    put = items.__setitem__
    del items
    box = put.__self__
    if x > 0:
        put(0, 4.0)
    return box[0]


@case
def user_list(x):
    items = collections.UserList([1.0, 2.0])
    if x > 0:
        items[0] = x
    return items[0] + items[1]


@case
def subclass_of_dict(x):
    class Counts(dict):
        hits = 0

        def __setitem__(self, key, value):
            self.hits += 1
            super().__setitem__(key, value)

    c = Counts(a=1.0)
    if x > 0:
        c["a"] = 2.0
    return c["a"] + 10 * c.hits


# -- identity and conversions


@case
def match_on_flags(x):
    found = [0.0]
    match (x > 0, x > 1):
        case (True, True):
            found[0] = 2.0
        case (True, False):
            found[0] = 1.0
        case _:
            found.append(x)
    return sum(found)


@case
def is_true(x):
    positive = x > 0
    if positive is True:
        return 1.0
    return 3.0 if positive is not False else 2.0


@case
def number_of_a_count(x):
    count = 0
    for i in range(3):
        for j in range(3):
            if i * j > x:
                break
            count += 1
    return float(count) + float(x > 0)
