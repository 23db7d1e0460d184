"""A stale result is impossible: what a function reads from outside is compared on every call."""

from __future__ import annotations

import dataclasses
import functools
import gc
import logging
import math
import types
import weakref

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from tests.purity import captured_by_others, captured_idioms

lr = 0.1
scale = jnp.arange(3.0)
settings = {"a": 1.0, "b": [1.0, 2.0]}
table = np.arange(3.0)
layers = [2.0, 3.0]
flags = {"x"}
config = types.SimpleNamespace(lr=0.5, inner=types.SimpleNamespace(depth=2))
mask = jnp.array([True, False, True])


class Model:
    factor = 2.0

    def __init__(self, value):
        self.value = value
        self.weight = jnp.ones(3) * value

    def apply(self, x):
        return self.helper(x) * self.value

    def helper(self, x):
        return x + self.factor

    @property
    def double(self):
        return self.value * 2

    def __call__(self, x):
        return x * self.double


model = Model(3.0)


def helper(x):
    return x * lr


def other_helper(x):
    return x + 100.0


def traces(function) -> int:
    """How many programs a jitted function was traced to."""
    return sum(len(s.others) for s in function._cache.values())


def set_global(name, value):
    def change():
        globals()[name] = value

    return change


# (what is read, what is changed): the result must change with it.
CHANGES = {
    "a global number": (lambda x: x * lr, set_global("lr", 0.7)),
    "the type of a number": (lambda x: x * lr, set_global("lr", 2)),
    "a global array": (lambda x: x + scale, set_global("scale", jnp.arange(3.0) + 5)),
    "an array of another shape": (lambda x: x + scale, set_global("scale", jnp.ones((2, 3)))),
    "an entry of a dict": (lambda x: x * settings["a"], lambda: settings.update(a=9.0)),
    "a list in a dict": (lambda x: x * sum(settings["b"]), lambda: settings["b"].append(5.0)),
    "a new key": (lambda x: x * len(settings), lambda: settings.update(new=1)),
    "an entry asked for by get": (
        lambda x: x * settings.get("later", 1.0),
        lambda: settings.update(later=4.0),
    ),
    "a NumPy array in place": (lambda x: x + table, lambda: table.__setitem__(0, 50.0)),
    "a NumPy array of a dict": (lambda x: x + settings["t"].sum(), lambda: settings["t"].__setitem__(0, 9.0)),
    "a list in place": (lambda x: x * layers[0], lambda: layers.__setitem__(0, 7.0)),
    "a list that is looped over": (lambda x: [x * w for w in layers], lambda: layers.append(1.0)),
    "the length of a list": (lambda x: x * len(layers), lambda: layers.append(1.0)),
    "a set": (lambda x: x * ("y" in flags), lambda: flags.add("y")),
    "an attribute": (lambda x: x * config.lr, lambda: setattr(config, "lr", 0.9)),
    "an attribute of an attribute": (
        lambda x: x * config.inner.depth,
        lambda: setattr(config.inner, "depth", 5),
    ),
    "a replaced object": (lambda x: x * config.lr, set_global("config", types.SimpleNamespace(lr=4.0))),
    "an attribute in a method": (lambda x: model.apply(x), lambda: setattr(model, "value", 8.0)),
    "a class attribute": (lambda x: model.apply(x), lambda: setattr(Model, "factor", 6.0)),
    "a property": (lambda x: x * model.double, lambda: setattr(model, "value", 5.0)),
    "a callable object": (lambda x: model(x), lambda: setattr(model, "value", 5.0)),
    "an array attribute": (lambda x: x + model.weight, lambda: setattr(model, "weight", jnp.zeros(3))),
    "another object": (lambda x: model(x), set_global("model", Model(11.0))),
    "a global in a helper": (lambda x: helper(x), set_global("lr", 0.3)),
    "another helper": (lambda x: helper(x), set_global("helper", other_helper)),
    "a helper under vmap": (lambda x: px.vmap(helper)(x), set_global("lr", 0.2)),
    "a helper under grad": (lambda x: px.grad(lambda y: jnp.sum(helper(y)))(x), set_global("lr", 0.2)),
    "a global in a scan body": (
        lambda x: px.lax.scan(lambda c, _: (c * lr, None), x, None, length=2)[0],
        set_global("lr", 0.4),
    ),
    "a global in tree.map": (lambda x: px.tree.map(lambda y: y * lr, {"a": x}), set_global("lr", 0.4)),
    "an array that is an index": (lambda x: x[mask], set_global("mask", jnp.array([True, True, True]))),
    "an array that is read": (lambda x: x * np.asarray(scale)[1], set_global("scale", jnp.arange(3.0) * 4)),
    "an array known while tracing": (
        lambda x: x * _sum_now(scale),
        set_global("scale", jnp.arange(3.0) * 4),
    ),
    "a string": (lambda x: x * len(settings["name"]), lambda: settings.update(name="longer")),
    "a default": (lambda x: with_default(x), lambda: with_default.__defaults__[0].append(4.0)),
}


