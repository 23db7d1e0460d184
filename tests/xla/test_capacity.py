"""What cannot fit into memory is refused by its size, before anything is compiled; types may be of any size."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax, random
from purax.core.avals import ShapedArray
from purax.errors import JaxRuntimeError, OutOfMemoryError
from purax.xla import capacity
from purax.xla.compiler import stats

SIDE = 2**20
MEMORY = capacity.memory_of(px.devices("cpu")[0])
KEY = np.array([0, 7], np.uint32)
ROW = np.ones(SIDE, np.float32)
TOO_LARGE = {
    "normal": lambda key, row: random.normal(key, (SIDE, SIDE)),
    "bits": lambda key, row: random.bits(key, (SIDE, SIDE)),
    "split": lambda key, row: random.split(key, SIDE * SIDE),
    "sum of normals": lambda key, row: random.normal(key, (SIDE, SIDE)).sum(),
    "outer": lambda key, row: jnp.outer(row, row),
    "add": lambda key, row: row[:, None] + row,
    "dot": lambda key, row: row[:, None] @ row[None, :],
    "iota": lambda key, row: lax.iota("int8", SIDE * SIDE),
    "pad": lambda key, row: jnp.pad(row, SIDE * SIDE),
    "tile": lambda key, row: jnp.tile(row, SIDE),
    "sort": lambda key, row: jnp.sort(row[:, None] + row, axis=None)[:3],
    "scan": lambda key, row: lax.scan(lambda c, _: (c, row), 0, None, length=SIDE)[1],
    "two results": lambda key, row: [jnp.tile(row, MEMORY // SIDE)] * 2,
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_programs_too_large_for_the_memory_are_not_compiled(name):
    function = TOO_LARGE[name]
    compiled = px.jit(function)
    assert px.tree.leaves(px.eval_shape(function, KEY, ROW))
    assert "func" in compiled.lower(KEY, ROW).as_text()
    before = stats.compiles
    for call in (function, compiled):
        with pytest.raises(MemoryError) as caught:
            call(KEY, jnp.asarray(ROW))
        assert isinstance(caught.value, JaxRuntimeError), caught.value
        assert "RESOURCE_EXHAUSTED: Out of memory" in str(caught.value) and "shape (" in str(caught.value)
        assert "test_capacity.py:" in str(caught.value)
    assert stats.compiles == before


def test_what_is_fused_may_be_larger_than_the_memory():
    total = px.jit(lambda x: jnp.zeros((SIDE, SIDE)).sum() + x)(1.0)
    assert total == 1.0


def test_a_program_compiled_ahead_of_time_says_how_much_it_needs():
    compiled = px.jit(lambda x: x + jnp.zeros((SIDE, SIDE))).lower(1.0).compile()
    assert compiled.memory_analysis().output_size_in_bytes == 4 * SIDE**2


def test_each_device_holds_its_part(monkeypatch):
    monkeypatch.setattr(capacity, "memory_of", lambda device: 2**32)
    whole = [ShapedArray((2**32,), np.dtype(np.float32))]
    device = px.devices()[0]
    capacity.refuse_what_does_not_fit("f", whole, (), [device] * 4)
    with pytest.raises(OutOfMemoryError, match="on each of 3 devices"):
        capacity.refuse_what_does_not_fit("f", whole, (), [device] * 3)


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex64"])
def test_types_that_cannot_be_addressed_are_errors_wherever_they_are_made(dtype):
    small = np.ones((2, 3), dtype)
    shapes = [(2**63,), (2**40, 2**23), (2**40, 2**40, 0), (2**62, 2), (10**30,)]
    for shape in shapes:
        makers = [
            lambda x, shape=shape: jnp.zeros(shape, x.dtype),
            lambda x, shape=shape: jnp.broadcast_to(x[0, 0], shape),
            lambda x, shape=shape: jnp.resize(x, shape),
            lambda x, shape=shape: px.vmap(lambda row: jnp.full(shape, row[0]))(x),
        ]
        for make in makers:
            for call in (make, px.jit(make), lambda x, make=make: px.eval_shape(make, x)):
                with pytest.raises(OverflowError, match="more than can be addressed"):
                    call(small)
    assert px.eval_shape(lambda: jnp.zeros(2**59, dtype)).shape == (2**59,)


EMPTY = np.zeros((2**30, 0, 0), np.float32)


@pytest.mark.parametrize(
    "function", [lax.bessel_i0e, jnp.sort, jnp.linalg.inv, jnp.linalg.eigh, jnp.linalg.pinv, lax.linalg.lu]
)
def test_arrays_without_elements_are_done_at_once_however_long_they_are(function):
    for result in px.tree.leaves(function(EMPTY)):
        assert result.shape[0] == 2**30 and result.size == 0


def test_the_message_says_what_is_alive_and_by_which_name():
    weights = {"layers": [jnp.ones((1024, 1024))]}
    with pytest.raises(OutOfMemoryError) as caught:
        jnp.ones((SIDE, SIDE))
    message = str(caught.value)
    assert "4.0 MiB  f32[1024,1024]  weights['layers'][0] in test_the_message_says" in message, message
    assert "test_capacity.py:" in message and "shape (1048576, 1048576)" in message
    del weights
