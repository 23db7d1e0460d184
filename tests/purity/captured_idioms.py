"""Functions that read something from outside, each with a change of it that the next call must see; for `test_guards`.

`read(change)` registers a function and what is done between two calls of it.
"""

from __future__ import annotations

import abc
import argparse
import array
import collections
import contextvars
import ctypes
import dataclasses
import enum
import functools
import logging
import math
import operator
import sys
import threading
import types
import typing
import weakref

import numpy as np

import purax as px
import purax.numpy as jnp
from purax import lax

READS: list[tuple[typing.Any, typing.Any]] = []


def read(change):
    def register(function):
        READS.append((function, change))
        return function

    return register


def assign(name, value):
    """Assigns a global variable of this module."""

    def change():
        globals()[name] = value

    return change


# -- functions that are changed in place


def scaled(x, factor=2.0):
    return x * factor


@read(lambda: setattr(scaled, "__defaults__", (5.0,)))
def a_default_that_is_replaced(x):
    return scaled(x)


def shifted(x, *, by=1.0):
    return x + by


@read(lambda: setattr(shifted, "__kwdefaults__", {"by": 7.0}))
def keyword_defaults_that_are_replaced(x):
    return shifted(x)


def moved(x, *, by=1.0):
    return x + by


@read(lambda: moved.__kwdefaults__.update(by=9.0))
def keyword_defaults_that_are_changed(x):
    return moved(x)


def rewritten(x):
    return x + 1


def _other_code(x):
    return x * 50


@read(lambda: setattr(rewritten, "__code__", _other_code.__code__))
def code_that_is_replaced(x):
    return rewritten(x)


class Rewritten:
    def apply(self, x, factor=2.0):
        return x * factor

    @property
    def rate(self):
        return 2.0

    @staticmethod
    def static(x, factor=2.0):
        return x * factor

    @classmethod
    def of_class(cls, x, factor=2.0):
        return x * factor

    def __call__(self, x, factor=2.0):
        return x * factor


rewritten_object = Rewritten()


@read(lambda: setattr(Rewritten.apply, "__defaults__", (6.0,)))
def a_default_of_a_method(x):
    return rewritten_object.apply(x)


@read(lambda: setattr(Rewritten.static, "__defaults__", (6.0,)))
def a_default_of_a_static_method(x):
    return rewritten_object.static(x)


@read(lambda: setattr(Rewritten.of_class.__func__, "__defaults__", (6.0,)))
def a_default_of_a_class_method(x):
    return Rewritten.of_class(x)


@read(lambda: setattr(Rewritten.__call__, "__defaults__", (6.0,)))
def a_default_of_a_callable_object(x):
    return rewritten_object(x)


@read(lambda: setattr(Rewritten, "rate", property(lambda self: 11.0)))
def a_property_that_is_replaced(x):
    return x * rewritten_object.rate


def _patched_apply(self, x):
    return x * 100


class Patched:
    def apply(self, x):
        return x + 1

    def helper(self, x):
        return self.apply(x)


patched = Patched()


@read(lambda: setattr(Patched, "apply", _patched_apply))
def a_patched_method(x):
    return patched.helper(x)


class PatchedLater:
    def apply(self, x):
        return x + 1


patched_later = PatchedLater()


@read(lambda: setattr(patched_later, "apply", lambda x: x * 30))
def a_method_patched_on_the_instance(x):
    return patched_later.apply(x)


class Parent:
    factor = 2.0

    def scale(self, x):
        return x * self.factor


class Son(Parent):
    def scale(self, x):
        return super().scale(x) + 1


son = Son()


@read(lambda: setattr(Son, "factor", 9.0))
def a_class_attribute_that_hides_another(x):
    return son.scale(x)


class Daughter(Parent):
    def scale(self, x):
        return super().scale(x) + 1


daughter = Daughter()


@read(lambda: setattr(daughter, "factor", 9.0))
def an_attribute_that_hides_one_of_the_class(x):
    return daughter.scale(x)


class Grand:
    def scale(self, x):
        return x * 2


class Mother(Grand):
    def scale(self, x):
        return super().scale(x) + 1


mother = Mother()


@read(lambda: setattr(Grand, "scale", lambda self, x: x * 40))
def a_patched_method_of_a_parent(x):
    return mother.scale(x)


reassigned = jnp.sin


@read(assign("reassigned", jnp.cos))
def a_name_for_a_library_function(x):
    return reassigned(x)