def _sum_now(x):
    with px.ensure_compile_time_eval():
        return float(jnp.sum(x))


def with_default(x, factors=[2.0]):  # noqa: B006
    return x * sum(factors)


@pytest.fixture(autouse=True)
def fresh_globals():
    """Every test finds the globals as they stand above."""
    globals().update(
        lr=0.1,
        scale=jnp.arange(3.0),
        settings={"a": 1.0, "b": [1.0, 2.0], "t": np.ones(2), "name": "abc"},
        table=np.arange(3.0),
        layers=[2.0, 3.0],
        flags={"x"},
        config=types.SimpleNamespace(lr=0.5, inner=types.SimpleNamespace(depth=2)),
        mask=jnp.array([True, False, True]),
        model=Model(3.0),
        helper=_first_helper,
    )
    Model.factor = 2.0
    with_default.__defaults__ = ([2.0],)


_first_helper = helper


@pytest.mark.parametrize(("function", "change"), CHANGES.values(), ids=CHANGES)
def test_what_is_read_may_change(function, change):
    x = jnp.arange(3.0) + 1
    compiled = px.jit(function)
    for _ in range(4):  # interpreted guards, then the generated function
        px.tree.map(np.testing.assert_allclose, compiled(x), function(x))
    before = traces(compiled)
    assert before == 1
    change()
    for _ in range(4):
        px.tree.map(np.testing.assert_allclose, compiled(x), function(x))


READS = captured_idioms.READS + captured_by_others.READS
READ_NAMES = [f"{i}-{function.__name__}" for i, (function, _) in enumerate(READS)]


@pytest.mark.parametrize(("function", "change"), READS, ids=READ_NAMES)
def test_what_programs_read_may_change(function, change, request):
    printed = np.get_printoptions()
    request.addfinalizer(lambda: np.set_printoptions(**printed))
    with px.purity("off" if function.__name__ in captured_by_others.FILLING else "warn"):
        assert_change_is_seen(function, change)


def assert_change_is_seen(function, change):
    x = jnp.arange(3.0) + 1
    compiled = px.jit(function)
    before = [compiled(x) for _ in range(4)][-1]
    px.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), before, function(x))
    assert traces(compiled) == 1
    change()
    after = function(x)
    assert not all(
        np.allclose(a, b) for a, b in zip(px.tree.leaves(before), px.tree.leaves(after), strict=True)
    )
    for _ in range(3):
        px.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-6), compiled(x), after)


@pytest.mark.parametrize("depth", [1, 2])
def test_guards_of_inner_functions_count_for_outer_ones(depth):
    inner = px.jit(lambda x: x * lr + scale)
    outer = px.jit(lambda x: inner(x) + 1)
    outer = outer if depth == 1 else px.jit(lambda x, f=outer: f(x) * 2)
    x = jnp.ones(3)
    first = np.asarray(outer(x))
    globals().update(lr=0.5, scale=jnp.zeros(3))
    assert not np.allclose(outer(x), first)


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_an_array_in_a_default_stays_replaced(calls):
    """The generated comparison is as good as the one before it, whenever the array is replaced."""

    ones, zeros = jnp.ones(2), jnp.zeros(2)

    def given(weight=ones, *, bias=zeros):
        return weight + bias

    compiled = px.jit(lambda x: x * given())
    for _ in range(calls):
        assert compiled(2.0).tolist() == [2.0, 2.0]
    given.__defaults__ = (ones * 3,)
    for _ in range(4):
        assert compiled(2.0).tolist() == [6.0, 6.0]
    given.__kwdefaults__["bias"] = ones
    for _ in range(4):
        assert compiled(2.0).tolist() == [8.0, 8.0]
    assert traces(compiled) == 1


