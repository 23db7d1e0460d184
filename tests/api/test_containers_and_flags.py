"""Containers under `vmap`, slices with a traced start, and flags that forbid or change what is compiled."""

from __future__ import annotations

import functools
import logging
import os
import sys

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.api import vmappable
from purax.config import config


class Box:
    """An array that is no pytree."""

    def __init__(self, x):
        self.x = x


@pytest.fixture
def boxes():
    vmappable.register(
        Box,
        int,
        lambda slice_of, size, box, axis: Box(slice_of(box.x, axis)),
        lambda batch_of, size, box, axis: Box(batch_of(size, box.x, axis)),
    )
    yield
    vmappable.unregister(Box)


def test_vmap_maps_over_containers(boxes):
    x = jnp.arange(6.0).reshape(2, 3)
    run = px.vmap(lambda box, y: (Box(box.x * y), y), in_axes=(1, 0), out_axes=(1, 0))
    box, y = run(Box(x), jnp.arange(3.0))
    assert box.x.tolist() == (x * jnp.arange(3.0)).tolist() and y.tolist() == [0, 1, 2]
    fixed = px.vmap(lambda box, y: box.x.sum() + y, in_axes=(None, 0))(Box(x), jnp.arange(2.0))
    assert fixed.tolist() == [15, 16]
    with pytest.raises(ValueError, match="registered already"):
        vmappable.register(Box, int, print, print)


def test_other_functions_are_vectorized_as_ever(boxes):
    assert px.vmap(lambda x, *, k: x + k)(jnp.arange(2), k=jnp.ones(2)).tolist() == [1, 2]


@pytest.mark.parametrize("start", [0, 3, np.int32(2)])
def test_slices_by_start_and_size(start):
    x = jnp.arange(10)
    for index in (px.ds(start, 4), px.ds(start, 3, 2)):
        wanted = np.arange(10)[index.as_slice()]
        assert x[index].tolist() == wanted.tolist()
        sliced = px.jit(lambda i, index=index: x[px.ds(i, index.size, index.stride)])
        assert sliced(start).tolist() == wanted.tolist()
        assert x.at[index].set(0).tolist() == [0 if i in wanted else i for i in range(10)]
    assert x[px.ds(None)].shape == (10,) and x[px.ds(2)].tolist() == [0, 1]
    with pytest.raises(TypeError, match="only start may be traced"):
        px.jit(lambda n: x[px.ds(0, n)])(3)
    with pytest.raises(ValueError, match="must not be negative"):
        px.ds(0, -1)


def test_no_tracing_and_no_execution():
    f = px.jit(lambda x: x + 1)
    f(1.0)
    with px.no_tracing(True):
        with pytest.raises(RuntimeError, match="re-tracing function"):
            f(jnp.ones(2))
    with px.no_execution(True):
        with pytest.raises(RuntimeError, match="no_execution"):
            f(1.0)
        with pytest.raises(RuntimeError, match="no_execution"):
            jnp.ones(7) * jnp.full(7, 2.5)
    assert float(f(1.0)) == 2


def test_programs_are_written_to_a_folder(tmp_path):
    with config.override(dump_ir_to=str(tmp_path / "ir")):
        px.jit(lambda x: x * 12345.5)(jnp.ones(30_000))
    texts = [(tmp_path / "ir" / name).read_text() for name in os.listdir(tmp_path / "ir")]
    assert any("stablehlo.multiply" in text for text in texts)


EFFORTS = {
    "optimization_level": px.CompilerEffortLevel.O1,
    "memory_fitting_level": "O3",
    "exec_time_optimization_effort": 0.5,
    "memory_fitting_effort": -0.5,
    "disable_most_optimizations": True,
}


@pytest.mark.parametrize("name", EFFORTS)
def test_effort_changes_no_value(name):
    with config.override(**{name: EFFORTS[name]}):
        assert float(px.jit(lambda x: x * 3 + 1)(jnp.ones(30_000))[-1]) == 4


def test_sixteen_bits_are_not_added_up_where_that_is_forbidden():
    x = jnp.ones(3, jnp.float16)
    with px.allow_f16_reductions(False):
        assert float(jnp.sum(x.astype(jnp.float32))) == 3
        with pytest.raises(TypeError, match="allow_f16_reductions is off"):
            px.lax.reduce_sum(x, (0,))


def test_default_dtype_bits():
    with config.override(enable_x64=True, default_dtype_bits="32"):
        assert jnp.zeros(2).dtype == jnp.asarray(1.0).dtype == jnp.float32
        assert jnp.arange(3).dtype == jnp.int32 and jnp.zeros(2, "float64").dtype == jnp.float64
    with config.override(enable_x64=True):
        assert jnp.zeros(2).dtype == jnp.asarray(1.0).dtype == jnp.float64


def test_contexts_of_the_user_trace_again():
    context, seen = px.make_user_context("plain"), []

    @px.jit
    def f(x):
        seen.append(context.value)
        return x

    f(1.0)
    with context("fancy"):
        f(1.0)
        f(1.0)
    f(1.0)
    assert seen == ["plain", "fancy"]


def test_the_logging_level():
    before = config.logging_level
    try:
        config.update("logging_level", "ERROR")
        assert logging.getLogger("purax").level == logging.ERROR
    finally:
        config.update("logging_level", before)


def test_inline_as_an_enum():
    for inline, count in ((px.Inline.JAX_EARLY, 0), (px.Inline.AUTO, 1), (True, 0), (False, 1)):
        inner = px.jit(lambda x: x + 1, inline=inline)
        names = [eqn.primitive.name for eqn in px.make_jaxpr(lambda x, f=inner: f(x))(1.0).eqns]
        assert names.count("jit") == count


def test_nondiff_arguments_may_be_traced_by_vmap():
    @functools.partial(px.custom_jvp, nondiff_argnums=(1,))
    def f(x, n):
        return n * x

    f.defjvp(lambda n, primals, tangents: (f(primals[0], n), tangents[0] * n * 10))
    n = jnp.arange(3.0)
    assert px.vmap(lambda n: px.grad(lambda x: f(x, n))(2.0))(n).tolist() == [0, 10, 20]
    assert px.jit(px.vmap(lambda n: px.grad(lambda x: f(x, n))(2.0)))(n).tolist() == [0, 10, 20]
    with pytest.raises(TypeError, match="nondiff_argnums that is being differentiated"):
        px.grad(lambda n: f(2.0, n))(3.0)


def test_keys_of_the_fast_generators_under_vmap_in_the_import_mode():
    from purax.primitives.random.rng_bit_generator import batches

    keys = px.random.split(px.random.key(1, impl="rbg"), 3)
    batches.from_first_key = True
    try:
        together = px.vmap(lambda key: px.random.bits(key, (2,)))(keys)
    finally:
        batches.from_first_key = False
    assert together.tolist() == px.random.bits(keys[0], (3, 2)).tolist()
    assert "purax.compat.jax" not in sys.modules