activations = {"main": jnp.tanh, "other": [jnp.sin]}


@read(lambda: activations.update(main=jnp.exp))
def a_function_in_a_dict(x):
    return activations["main"](x)


@read(lambda: activations["other"].__setitem__(0, jnp.exp))
def a_function_in_a_list_in_a_dict(x):
    return activations["other"][0](x)


def _first(x):
    return x + 1


def _second(x):
    return x + 20


pipeline = [_first, _first]


@read(lambda: pipeline.__setitem__(1, _second))
def functions_in_a_list(x):
    for function in pipeline:
        x = function(x)
    return x


stages = (_first, _first)


@read(assign("stages", (_first, _second)))
def functions_in_a_tuple(x):
    for function in stages:
        x = function(x)
    return x


held = functools.partial(lambda a, b, x: a * b * x, 2.0, 3.0)


@read(assign("held", functools.partial(lambda a, b, x: a * b * x, 2.0, 7.0)))
def a_replaced_partial(x):
    return held(x)


partial_keywords = functools.partial(lambda x, a=1.0: a * x, a=2.0)


@read(lambda: partial_keywords.keywords.update(a=8.0))
def keywords_of_a_partial(x):
    return partial_keywords(x)


nested_partial = {"f": functools.partial(lambda s, x: x * sum(s), [1.0, 2.0])}


@read(lambda: nested_partial["f"].args[0].append(5.0))
def a_list_in_a_partial_in_a_dict(x):
    return nested_partial["f"](x)


# -- closures


def _closure():
    rate = 0.1
    items = [1.0]
    inner = {"scale": 2.0}

    def helper(x):
        return x * rate * inner["scale"]

    def function(x):
        return helper(x) + sum(items)

    def change():
        nonlocal rate
        rate = 0.7

    def change_items():
        items.append(4.0)

    def change_inner():
        inner["scale"] = 9.0

    return function, change, change_items, change_inner


for _i in range(3):
    _function, *_changes = _closure()
    read(_changes[_i])(_function)


def _decorated():
    options = {"gain": 2.0}

    def decorate(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x) * options["gain"]

        return wrapper

    @decorate
    def base(x):
        return x + 1

    return base, lambda: options.update(gain=6.0)


_function, _change = _decorated()
read(_change)(_function)


def _rebound_helper():
    def helper(x):
        return x + 1

    def function(x):
        return helper(x)

    def change():
        nonlocal helper
        helper = lambda x: x + 70  # noqa: E731

    return function, change


_function, _change = _rebound_helper()
read(_change)(_function)

# -- objects


@dataclasses.dataclass
class Optimizer:
    rate: float = 0.1
    betas: tuple = (0.9, 0.99)
    schedule: typing.Any = None
    extra: dict = dataclasses.field(default_factory=dict)


optimizer = Optimizer(extra={"decay": 0.5})


@read(lambda: setattr(optimizer, "betas", (0.5, 0.5)))
def an_attribute_of_a_dataclass(x):
    b1, b2 = optimizer.betas
    return x * b1 + b2


@read(lambda: optimizer.extra.update(decay=4.0))
def an_entry_of_a_field(x):
    return x * optimizer.extra["decay"]


@read(lambda: optimizer.extra.update(momentum=4.0))
def an_entry_that_was_missing(x):
    return x * optimizer.extra.get("momentum", 1.0)


@read(lambda: optimizer.extra.update(nesterov=True))
def a_membership_test(x):
    return x * 2 if "nesterov" in optimizer.extra else x


@read(lambda: setattr(optimizer, "missing", 3.0))
def an_attribute_that_was_missing(x):
    return x * getattr(optimizer, "missing", 1.0)


@read(lambda: setattr(optimizer, "present", 3.0))
def an_attribute_that_is_asked_for(x):
    return x * 5 if hasattr(optimizer, "present") else x


@read(lambda: setattr(optimizer, "schedule", lambda step: 9.0))
def a_function_in_a_field(x):
    return x * (1.0 if optimizer.schedule is None else optimizer.schedule(1))


class Deep:
    def __init__(self):
        self.a = types.SimpleNamespace(b=types.SimpleNamespace(c=[{"d": 1.0}]))


deep = Deep()


@read(lambda: deep.a.b.c[0].update(d=6.0))
def a_deeply_nested_value(x):
    return x * deep.a.b.c[0]["d"]


