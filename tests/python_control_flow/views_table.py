"""Functions with views of NumPy arrays, numbers chosen by branches, classes that change, and items taken in vain.

`test_state.py` runs them.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import weakref
from typing import Any

import numpy as np

CASES: list[Any] = []


def case(function):
    CASES.append(function)
    return function


# -- views


@case
def row_in_place(x):
    a = np.zeros((2, 3))
    r = a[0]
    if x > 0:
        r += x
    else:
        a[1] += 1.0
    return a + r


@case
def rows_in_loops(x):
    a, b = np.zeros((3, 2)), np.ones((3, 2))
    for i, (p, q) in enumerate(zip(a, b, strict=True)):
        p += q * x
        if x > i:
            q[0] = -1.0
    return a + 10 * b


@case
def views_of_views(x):
    a = np.zeros((3, 4))
    part = a[1:][:, ::2]
    turned = a.T
    if x > 0:
        part[1] = x
    part += 1
    turned[3, 0] = 5.0
    return a


@case
def copies_are_no_views(x):
    a = np.arange(6.0).reshape(2, 3)
    flat, some, own = a.T.reshape(-1), a[[0, 1]], a.copy()
    if x > 0:
        a[0, 0] = x
        own[1, 1] = 3.0
    flat[1] = some[0, 0] = 70.0
    return a.sum() + 2 * flat.sum() + 3 * some.sum() + 5 * own.sum()


@case
def view_of_an_array_with_traced_values(x):
    a = np.zeros((2, 3))
    a[0, 0] = x
    row = a[1]
    row += 1.0
    return a


@case
def row_that_a_traced_index_picks(x):
    a = np.zeros((2, 3))
    row = a[(x > 0) * 1]
    row += x
    row[1] = 9.0
    return a


@case
def one_of_two_arrays_in_place(x):
    a, b = np.zeros(2), np.array([3.0, 1.0])
    c = a if x > 0 else b
    c += 5
    c.sort()
    return a + 10 * b


@case
def changed_on_one_side_and_traced_on_the_other(x):
    h = np.zeros(3, int)
    for e in (x, 1.0, -x):
        if e < 0:
            h[0] += 1
        elif e < 2:
            h[1] += 1
        else:
            h[2] += 1
    return h


@case
def results_that_are_written(x):
    a = np.ones((2, 2))
    np.multiply(a[0], x, out=a[0])
    np.add.at(a, ([0, 0], [1, 1]), x)
    a[a > 1] *= 3
    return a


@case
def value_that_changes_its_target(x):
    a = np.zeros(3)

    def bump():
        a[1] = x
        return 2.0

    a[0] += bump()
    return a


# -- numbers that a branch chose


@case
def chosen_length(x):
    n = 1 if x > 1 else (2 if x > 0 else 4)
    m = 2 * n - 1
    return sum(range(m)) + len([0.0] * m) + len("ab" * n) + np.zeros(n).size


@case
def chosen_key(x):
    at = (0, 0)
    if x > 0:
        at = (at[0] + 1, at[1])
    return {(0, 0): 1.0, (1, 0): 5.0}[at]


@case
def traced_key(x):
    counts = {False: 0.0, True: 0.0}
    for v in (x, 1.0, -x):
        counts[v > 0.75] += v
    return counts[True] + 10 * counts.get(x > 0, 3.0)


@case
def caught_index(x):
    i = (x > 0) * 1 + (x > 1) * 4
    try:
        return np.ones(2)[i] + [1.0, 2.0][i]
    except IndexError:
        return -1.0


@case
def caught_division(x):
    n = 1 if x > 0 else 0
    try:
        return 1 / n
    except ZeroDivisionError:
        return -1.0


@case
def subscripts_in_targets(x):
    a = [x, 2.0, 1.0]
    for i in (0, 1, 2):
        for j in range(2 - (i > 5)):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    least = (x > 0) * 1
    a[0], a[least], (b, *rest) = a[least], a[0], (i, j, x)
    return a[0] + 10 * a[1] + 100 * a[2] + b + sum(rest)


# -- classes, and objects of libraries


@case
def class_that_changes_after_its_object(x):
    class Level:
        k = 1.0

    o, p = Level(), Level()
    if x > 0:
        o.k = x
    else:
        Level.k = 9.0
    first = o.k + 10 * p.k
    Level.k = 50.0
    return first + 100 * o.k


@case
def object_of_another_class(x):
    class Square:
        side = 2.0

        def area(self):
            return self.side**2

    class Circle(Square):
        def area(self):
            return 3.0 * self.side**2

    s = Square()
    if x > 0:
        s.__class__ = Circle
    return s.area() + len(vars(s))


@case
def state_of_libraries(x):
    class Key:
        pass

    calls, log, key = [0], [], Key()
    known = weakref.WeakKeyDictionary()
    numbers = (ctypes.c_int * 2)(1, 2)

    @functools.lru_cache(None)
    def double(n):
        calls[0] += 1
        return 2 * n

    with contextlib.ExitStack() as stack:
        if x > 0:
            stack.callback(log.append, 1.0)
            known[key] = x
            numbers[1] = 50
            double(4)
    double(4)
    return len(log) + 10 * calls[0] + known.get(key, -1.0) + numbers[1]


# -- items


@case
def items_taken_until_one_holds(x):
    seen, rest = [], iter([0.0, 1.0, 4.0, 5.0])

    def is_large(v):
        seen.append(v)
        return v > x

    found = any(is_large(v) for v in (0.0, 1.0, 4.0)) + 10 * all(is_large(v) for v in (2.0, 0.0, 9.0))
    first = next((v for v in rest if v > x), -1.0)
    return found + 100 * len(seen) + first + 1000 * sum(rest)


@case
def conditions_are_asked_once(x):
    asked = collections.Counter()

    def is_large(v):
        asked[v] += 1
        return v > x

    return sum(v for v in (1.0, 2.0) if is_large(v)) + 100 * sum(asked.values())


@case
def best_of_objects(x):
    class Task:
        def __init__(self, load):
            self.load = load

    tasks = [Task(x), Task(1.0), Task(0.75)]
    least = min(tasks, key=lambda task: task.load)
    least.load += 10.0
    return sum((i + 1) * task.load for i, task in enumerate(tasks))
