"""Iterators that are used on one side of a traced branch are what plain Python makes of them, whatever their class."""

from __future__ import annotations

import collections
import csv
import io
import itertools
import re

import numpy as np
import pytest

import purax as px

ITEMS = (1.0, 2.0, 3.0, 4.0)


def first(items):
    return map(lambda item: item[0], items)


MAKERS = {
    "list": lambda: iter(list(ITEMS)),
    "tuple": lambda: iter(ITEMS),
    "range": lambda: iter(range(1, 5)),
    "dict": lambda: iter(dict.fromkeys(ITEMS)),
    "values": lambda: iter(dict(enumerate(ITEMS)).values()),
    "set": lambda: iter(set(ITEMS)),
    "deque": lambda: iter(collections.deque(ITEMS)),
    "bytes": lambda: iter(b"\x01\x02\x03\x04"),
    "memoryview": lambda: iter(memoryview(b"\x01\x02\x03\x04")),
    "array": lambda: iter(np.arange(1.0, 5.0)),
    "generator": lambda: (v for v in ITEMS),
    "reversed": lambda: reversed(ITEMS),
    "enumerate": lambda: map(lambda pair: pair[1], enumerate(ITEMS)),
    "zip": lambda: first(zip(ITEMS, ITEMS, strict=True)),
    "map": lambda: map(float, ITEMS),
    "filter": lambda: filter(None, ITEMS),
    "callable": lambda: iter(iter(ITEMS).__next__, 9.0),
    "matches": lambda: map(lambda match: float(match.group()), re.finditer(r"\d", "1234")),
    "lines": lambda: map(float, io.StringIO("1\n2\n3\n4\n")),
    "csv": lambda: map(float, itertools.chain.from_iterable(csv.reader(["1", "2", "3", "4"]))),
    "accumulate": lambda: itertools.accumulate(ITEMS),
    "chain": lambda: itertools.chain(ITEMS[:2], ITEMS[2:]),
    "combinations": lambda: first(itertools.combinations(ITEMS, 1)),
    "compress": lambda: itertools.compress(ITEMS, (1, 1, 1, 1)),
    "count": lambda: itertools.count(1.0),
    "cycle": lambda: itertools.cycle(ITEMS[:2]),
    "groupby": lambda: first(itertools.groupby(ITEMS)),
    "islice": lambda: itertools.islice(ITEMS, 4),
    "pairwise": lambda: first(itertools.pairwise(ITEMS)),
    "permutations": lambda: first(itertools.permutations(ITEMS, 1)),
    "product": lambda: first(itertools.product(ITEMS)),
    "repeat": lambda: itertools.repeat(1.0, 4),
    "starmap": lambda: itertools.starmap(float, zip(ITEMS, strict=True)),
    "takewhile": lambda: itertools.takewhile(lambda v: v < 9, ITEMS),
    "tee": lambda: itertools.tee(ITEMS)[0],
    "zip_longest": lambda: first(itertools.zip_longest(ITEMS, ITEMS)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_an_iterator_used_under_conditions(name):
    make = MAKERS[name]

    def f(x):
        items = make()
        for i in range(2):
            if x > i:
                next(items)
        return next(items) * 1.0

    compiled = px.jit(f)
    for x in (3.0, 0.5, -1.0):
        assert float(compiled(x)) == f(x)