class Computed:
    def __init__(self):
        self._rate = 1.0

    @property
    def rate(self):
        return self._rate * 2

    def __getattr__(self, name):
        if name.startswith("virtual"):
            return self._rate + 1
        raise AttributeError(name)

    def __getitem__(self, key):
        return self._rate * key

    def __len__(self):
        return int(self._rate)

    def __iter__(self):
        return iter([self._rate])

    def __contains__(self, key):
        return key == self._rate

    def __add__(self, other):
        return self._rate + other

    def __rmul__(self, other):
        return self._rate * other

    def __bool__(self):
        return self._rate > 1.5

    def __float__(self):
        return self._rate

    def __eq__(self, other):
        return self._rate == other

    __hash__ = None


def computed(function):
    own = Computed()

    def reads(x):
        return function(own, x)

    read(lambda: setattr(own, "_rate", 8.0))(reads)
    return function


computed(lambda own, x: x * own.rate)
computed(lambda own, x: x * own.virtual_thing)
computed(lambda own, x: x * own[2])
computed(lambda own, x: x * len(own))
computed(lambda own, x: x * sum(own))
computed(lambda own, x: x * sum(v for v in own))
computed(lambda own, x: x * (2.0 if 8.0 in own else 1.0))
computed(lambda own, x: x * (own + 1.0))
computed(lambda own, x: x + (2.0 * own))
computed(lambda own, x: x * (3.0 if own else 1.0))
computed(lambda own, x: x * float(own))
computed(lambda own, x: x * (3.0 if own == 8.0 else 1.0))
computed(lambda own, x: x * (3.0 if not own else 1.0))
computed(lambda own, x: x * max(own))
computed(lambda own, x: x * [*own][0])
computed(lambda own, x: x * getattr(own, "rate"))  # noqa: B009
computed(lambda own, x: x * operator.attrgetter("rate")(own))


class Slots:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 1.0


slots = Slots()


@read(lambda: setattr(slots, "value", 5.0))
def a_slot(x):
    return x * slots.value


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


level = Level.LOW


@read(assign("level", Level.HIGH))
def an_enum_member(x):
    return x * level


options = argparse.Namespace(rate=1.0)


@read(lambda: setattr(options, "rate", 4.0))
def parsed_arguments(x):
    return x * options.rate


module = types.ModuleType("settings_of_tests")
module.RATE = 2.0


@read(lambda: setattr(module, "RATE", 5.0))
def a_constant_of_a_module(x):
    return x * module.RATE


module.helper = _first


@read(lambda: setattr(module, "helper", _second))
def a_function_of_a_module(x):
    return module.helper(x)


class Registry:
    rates = {"a": 1.0}
    items: typing.ClassVar[list] = [1.0]
    scale = 1.0

    @classmethod
    def rate(cls, x):
        return x * cls.rates["a"]

    @staticmethod
    def total(x):
        return x * sum(Registry.items)


@read(lambda: Registry.rates.update(a=4.0))
def a_dict_of_a_class(x):
    return Registry.rate(x)


@read(lambda: Registry.items.append(4.0))
def a_list_of_a_class(x):
    return Registry.total(x)


@read(lambda: setattr(Registry, "scale", 4.0))
def an_attribute_of_a_class(x):
    return x * Registry.scale


reference = weakref.ref(optimizer)


@read(lambda: setattr(optimizer, "rate", 3.0))
def through_a_weak_reference(x):
    return x * reference().rate


context_variable = contextvars.ContextVar("context_variable", default=1.0)


@read(lambda: context_variable.set(4.0))
def a_context_variable(x):
    return x * context_variable.get()


storage = threading.local()
storage.rate = 1.0


@read(lambda: setattr(storage, "rate", 4.0))
def thread_local_storage(x):
    return x * storage.rate


# -- containers

window = collections.deque([1.0, 2.0])
counts = collections.Counter(a=1)
groups = collections.defaultdict(lambda: 1.0)
ordered = collections.OrderedDict(a=1.0, b=2.0)
chained = collections.ChainMap({}, {"a": 1.0})
numbers = array.array("d", [1.0, 2.0])
matrix = [[1.0, 2.0], [3.0, 4.0]]
names = {"a", "b"}
queue = collections.UserList([1.0])
user_dict = collections.UserDict(a=1.0)
view = types.MappingProxyType(optimizer.extra)
raw = bytearray(b"ab")
byte_view = memoryview(raw)


@read(lambda: window.append(5.0))
def a_deque(x):
    return x * sum(window)


@read(lambda: window.__setitem__(0, 8.0))
def an_item_of_a_deque(x):
    return x * window[0]


