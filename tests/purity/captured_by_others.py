"""Functions whose captured state is read by others than their own code: Python, libraries, formats and patterns; and
state that the first call fills in. Each has a change that the next call must see. For `test_guards`.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import heapq
import inspect
import operator
import os
import pickle
import pprint
import sys
import types
import typing
from typing import get_type_hints

import numpy as np

READS: list[tuple[typing.Any, typing.Any]] = []


def read(change):
    def register(function):
        READS.append((function, change))
        return function

    return register


def library(text):
    """A module whose code belongs to a library."""
    module = types.ModuleType("reading_library")
    sys.modules["reading_library"] = module
    exec(compile(text, os.path.join(os.sep, "site-packages", "reading_library.py"), "exec"), vars(module))
    return module


@dataclasses.dataclass(order=True)
class Ordered:
    value: float


@dataclasses.dataclass
class Equal:
    value: float
    text: str = "a"


@dataclasses.dataclass(frozen=True)
class Key:
    value: float


class Plain:
    def __init__(self):
        self.kept = 2.0
        self.text = "a"


# -- comparisons without an operator, or with one that only classes define

first, second = Ordered(1.0), Ordered(2.0)
equals = [Equal(1.0), Equal(2.0)]
sought = Equal(2.0)
key = Key(3.0)


@read(lambda: setattr(first, "value", 3.0))
def an_operator_of_order(x):
    return x * (2.0 if first < second else 1.0)


pair = [Ordered(1.0), Ordered(2.0)]


@read(lambda: setattr(pair[0], "value", 3.0))
def a_sorted_list(x):
    return x * (2.0 if sorted(pair)[0] is pair[0] else 1.0)


least = [Ordered(1.0), Ordered(2.0)]


@read(lambda: setattr(least[0], "value", 3.0))
def the_least(x):
    return x * (2.0 if min(least) is least[0] else 1.0)


heap = [Ordered(1.0), Ordered(2.0)]


@read(lambda: setattr(heap[0], "value", 3.0))
def the_least_of_a_heap(x):
    return x * (2.0 if heapq.nsmallest(1, heap)[0] is heap[0] else 1.0)


@read(lambda: setattr(equals[0], "value", 2.0))
def an_index(x):
    return x * (equals.index(sought) + 1)


counted = [Equal(1.0), Equal(2.0)]


@read(lambda: setattr(counted[0], "value", 2.0))
def a_count(x):
    return x * counted.count(sought)


@read(lambda: object.__setattr__(key, "value", 4.0))
def a_key_of_a_class(x):
    return x * {Key(3.0): 2.0}.get(key, 1.0)


by_function = Equal(2.0)


@read(lambda: setattr(by_function, "value", 5.0))
def a_function_that_compares(x):
    return x * (2.0 if operator.eq(by_function, sought) else 1.0)


matched = Equal(2.0, "b")


@read(lambda: setattr(matched, "value", 5.0))
def a_pattern(x):
    match matched:
        case Equal(v, _):
            return x * v


# -- texts

told = Equal(2.0)


@read(lambda: setattr(told, "text", "abc"))
def the_text_of_an_object(x):
    return x * len("%s" % told)  # noqa: UP031


pretty = Equal(2.0)


@read(lambda: setattr(pretty, "text", "abc"))
def the_text_that_a_library_makes(x):
    return x * len(pprint.pformat(pretty))


formatted = Plain()


@read(lambda: setattr(formatted, "kept", 5.0))
def an_attribute_in_a_format(x):
    return x * float("{0.kept}".format(formatted))  # noqa: UP030, UP032


pattern = "{0." + "kept}"
formatted_later = Plain()


@read(lambda: setattr(formatted_later, "kept", 5.0))
def an_attribute_in_a_format_that_is_read(x):
    return x * float(pattern.format(formatted_later))


@read(lambda: np.set_printoptions(precision=2))
def the_text_of_an_array(x):
    return x * len(str(np.array([1.23456789])))


# -- functions of libraries that read what they are given

handed = Plain()
reading = library("def use(o, x):\n    return inner(o) * x\ndef inner(o):\n    return o.kept\n")


@read(lambda: setattr(handed, "kept", 5.0))
def an_object_handed_to_a_library(x):
    return reading.use(handed, x)


handed_again = Plain()
use = library("class Reader:\n    def __init__(self, o):\n        self.v = getattr(o, 'kept')\n").Reader


@read(lambda: setattr(handed_again, "kept", 5.0))
def an_object_handed_to_a_class(x):
    return x * use(handed_again).v


pickled = Plain()


@read(lambda: setattr(pickled, "text", "abcdef"))
def an_object_that_is_pickled(x):
    return x * len(pickle.dumps(pickled))


copied = Plain()


@read(lambda: setattr(copied, "kept", 5.0))
def an_object_that_is_copied(x):
    return x * sum(v for v in copy.deepcopy(copied).__dict__.values() if isinstance(v, float))


class Hinted:
    size: int


@read(lambda: Hinted.__annotations__.update(size=float))
def the_hints_of_a_class(x):
    return x * (2.0 if get_type_hints(Hinted)["size"] is int else 1.0)


def hinted(size: int):
    pass


@read(lambda: hinted.__annotations__.update(size=float))
def the_hints_of_a_function(x):
    return x * (2.0 if typing.get_type_hints(hinted)["size"] is int else 1.0)


class Documented:
    """a"""


@read(lambda: setattr(Documented, "__doc__", "abc"))
def the_doc_of_a_class(x):
    return x * len(inspect.getdoc(Documented))


class Named:
    kept = 2.0


names = ["kept"]


@read(lambda: setattr(Named, "kept", 5.0))
def a_static_attribute(x):
    return x * inspect.getattr_static(Named, names[0])


exporting = types.ModuleType("exporting")
vars(exporting).update(__all__=["kept"], kept=2.0)


@read(lambda: exporting.__all__.append("kept"))
def the_names_that_a_module_exports(x):
    return x * sum(getattr(exporting, name) for name in exporting.__all__)


factor = [2.0]
made_of_python = np.frompyfunc(lambda v: v * factor[0], 1, 1)


@read(lambda: factor.__setitem__(0, 5.0))
def a_function_of_numpy_that_was_made(x):
    return x * float(made_of_python(2.0))


fields = np.dtype([("a", "f4")])


@read(lambda: setattr(fields, "names", ("abc",)))
def the_fields_of_a_dtype(x):
    return x * len(fields.names[0])


def importing(x):
    try:
        import module_that_is_missing_at_first  # type: ignore[import-not-found]

        return x * module_that_is_missing_at_first.rate
    except ImportError:
        return x


def provide():
    module = types.ModuleType("module_that_is_missing_at_first")
    vars(module)["rate"] = 3.0
    sys.modules[module.__name__] = module


READS.append((lambda x: importing(x) + 0, provide))


# -- what the first call fills in

read_first: typing.Any = collections.defaultdict(int)


@read(lambda: read_first.update(a=3))
def a_default_that_reading_keeps(x):
    return x * (read_first["a"] + 1)


lists: typing.Any = collections.defaultdict(list)


@read(lambda: lists["a"].append(3))
def a_list_that_reading_keeps(x):
    return x * (len(lists["a"]) + 1)


set_once: typing.Any = {}


@read(lambda: set_once.update(a=3))
def a_default_that_is_set(x):
    return x * set_once.setdefault("a", 1)


table: typing.Any = {}


@read(lambda: table.update(a=3))
def a_table_that_is_filled(x):
    if "a" not in table:
        table["a"] = 1
    return x * table["a"]


lazy: typing.Any = types.SimpleNamespace(size=None)


@read(lambda: setattr(lazy, "size", 5))
def an_attribute_that_is_filled(x):
    if lazy.size is None:
        lazy.size = 2
    return x * lazy.size


items: typing.Any = []


@read(lambda: items.__setitem__(0, 5.0))
def a_list_that_is_filled(x):
    if not items:
        items.append(2.0)
    return x * items[0]


again = {"k": 1.0}


@read(lambda: again.update(k=5.0))
def a_value_that_is_written_back(x):
    again["k"] = again["k"] * 1.0
    return x * again["k"]


# These change what they read, of which nothing is told here.
FILLING = frozenset(
    "a_default_that_reading_keeps a_list_that_reading_keeps a_list_that_is_filled a_value_that_is_written_back".split()
)