def test_a_rebound_array_is_no_reason_to_trace_again():
    compiled = px.jit(lambda x: x * scale + model.weight)
    x = jnp.ones(3)
    for i in range(4):
        globals()["scale"] = jnp.full(3, float(i))
        model.weight = jnp.full(3, 10.0 * i)
        np.testing.assert_array_equal(compiled(x), np.full(3, 11.0 * i))
    assert traces(compiled) == 1


def test_arrays_in_captured_containers_are_operands_too():
    parameters = {"w": jnp.ones(3), "b": [jnp.zeros(3)]}

    @px.jit
    def f(x):
        return px.tree.map(lambda p: p * x, parameters)

    f(2.0)
    parameters["w"] = jnp.arange(3.0)
    parameters["b"][0] = jnp.ones(3)
    out = f(2.0)
    np.testing.assert_array_equal(out["w"], [0, 2, 4])
    np.testing.assert_array_equal(out["b"][0], [2, 2, 2])
    assert traces(f) == 1


def test_closure_cells():
    rate = 0.1

    @px.jit
    def f(x):
        return x * rate

    assert f(1.0) == np.float32(0.1)
    rate = 0.2
    assert f(1.0) == np.float32(0.2)


def test_earlier_traces_are_found_again():
    global lr
    compiled = px.jit(lambda x: x * lr)
    for value in (0.1, 0.2, 0.1, 0.2, 0.1):
        lr = value
        assert compiled(1.0) == np.float32(value)
    assert traces(compiled) == 2


def test_zeros_of_different_sign_and_nan():
    global lr
    lr = 0.0
    compiled = px.jit(lambda x: x / lr)
    assert compiled(1.0) == math.inf
    lr = -0.0
    assert compiled(1.0) == -math.inf
    lr = math.nan
    compiled(1.0)
    lr = float("nan")
    compiled(1.0)
    assert traces(compiled) == 3


def test_static_objects_and_methods():
    @functools.partial(px.jit, static_argnums=0)
    def f(m, x):
        return x * m.value

    assert f(model, 1.0) == 3.0
    model.value = 4.0
    assert f(model, 1.0) == 4.0
    g = px.jit(model.apply)
    assert g(1.0) == 12.0
    model.value = 5.0
    assert g(1.0) == 15.0


def test_partial_and_mutable_arguments_held():
    sizes = [1.0, 2.0]
    f = px.jit(functools.partial(lambda s, x: x * sum(s), sizes))
    assert f(1.0) == 3.0
    sizes.append(4.0)
    assert f(1.0) == 7.0


def test_dataclasses_and_equal_values():
    @dataclasses.dataclass
    class Config:
        rate: float = 0.5
        unused: int = 0

    held = Config()
    f = px.jit(lambda x: x * held.rate)
    f(1.0)
    held.unused = 3  # not read: nothing to do with f
    held.rate = 0.25 + 0.25
    f(1.0)
    assert traces(f) == 1
    held.rate = 2.0
    assert f(1.0) == 2.0


def test_functions_without_captures_guard_only_themselves_and_what_they_import():
    for function in (lambda x: jnp.sin(x) * 2, lambda x: px.nn.relu(x) + math.pi):
        compiled = px.jit(function)
        compiled(1.0)
        (specialization,) = compiled._cache.values()
        held = [x for guard in specialization.guards.guards for x in guard.values]
        plain = (types.ModuleType, types.CodeType)
        assert all(isinstance(x, plain) or x in (math.pi, jnp.sin, px.nn.relu) for x in held)
    compiled = px.jit(jnp.cos)
    compiled(1.0)
    assert [s.guards for s in compiled._cache.values()] == [None]