@read(lambda: counts.update("aaa"))
def a_counter(x):
    return x * counts["a"]


@read(lambda: groups.update(a=5.0))
def a_defaultdict(x):
    return x * groups.get("a", 1.0)


@read(lambda: ordered.move_to_end("a"))
def the_order_of_a_dict(x):
    first, *_ = ordered.values()
    return x * first


@read(lambda: chained.maps[1].update(a=6.0))
def a_chain(x):
    return x * chained["a"]


@read(lambda: numbers.append(4.0))
def an_array_of_python(x):
    return x * sum(numbers)


@read(lambda: matrix[1].__setitem__(0, 30.0))
def a_list_of_lists(x):
    return x * sum(sum(row) for row in matrix)


@read(lambda: matrix[0].__setitem__(1, 30.0))
def an_item_of_an_item(x):
    i = 0
    return x * matrix[i][i + 1]


@read(lambda: names.add("c"))
def the_size_of_a_set(x):
    return x * len(names)


@read(lambda: queue.append(6.0))
def a_user_list(x):
    return x * sum(queue)


@read(lambda: user_dict.update(a=6.0))
def a_user_dict(x):
    return x * user_dict["a"]


@read(lambda: raw.__setitem__(0, 200))
def bytes_that_change(x):
    return x * raw[0]


@read(lambda: raw.__setitem__(1, 200))
def a_view_of_bytes(x):
    return x * byte_view[1]


@read(lambda: optimizer.extra.update(view=9.0))
def a_view_of_a_dict(x):
    return x * len(view)


# -- NumPy

vector = np.arange(3.0)
frozen_view = vector.view()
frozen_view.flags.writeable = False
table = np.zeros((4, 4))
column = table[:, 1]
scalar_array = np.array(2.0)
count_array = np.array(-1)
objects = np.array([1.0, None], dtype=object)
boxed = np.array([2.0], dtype=object).reshape(())
long_list = [float(i) for i in range(20_000)]
vocabulary = {f"word{i}": i for i in range(20_000)}
structured = np.zeros(2, dtype=[("a", float)])
masked = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
big = np.zeros(300_000)
ready = np.arange(4.0)
ready.flags.writeable = False


@read(lambda: vector.__setitem__(slice(1, None), 7.0))
def a_slice_of_an_array(x):
    return x + jnp.asarray(vector)


@read(lambda: vector.__setitem__(0, 70.0))
def a_read_only_view_of_an_array(x):
    return x + jnp.asarray(frozen_view)


@read(lambda: table.__setitem__((2, 1), 7.0))
def a_view_of_an_array(x):
    return x * column.sum()


@read(lambda: scalar_array.__setitem__((), 7.0))
def an_array_without_axes(x):
    return x * scalar_array


@read(lambda: count_array.__setitem__((), 3))
def an_array_of_one_integer(x):
    return x * count_array


@read(lambda: objects.__setitem__(0, 7.0))
def an_array_of_objects(x):
    return x * objects[0]


@read(lambda: boxed.__setitem__((), 7.0))
def an_object_in_an_array_without_axes(x):
    return x * boxed.item()


@read(lambda: long_list.__setitem__(15_000, 50_000.0))
def one_item_of_a_long_list(x):
    return x * max(long_list)


@read(lambda: vocabulary.update(word15000=-1))
def one_entry_of_a_large_dict(x):
    return x * min(vocabulary.values())


@read(lambda: structured.__setitem__(0, 7.0))
def a_structured_array(x):
    return x + structured["a"][0]


@read(lambda: masked.__setitem__(1, 7.0))
def a_masked_array(x):
    return x * float(masked.sum())


@read(lambda: big.__setitem__(200_001, 7.0))
def one_item_of_a_large_array(x):
    return x + big.max()


@read(lambda: (setattr(ready.flags, "writeable", True), ready.__setitem__(0, 9.0)))
def an_array_made_writeable_again(x):
    return x * ready.sum()


@read(lambda: table.__setitem__((0, 0), 7.0))
def an_array_in_a_helper_of_numpy(x):
    return x * np.trace(table)


@read(lambda: settings["table"].__setitem__(0, 5.0))
def an_array_in_a_dict(x):
    return px.tree.map(lambda t: t * x, settings)["table"].sum()


settings = {"table": np.ones(3)}
records = [types.SimpleNamespace(w=np.ones(2)), types.SimpleNamespace(w=np.ones(2))]


