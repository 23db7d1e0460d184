"""Functions in which Python, NumPy or a method decides and stores: truth of objects, writers, depth of calls.

`test_state.py` runs them.
"""

from __future__ import annotations

import collections
import itertools
import operator
from typing import Any

import numpy as np

CASES: list[Any] = []
DIFFERENTIATED: list[Any] = []


def case(function):
    CASES.append(function)
    return function


def differentiated(function):
    DIFFERENTIATED.append(function)
    return case(function)


# -- methods that Python calls itself


class Tank:
    def __init__(self, level):
        self.level, self.asked = level, 0

    def __bool__(self):
        self.asked += 1
        return self.level > 0


class Cells:
    def __init__(self):
        self.held = np.zeros(3)

    def __setitem__(self, i, v):
        self.held[i] = v

    def __getitem__(self, i):
        if self.held[i] > 1:
            return self.held[i] - 1
        return self.held[i]

    def __len__(self):
        return 3


@case
def truth_of_an_object(x):
    tank = Tank(x)
    drawn = 0
    while tank:
        tank.level -= 1
        drawn += 1
    if not tank:
        drawn += 10
    return drawn + 100 * tank.asked + (5.0 if bool(tank) else 6.0)


@case
def length_of_an_object(x):
    class Bag:
        def __init__(self):
            self.size = 0

        def __len__(self):
            return self.size

    bag = Bag()
    if x > 0:
        bag.size += 1
    return 1.0 if bag else 2.0


@differentiated
def items_of_an_object(x):
    cells = Cells()
    cells[0] = x
    if x > 0:
        cells[1] = 2 * x
    return cells[0] + 3 * cells[1] + cells[2]


# -- functions of NumPy's that write


@differentiated
def writers(x):
    a = np.ones(4)
    a.fill(x)
    np.put(a, [0], 2 * x)
    operator.setitem(a, 1, 3 * x)
    a.__setitem__(2, x * x)
    b = np.zeros(3)
    np.copyto(b, x)
    b.flat[1] = 5 * x
    np.putmask(b, np.array([False, False, True]), x + 1)
    c = np.zeros((2, 2))
    np.fill_diagonal(c, x)
    np.place(c, c == 0, [2.0])
    np.multiply(c, x, out=c)
    return (a * np.arange(4.0)).sum() + (b * np.array([1.0, 2.0, 4.0])).sum() + c.sum()


@differentiated
def writers_under_a_condition(x):
    a = np.ones(4)
    row = a[1:3]
    if x > 0:
        row.fill(x)
        np.copyto(a[:1], x)
    else:
        a.put([3], x)
    return (a * np.arange(1.0, 5.0)).sum()


@differentiated
def arrays_of_traced_values(x):
    a = np.array([x, 1.0, [x][0] * 2])
    m = np.array([[x, 1.0], [0.0, x]])
    z = np.zeros_like(a)
    f = np.full(2, x)
    a[1] = 3.0
    tail = a[1:]
    if x > 0:
        tail[1] = 7 * x
        z[0] = x
    m[0] += m[1]
    f[0] = 1.0
    joined = np.concatenate([a, f])
    joined[0] *= 2.0
    return joined.sum() + 10 * m.sum() + 100 * z.sum() + a[0]


@differentiated
def stores_without_conditions(x):
    a = np.zeros(3)
    a[0] = x
    a[1:] += x * x
    a[a > 1] *= 2.0
    return a.sum()


# -- sequences of what is no number


@case
def traced_index_of_strings(x):
    i = 0
    while i < x:
        i += 1
    names = ("a", "bb", "ccc", "dddd")
    return len(names[i]) + 10 * ord("wxyz"[i])


@case
def traced_bounds_of_slices(x):
    i = 0
    while i < x:
        i += 1
    return len((1.0, 2.0, 3.0)[:i]) + 10 * len("abcd"[i:-1])


@case
def index_of_the_least(x):
    rows = [("a", 2.0), ("b", x), ("c", 1.0)]
    least = 0
    for i in range(1, 3):
        if rows[i][1] < rows[least][1]:
            least = i
    name, value = rows.pop(least)
    return value + 10 * len(rows) + 100 * "abc".index(name)


@case
def instructions(x):
    program = [("push", x), ("push", 1.0), ("less",), ("jump", 5), ("push", 7.0), ("halt",)]
    stack, position = [], 0
    while True:
        instruction = program[position]
        position += 1
        match instruction:
            case ("push", value):
                stack.append(value)
            case ("less",):
                right, left = stack.pop(), stack.pop()
                stack.append(3.0 if left < right else 4.0)
            case ("jump", target):
                if stack[-1] > 3.5:
                    position = target
            case ("halt",):
                return sum(stack)


# -- how often, known only when the program runs


@case
def counted_by_an_iterator(x):
    numbers = itertools.count()
    steps = 0
    while next(numbers) < x:
        steps += 1
    return steps + 10 * next(numbers)


@differentiated
def depth_of_calls(x):
    def product(v):
        return 1.0 if v <= 1 else v * product(v - 1)

    return product(x + 1)


@case
def depth_of_two_functions(x):
    calls = collections.Counter()

    def even(n):
        calls["even"] += 1
        return True if n <= 0 else odd(n - 1)

    def odd(n):
        return False if n <= 0 else even(n - 1)

    return (1.0 if even(x) else 0.0) + 10 * calls["even"]


@case
def iterator_with_an_end_of_its_own(x):
    class Count:
        k = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.k > x:
                raise StopIteration
            self.k += 1
            return self.k

    return sum(Count())


@case
def generator_that_a_value_ends(x):
    def halves(v):
        while v > 0.3:
            yield v
            v = v / 2

    return sum(halves(x))


@case
def error_that_ends_a_loop(x):
    n = 0
    while True:
        try:
            if n > x:
                raise StopIteration
            n += 1
        except StopIteration:
            break
    return n


# -- identity after a loop


@case
def replaced_object_with_another_name(x):
    items = [1.0, 2.0]
    others = items
    n = x
    while n > 0.25:
        n = n - 1
        items = [n, 0.0]
    others[0] = 50.0
    return items[0] + (100.0 if others is items else 200.0)


@case
def names_that_meet_in_a_loop(x):
    first, second = [1.0], [2.0]
    n = x
    while n > 0:
        n -= 1
        second = first
    second[0] += 1
    return first[0] + 10 * second[0]


@case
def objects_that_change_places(x):
    now, then = [1.0, 2.0], [0.0, 0.0]
    n = x
    while n > 0:
        n -= 1
        then[0], then[1] = now[1] + x, now[0]
        now, then = then, now
    return 10 * now[0] + then[0]
