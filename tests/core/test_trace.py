"""Traces: one current trace per thread, operations handed outwards, tracers used only where they belong."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.trace import Tracer, check_usable, current, eager_trace, using
from purax.execution.eager import EagerTrace


def test_eager_is_where_every_thread_starts():
    assert type(current.trace) is EagerTrace and current.trace is eager_trace()
    seen = []
    with using(object()):
        thread = threading.Thread(target=lambda: seen.append(current.trace))
        thread.start()
        thread.join()
    assert seen == [eager_trace()]
    assert current.trace is eager_trace()


@pytest.mark.parametrize(
    "transformation", [px.jit, px.grad, px.vmap, lambda f: lambda x: px.jvp(f, (x,), (x,))]
)
def test_an_exception_leaves_the_eager_trace_current(transformation):
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        transformation(fails)(jnp.ones(3))
    assert current.trace is eager_trace()
    assert float(jnp.ones(3).sum()) == 3.0


KEEPERS = {
    "jit": lambda keep: px.jit(lambda x: keep(x * 2))(jnp.ones(3)),
    "grad": lambda keep: px.grad(lambda x: keep(x * 2).sum())(jnp.ones(3)),
    "jvp": lambda keep: px.jvp(lambda x: keep(x * 2), (jnp.ones(3),), (jnp.ones(3),)),
    "vmap": lambda keep: px.vmap(lambda x: keep(x * 2))(jnp.ones((2, 3))),
    "scan": lambda keep: px.lax.scan(lambda c, x: (c, keep(x * 2)), 0.0, jnp.ones((2, 3))),
    "cond": lambda keep: px.lax.cond(True, lambda x: keep(x * 2), lambda x: x, jnp.ones(3)),
}
USERS = {
    "add": lambda x: x + 1,
    "eager function": lambda x: jnp.sin(x),
    "jit": lambda x: px.jit(lambda y: y + 1)(x),
    "captured by jit": lambda x: px.jit(lambda y: y + x)(jnp.ones(3)),
    "grad": lambda x: px.grad(lambda y: (y * x).sum())(jnp.ones(3)),
    "vmap": lambda x: px.vmap(lambda y: y + 1)(x),
    "scan": lambda x: px.lax.scan(lambda c, y: (c + y, y), 0.0, x),
}


@pytest.mark.parametrize("keeper", KEEPERS)
@pytest.mark.parametrize("user", USERS)
def test_a_tracer_cannot_be_used_after_its_transformation(keeper, user):
    kept = []
    KEEPERS[keeper](lambda x: kept.append(x) or x)
    with pytest.raises(
        px.errors.UnexpectedTracerError, match="after the transformation that made it had ended"
    ):
        USERS[user](kept[0])


def test_the_error_says_where_the_value_came_from():
    kept = []
    px.jit(lambda x: kept.append(jnp.sin(x)) or x)(1.0)
    with pytest.raises(
        px.errors.UnexpectedTracerError, match=rf"f32\[\], the result of `sin` at {__file__}:\d+"
    ):
        kept[0] + 1
    px.jit(lambda weight: kept.append(weight) or weight)(1.0)
    with pytest.raises(px.errors.UnexpectedTracerError, match="weight of `<lambda>`"):
        kept[1] + 1


def test_tracers_of_outer_transformations_pass_through_inner_ones():
    inner = {
        "jit": lambda x, y: px.jit(lambda v: v * x)(y),
        "grad": lambda x, y: px.grad(lambda v: v * v * x)(y) / 2,
        "vmap": lambda x, y: px.vmap(lambda v: v * x)(jnp.stack([y, y]))[0],
        "scan": lambda x, y: px.lax.scan(lambda c, _: (c * x, None), y, None, length=1)[0],
        "cond": lambda x, y: px.lax.cond(y > 0, lambda: x * y, lambda: x),
        "checkpoint": lambda x, y: px.checkpoint(lambda v: v * x)(y),
    }
    for name, f in inner.items():
        assert float(px.grad(f)(3.0, 2.0)) == 2.0, name
        assert float(px.jit(f)(3.0, 2.0)) == 6.0, name
        assert px.vmap(f, in_axes=(0, None))(jnp.arange(3.0), 2.0).tolist() == [0.0, 2.0, 4.0], name
        assert float(px.jit(px.grad(px.jit(f)))(3.0, 2.0)) == 2.0, name


def test_check_usable_accepts_tracers_of_enclosing_traces():
    def f(x):
        check_usable(x, current.trace)
        return px.vmap(lambda y: check_usable(x, current.trace) or y * x)(jnp.ones(2)).sum()

    assert float(px.grad(f)(3.0)) == 2.0


def test_python_control_flow_works_on_concrete_values():
    def f(x):
        total = x
        while total < 10:
            total = total * 2 if x > 1 else total + 5
        return total * int(px.lax.stop_gradient(x))

    assert float(px.grad(f)(1.5)) == 8.0
    assert float(px.jvp(f, (1.5,), (1.0,))[1]) == 8.0
    assert float(px.grad(px.grad(f))(1.5)) == 0.0


NEEDS_A_VALUE = {
    "if": (lambda x: 1 if x else 2, px.errors.TracerBoolConversionError, "lax.cond"),
    "and": (lambda x: x and 2, px.errors.TracerBoolConversionError, "where"),
    "int": (lambda x: int(x), px.errors.ConcretizationTypeError, "astype"),
    "float": (lambda x: float(x), px.errors.ConcretizationTypeError, "static_argnames"),
    "complex": (lambda x: complex(x), px.errors.ConcretizationTypeError, "astype"),
    "item": (lambda x: x.item(), px.errors.ConcretizationTypeError, "item()"),
    "tolist": (lambda x: x.tolist(), px.errors.ConcretizationTypeError, "tolist()"),
    "range": (lambda x: range(x.astype(int)), px.errors.TracerIntegerConversionError, "static"),
    "list index": (lambda x: [1, 2][x.astype(int)], px.errors.TracerIntegerConversionError, "jnp.asarray"),
    "np.asarray": (lambda x: np.asarray(x), px.errors.TracerArrayConversionError, "purax.numpy.asarray"),
    "pickle": (lambda x: pickle.dumps(x), px.errors.ConcretizationTypeError, "pickle the result"),
}


@pytest.mark.parametrize("transformation", ["jit", "vmap"])
@pytest.mark.parametrize("name", NEEDS_A_VALUE)
def test_what_needs_a_value_says_what_to_do(name, transformation):
    f, kind, advice = NEEDS_A_VALUE[name]
    run = {"jit": lambda: px.jit(f)(1.0), "vmap": lambda: px.vmap(f)(jnp.ones(3))}[transformation]
    with px.config.override(python_control_flow=False), pytest.raises(kind, match=advice) as error:
        run()
    assert f"at {__file__}:" in str(error.value)


def test_truth_of_many_elements_is_ambiguous():
    for run in (lambda: bool(jnp.ones(3)), lambda: px.jit(lambda x: 1 if x else 2)(jnp.ones(3))):
        with pytest.raises(ValueError, match=r"shape \(3,\)\) is ambiguous"):
            run()


def test_tracers_print_copy_and_refuse_hashing():
    def f(x):
        assert isinstance(x, Tracer) and isinstance(x, px.Array)
        assert "f32[3]" in repr(x) and "f32[3]" in f"{x}"
        assert copy.copy(x) is x and copy.deepcopy(x) is x
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        return x

    px.jit(f)(jnp.ones(3))


def test_tracers_hide_no_method_of_arrays():
    methods = [
        name for name in dir(px.Array) if callable(getattr(px.Array, name)) and not name.startswith("_")
    ]
    assert "var" in methods and "trace" in methods

    def f(x):
        assert all(callable(getattr(type(x), name)) for name in methods)
        return x

    for transformation in (px.jit, px.vmap, lambda f: lambda x: px.jvp(f, (x,), (x,))):
        transformation(f)(jnp.ones((2, 2, 2)))
    np.testing.assert_allclose(px.jit(lambda x: x.var() + x.trace())(jnp.arange(4.0).reshape(2, 2)), 4.25)
