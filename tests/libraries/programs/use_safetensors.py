"""safetensors: arrays written to files and read again, in several dtypes, also where bytes are read by NumPy."""

import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import safe_open
from safetensors.flax import load, load_file, save, save_file

arrays = {
    "weights": jnp.arange(6.0).reshape(2, 3),
    "half": jnp.ones(3, jnp.bfloat16),
    "counts": jnp.arange(4, dtype=jnp.int8),
    "flags": jnp.array([True, False]),
    "scalar": jnp.float16(2),
}
again = load(save({name: x for name, x in arrays.items() if name != "half"}))
assert all(isinstance(x, jax.Array) for x in again.values())
assert {k: (v.shape, v.dtype) for k, v in again.items()} == {
    k: (v.shape, v.dtype) for k, v in arrays.items() if k != "half"
}
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "arrays.safetensors")
    save_file(arrays, file, metadata={"about": "a test"})
    for name, value in load_file(file).items():
        np.testing.assert_array_equal(np.asarray(value, np.float32), np.asarray(arrays[name], np.float32))
    with safe_open(file, framework="flax") as opened:
        assert opened.metadata() == {"about": "a test"}
        part = opened.get_slice("weights")[:, 1:]
        assert isinstance(part, jax.Array) and part.shape == (2, 2)
print("done")
