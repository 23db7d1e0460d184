"""Functions in which a branch makes an object and gives it several names, or a name on one side only; `test_state.py`
runs them.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

CASES: list[Any] = []


def case(function):
    CASES.append(function)
    return function


@case
def two_names_of_a_tuple(x):
    if x > 0:
        p = (x, 1.0)
        q = p
    else:
        p = (2 * x, x)
        q = p
    return (p[0] + 3 * q[1]) * (1.0 if p is q else 5.0)


@case
def two_names_of_a_list(x):
    if x > 0:
        p = [x, 1.0]
        q = p
    else:
        p = [2 * x, x]
        q = p
    q[0] += 1
    p[1] *= 3
    return p[0] + 10 * q[1]


@case
def objects_in_two_places(x):
    held = types.SimpleNamespace()
    if x > 0:
        each = types.SimpleNamespace(v=x)
        held.one, held.many, pair = each, [each], (each, each)
    else:
        each = types.SimpleNamespace(v=-x)
        held.one, held.many, pair = each, [each], (each, each)
    held.many[0].v += 1
    pair[1].v *= 2
    return held.one.v


@case
def places_made_in_a_loop(x):
    held, total = types.SimpleNamespace(), 0.0
    for k in (1.0, 2.0):
        if k < x:
            n = [k * x]
            held.n, held.m = n, {"n": n}
        else:
            n = [x]
            held.n, held.m = n, {"n": n}
        n[0] += 1
        total += held.m["n"][0]
    return total * (1.0 if held.n is held.m["n"] else 7.0)


@case
def views_made_in_a_branch(x):
    if x > 0:
        b = np.zeros(2)
        b[0] = x
        c = b
        d = b[1:]
    else:
        b = np.ones(2)
        b[1] = x
        c = b
        d = b[1:]
    c[0] += 1
    d[0] += 5
    return (b * np.array([1.0, 3.0])).sum()


@case
def views_from_before(x):
    a = np.arange(6.0).reshape(2, 3)
    row, column = a[1], a[:, 0]
    if x > 0:
        row += x
    else:
        column[:] = x
    return (a * np.arange(1.0, 7.0).reshape(2, 3)).sum()


@case
def a_name_on_one_side_only(x):
    if x > 0:
        p = [x, 1.0]
        q = p
    else:
        q = [5.0, x]
    q[0] += 1
    if x > 0:
        p[1] += 2
    return q[0] + 10 * q[1]


@case
def a_name_on_one_side_that_is_read(x):
    if x > 0:
        p = [x, 1.0]
        q = p
    else:
        q = [5.0, x]
    q[0] += 1
    r = 7.0
    if x > 0:
        r = p[0]
    return q[0] + 10 * q[1] + 100 * r


@case
def a_name_that_is_none_on_one_side(x):
    if x > 0:
        p = [x, 1.0]
        q = p
    else:
        p, q = None, [5.0, x]
    q[0] += 1
    if p is not None:
        p[1] += 2
    return q[0] + 10 * q[1]