@read(lambda: records[1].w.__setitem__(0, 5.0))
def arrays_of_objects_in_a_list(x):
    return x * sum(r.w.sum() for r in records)


# -- bodies

rate = 1.0


@read(assign("rate", 3.0))
def in_a_scan(x):
    return lax.scan(lambda c, _: (c * rate, None), x, None, length=2)[0]


rate_cond = 1.0


@read(assign("rate_cond", 3.0))
def in_a_branch(x):
    return lax.cond(x[0] < 100, lambda v: v * rate_cond, lambda v: v, x)


rate_while = 1.0


@read(assign("rate_while", 3.0))
def in_a_while(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * rate_while), (0, x))


rate_python = 1.0


@read(assign("rate_python", 3.0))
def in_python_control_flow(x):
    y = x.sum()
    while y < 51:
        y = y + 1 + rate_python
    return y


rate_checkpoint = 1.0


@read(assign("rate_checkpoint", 3.0))
def in_a_checkpoint(x):
    return px.checkpoint(lambda v: v * rate_checkpoint)(x)


rate_rule = 1.0


@px.custom_jvp
def with_rule(x):
    return x * rate_rule


@with_rule.defjvp
def _with_rule_jvp(primals, tangents):
    return with_rule(primals[0]), tangents[0] * rate_rule


@read(assign("rate_rule", 3.0))
def in_a_custom_rule(x):
    return px.grad(lambda v: with_rule(v).sum())(x)


rate_backward = 1.0


@px.custom_vjp
def with_backward(x):
    return x


with_backward.defvjp(lambda x: (x, None), lambda _, g: (g * rate_backward,))


@read(assign("rate_backward", 3.0))
def in_a_backward_rule(x):
    return px.grad(lambda v: with_backward(v).sum())(x)


rate_inner = 1.0


@px.jit
def inner_jitted(x):
    return x * rate_inner


@read(assign("rate_inner", 3.0))
def in_an_inner_jit(x):
    return px.vmap(inner_jitted)(x) + inner_jitted(x)


rate_generator = 1.0


def _produce():
    for i in range(3):
        yield i * rate_generator


@read(assign("rate_generator", 3.0))
def in_a_generator(x):
    return x * sum(_produce())


rate_recursive = 1.0


def _power(x, n):
    return x * rate_recursive if n == 0 else _power(x, n - 1)


@read(assign("rate_recursive", 3.0))
def in_a_recursion(x):
    return _power(x, 3)


rate_cached = 1.0


class Mapper:
    def __init__(self, function):
        self.function = function

    def __call__(self, x):
        return self.function(x)


mapper = Mapper(lambda x: x * rate_cached)


@read(assign("rate_cached", 3.0))
def in_a_function_held_by_an_object(x):
    return mapper(x)


rate_reduce = 1.0


@read(assign("rate_reduce", 3.0))
def in_a_reduction(x):
    return functools.reduce(lambda a, b: a * rate_reduce + b, [1.0, 2.0, 3.0]) * x


rate_exec = {"value": 1.0}


@read(lambda: rate_exec.update(value=4.0))
def with_names_of_an_item(x):
    name = "value"
    return x * rate_exec[name]


rate_default = 1.0


@read(assign("rate_default", 4.0))
def in_a_nested_default(x):
    def inner(y, factor=rate_default):
        return y * factor

    return inner(x)


rate_class = 1.0


@read(assign("rate_class", 4.0))
def in_a_local_class(x):
    class Local:
        factor = rate_class

        def apply(self, y):
            return y * self.factor

    return Local().apply(x)


limit = sys.maxsize
tau = math.tau


@read(assign("tau", 1.0))
def a_name_imported_from_a_library(x):
    return x * tau


pair = collections.namedtuple("pair", "a b")
point = pair(1.0, [2.0])


@read(lambda: point.b.append(7.0))
def a_list_in_a_named_tuple(x):
    return x * sum(point.b)


text = "ab"


@read(assign("text", "abcd"))
def the_length_of_a_text(x):
    return x * len(text)


ready_list = [1.0, 2.0, 3.0]


@read(lambda: ready_list.reverse())
def the_order_of_a_list(x):
    return x * jnp.asarray(ready_list)


@read(lambda: setattr(sys, "argv", [*sys.argv, "--more"]))
def arguments_of_the_program(x):
    return x * len(sys.argv)


# -- what is reached in unusual ways


