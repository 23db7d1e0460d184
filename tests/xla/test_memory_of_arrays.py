"""Where an array lies and how many bytes it takes: right for live arrays of every kind, and errors that say why not."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.errors import JaxRuntimeError
from purax.sharding import Mesh, NamedSharding, PartitionSpec

DTYPES = ("bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn")
SHAPES = ((), (0, 3), (3,), (7, 5), (300, 301))


def ways():
    """How an array can have come about, by name, each from a NumPy array."""
    device = px.devices()[0]
    return {
        "eager": lambda x: jnp.asarray(x) == 0,
        "copied": jnp.array,
        "shared": jnp.asarray,
        "reversed": lambda x: jnp.asarray(x[..., ::-1] if x.ndim else x),
        "view": lambda x: jnp.asarray(x)[1:] if x.ndim else jnp.asarray(x)[...],
        "transposed": lambda x: jnp.asarray(x).T,
        "unaligned": lambda x: jnp.asarray(np.concatenate([x.reshape(-1)[:1], x.reshape(-1)])[1:]),
        "compiled": lambda x: px.jit(lambda y: y.reshape(-1))(x),
        "read": lambda x: (y := px.jit(lambda y: y[None])(x), np.asarray(y))[0],
        "passed": lambda x: (y := jnp.asarray(x), px.jit(lambda y: y == 0)(y))[0],
        "committed": lambda x: px.device_put(x, device),
        "elsewhere": lambda x: px.device_put(x, px.devices()[-1]),
        "part": lambda x: (
            px.device_put(jnp.asarray(x), _over_all(PartitionSpec())).addressable_shards[-1].data
        ),
    }


def _over_all(spec: PartitionSpec) -> NamedSharding:
    return NamedSharding(Mesh(np.array(px.devices()), ("x",)), spec)


@pytest.mark.parametrize("way", ways())
def test_the_memory_of_a_live_array_holds_its_value(way):
    for dtype in DTYPES:
        for shape in SHAPES:
            values = np.random.default_rng(0).integers(0, 2, shape).astype(jnp.dtype(dtype))
            array = ways()[way](values)
            address = array.unsafe_buffer_pointer()
            assert array.on_device_size_in_bytes() == array.nbytes
            assert ctypes.string_at(address, array.nbytes) == np.asarray(array).tobytes(), (dtype, shape)
            assert array.unsafe_buffer_pointer() == address and not array.is_deleted()


def test_errors_say_the_true_reason():
    split = px.device_put(jnp.ones((8, 3)), _over_all(PartitionSpec("x")))
    assert split.on_device_size_in_bytes() == split.nbytes
    with pytest.raises(JaxRuntimeError, match="lies on 8 devices"):
        split.unsafe_buffer_pointer()
    given = jnp.ones(5000)
    px.jit(lambda x: x + 1, donate_argnums=0)(given)
    dropped = jnp.ones(3)
    dropped.delete()
    for gone in (given, dropped):
        for question in (gone.unsafe_buffer_pointer, gone.on_device_size_in_bytes):
            with pytest.raises(RuntimeError, match="deleted or donated"):
                question()


def test_the_jax_package_is_not_imported():
    program = (
        "import sys, purax.numpy as jnp; x = jnp.ones(3); x.unsafe_buffer_pointer(); x.on_device_size_in_bytes(); "
        "print('jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