def test_explanations_name_what_changed(caplog):
    global lr
    compiled = px.jit(lambda x: x * lr)
    compiled(1.0)
    lr = 0.01
    with px.explain_cache_misses(True), caplog.at_level(logging.WARNING, "purax"):
        compiled(1.0)
    line = compiled.__wrapped__.__code__.co_firstlineno
    assert f"`lr` in {__file__}:{line} changed from 0.1 to 0.01" in caplog.text


def test_a_deleted_name_is_an_error_as_in_python():
    globals()["temporary"] = 2.0
    compiled = px.jit(lambda x: x * temporary)  # noqa: F821
    compiled(1.0)
    del globals()["temporary"]
    with pytest.raises(NameError):
        compiled(1.0)


def test_what_callbacks_read_is_not_guarded():
    seen = []

    def collect(x):
        seen.append(len(seen))

    compiled = px.jit(lambda x: (px.debug.callback(collect, x), x)[1])
    for _ in range(3):
        compiled(1.0)
    px.effects_barrier()
    assert traces(compiled) == 1 and len(seen) == 3


def test_guards_do_not_keep_functions_alive():
    def make():
        captured = [1.0]

        def f(x):
            return x * captured[0] * lr

        px.jit(f)(1.0)
        return weakref.ref(f)

    ref = make()
    gc.collect()
    assert ref() is None


def test_values_that_hold_one_another_many_times_are_followed_once():
    # The trees of these containers double with every step, so that walking over them would never end.
    def doubled(x):
        pair = (x, jnp.sin)
        for _ in range(2):
            pair = (pair, pair)
        a = (pair, pair)
        b = (a, a, [a])
        c = {"b": b, "again": (b, b)}
        d = (c, c, lambda y: c)
        e = (d, d, [d, (d, d)])
        f = (e, e, [e, (e, e)])
        g = (f, f, [f, (f, f)])
        h = (g, g, [g, (g, g)])
        i = (h, h, [h, (h, h)])
        j = (i, i, [i, (i, i)])
        k = (j, j, [j, (j, j)])
        return px.tree.map(lambda y: y, x), len(k)

    assert px.jit(doubled)(1.0)[1] == 3


def test_changes_between_tracing_and_the_first_comparison_are_seen():
    """Guards are made when they are first compared; they tell of the time of tracing all the same."""

    class Above:
        rate = [2.0]

    class Other:
        rate = [5.0]

    held = Above()
    names: dict = {"scale": 3.0}

    def changed(change):
        inner = px.jit(lambda x: x * held.rate[0] * names["scale"] * abs(-1.0))
        outer = px.jit(lambda x: inner(x) + 0.0)
        outer(1.0)  # the guards of `inner` are compared for the first time below
        change()
        return float(outer(1.0))

    assert changed(lambda: setattr(held, "__class__", Other)) == 15.0
    assert changed(lambda: Other.rate.insert(0, 7.0)) == 21.0
    assert changed(lambda: names.update(scale=1.0)) == 7.0
    globals()["abs"] = lambda x: 9.0
    try:
        assert changed(lambda: globals().pop("abs")) == 7.0
        assert changed(lambda: globals().update(abs=lambda x: 4.0)) == 28.0
    finally:
        globals().pop("abs", None)


def logging_functions():
    seen, kept, self = [], [], types.SimpleNamespace(log=[], names=set())

    def appends(x):
        seen.append(x.shape)
        return x

    def adds_to_an_attribute(x):
        self.log.append(1)
        self.names.add("x")
        return x

    def reads_what_it_filled(x):
        if not kept:
            kept.append(2.0)
        return x * kept[0]

    return [(appends, seen, 2), (adds_to_an_attribute, self.log, 2), (reads_what_it_filled, kept, 1)]


@pytest.mark.parametrize("number", range(3))
def test_what_a_function_only_adds_to_is_no_reason_to_trace_again(number):
    function, filled, length = logging_functions()[number]
    compiled = px.jit(function, purity="off")
    for _ in range(3):
        for x in (1.0, jnp.ones(3)):
            compiled(x)
    assert len(filled) == length
    if length == 1:
        filled[0] = 3.0
        assert compiled(1.0) == 3.0