class Item:
    factor = 2.0

    def __init__(self, value):
        self.value = value

    def scaled(self):
        return self.value * self.factor

    @functools.cached_property
    def once(self):
        return self.value * 3.0

    def remembered(self, n, memo={}):  # noqa: B006
        if n not in memo:
            memo[n] = self.value * n
        return memo[n]


unusual_elements = {Item(1.0)}


@read(lambda: [setattr(item, "value", 5.0) for item in unusual_elements])
def objects_in_a_set(x):
    return x * sum(item.scaled() for item in unusual_elements)


unusual_named = {Item(1.0): 2.0}


@read(lambda: [setattr(item, "value", 5.0) for item in unusual_named])
def keys_that_are_objects(x):
    return x * sum(item.value * weight for item, weight in unusual_named.items())


class Measure(float):
    pass


unusual_measure = Measure(2.0)


@read(assign("unusual_measure", Measure(5.0)))
def a_number_with_a_class_of_its_own(x):
    return x * unusual_measure


unusual_mortal = [Item(2.0)]
unusual_reference = weakref.ref(unusual_mortal[0])


@read(lambda: unusual_mortal.clear())
def an_object_that_dies(x):
    return x * (1.0 if unusual_reference() is None else 2.0)


kept_item = Item(2.0)
unusual_stand_in = weakref.proxy(kept_item)


@read(lambda: setattr(kept_item, "value", 7.0))
def a_proxy(x):
    return x * unusual_stand_in.scaled()


def multiplied(items, y):
    return items[0] * y


unusual_applied = px.tree_util.Partial(multiplied, [2.0])


@read(assign("unusual_applied", px.tree_util.Partial(multiplied, [6.0])))
def a_partial_of_purax(x):
    return unusual_applied(x)


lazy_item = Item(2.0)


@read(lambda: setattr(lazy_item, "once", 8.0))
def a_cached_property_that_is_overwritten(x):
    return x * lazy_item.once


memo_item = Item(2.0)


@read(lambda: Item.remembered.__defaults__[0].update({3: 9.0}))
def an_entry_of_a_cache_that_is_overwritten(x):
    return x * memo_item.remembered(3)


class Shape(abc.ABC):  # noqa: B024
    pass


class Round(Shape):
    pass


round_item = Item(1.0)


@read(lambda: Round.register(Item))
def a_class_that_is_registered(x):
    return x * (1.0 if isinstance(round_item, Shape) else 2.0)


expression_rate = 2.0


@read(assign("expression_rate", 5.0))
def evaluated_text(x):
    return x * eval("expression_rate + 1.0")


wanted_name = "value"
getter_item = Item(2.0)


@read(lambda: setattr(getter_item, "value", 6.0))
def a_getter_of_a_name(x):
    return x * operator.attrgetter(wanted_name)(getter_item)


unusual_pointed = ctypes.c_double(2.0)
unusual_pointer = ctypes.pointer(unusual_pointed)


@read(lambda: setattr(unusual_pointed, "value", 5.0))
def a_pointer(x):
    return x * unusual_pointer[0]


unusual_records = np.array([(1.0, 2.0)], [("a", float), ("b", float)])
unusual_record = unusual_records[0]


@read(lambda: unusual_records.__setitem__("a", 6.0))
def a_row_of_records(x):
    return x * float(unusual_record["a"])


watched_logger = logging.getLogger("purax.tests.captured")
watched_logger.setLevel(40)


@read(lambda: watched_logger.setLevel(10))
def the_level_of_a_logger(x):
    return x * (1.0 if watched_logger.isEnabledFor(10) else 2.0)


library_module = types.ModuleType("captured_library")
library_module.__file__ = typing.__file__  # it is Python's own, by its file
library_module.rate = 2.0


@read(lambda: setattr(library_module, "rate", 5.0))
def an_attribute_of_a_library(x):
    return x * library_module.rate


lazy_module = types.ModuleType("captured_lazily")
lazy_module.__getattr__ = lambda name: 2.0


@read(lambda: setattr(lazy_module, "__getattr__", lambda name: 5.0))
def a_lazy_attribute_of_a_module(x):
    return x * lazy_module.anything


class Obliging:
    def __getattr__(self, name):
        return 2.0


class Owner:
    obliging = Obliging()


owner_of_an_object_that_answers_everything = Owner()


@read(lambda: setattr(Obliging, "__getattr__", lambda self, name: 5.0))
def an_object_that_answers_everything(x):
    return x * owner_of_an_object_that_answers_everything.obliging.anything
