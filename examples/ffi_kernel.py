"""A kernel in C++ as an operation: built with the headers of purax, called with jit, vmap, grad and shard_map.

python examples/ffi_kernel.py
"""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import purax as px
import purax.numpy as jnp

EPSILON = 1e-5
SOURCE = Path(__file__).with_name("ffi_kernel.cc")


def build(folder: str) -> str:
    """Compiles the kernel and returns the path of the library."""
    library = os.path.join(folder, "ffi_kernel.so")
    compiler = os.environ.get("CXX", "c++")
    command = [
        compiler,
        "-std=c++17",
        "-O2",
        "-shared",
        "-fPIC",
        f"-I{px.ffi.include_dir()}",
        str(SOURCE),
        "-o",
        library,
    ]
    subprocess.run(command, check=True)
    return library


def register(library: str) -> None:
    """Makes the kernel known under the name `rms_norm`."""
    px.ffi.register_ffi_target("rms_norm", px.ffi.pycapsule(ctypes.CDLL(library).RmsNorm), platform="cpu")


@px.custom_vjp
def rms_norm(x: px.Array) -> px.Array:
    """Rows of `x` divided by their root mean square."""
    call = px.ffi.ffi_call("rms_norm", px.ShapeDtypeStruct(x.shape, x.dtype), vmap_method="broadcast_all")
    result: px.Array = call(x, epsilon=np.float32(EPSILON))
    return result


def forward(x: px.Array) -> tuple[px.Array, px.Array]:
    """The result, and what the derivative needs."""
    return rms_norm(x), x


def backward(x: px.Array, cotangent: px.Array) -> tuple[px.Array]:
    """The cotangent of `x`."""
    scale = 1 / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + EPSILON)
    along = jnp.mean(cotangent * x, -1, keepdims=True)
    return (scale * cotangent - scale**3 * along * x,)


rms_norm.defvjp(forward, backward)


def main() -> None:
    """Builds the kernel and compares it with the formula."""
    with tempfile.TemporaryDirectory() as folder:
        register(build(folder))
    x = jnp.arange(12.0).reshape(4, 3)

    def formula(x: px.Array) -> px.Array:
        return x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + EPSILON)

    mesh = px.make_mesh((len(px.devices()),), ("rows",))
    split = px.sharding.PartitionSpec("rows")
    mapped = px.shard_map(rms_norm, mesh=mesh, in_specs=split, out_specs=split)
    for name, kernel, expected in (
        ("call", rms_norm, formula),
        ("jit", px.jit(rms_norm), formula),
        ("vmap", px.vmap(rms_norm), formula),
        ("grad", px.grad(lambda x: jnp.sin(rms_norm(x)).sum()), px.grad(lambda x: jnp.sin(formula(x)).sum())),
        ("shard_map", px.jit(mapped), formula),
    ):
        np.testing.assert_allclose(kernel(x), expected(x), rtol=1e-5, atol=1e-6)
        print(f"{name}: as the formula")


if __name__ == "__main__":
    main()
