"""Kernels of the user's: one is built with the headers of `include_dir`, and called under the transformations."""

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

EXAMPLE = Path(__file__).parents[2] / "examples" / "ffi_kernel.py"
F32 = np.dtype(np.float32)


@pytest.fixture(scope="module")
def rms_norm(tmp_path_factory):
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    example = runpy.run_path(str(EXAMPLE))
    example["register"](example["build"](str(tmp_path_factory.mktemp("ffi"))))
    return example["rms_norm"]


def formula(x):
    return x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-5)


def test_the_kernel_equals_the_formula(rms_norm):
    x = jnp.arange(12.0).reshape(4, 3)
    for f in (rms_norm, px.jit(rms_norm), px.vmap(rms_norm)):
        np.testing.assert_allclose(f(x), formula(x), rtol=1e-5)
    gradient = px.grad(lambda x: jnp.sin(rms_norm(x)).sum())(x)
    np.testing.assert_allclose(
        gradient, px.grad(lambda x: jnp.sin(formula(x)).sum())(x), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
def test_all_ways_to_take_a_batch_agree(rms_norm, method):
    x = jnp.arange(12.0).reshape(4, 3)

    def one(x):
        call = px.ffi.ffi_call("rms_norm", px.ShapeDtypeStruct(x.shape, x.dtype), vmap_method=method)
        return call(x, epsilon=np.float32(1e-5))

    np.testing.assert_allclose(px.jit(px.vmap(one))(x), formula(x), rtol=1e-5)


def call(x, attributes=None, result=None, **options):
    return px.ffi.ffi_call("missing", result or px.ShapeDtypeStruct((2, 3), F32), **options)(
        x, **(attributes or {})
    )


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({}, LookupError, "no kernel is registered for the FFI target 'missing'"),
        ({"vmap_method": "no"}, ValueError, "vmap_method must be one of"),
        ({"result": 3}, ValueError, "must have a shape and a dtype"),
        ({"input_layouts": [(0, 0)]}, ValueError, "must name each of its 2 axes once"),
        ({"input_layouts": [None, None]}, ValueError, "2 entries for 1 arrays"),
        ({"input_output_aliases": {0: 3}}, ValueError, "output index is outside"),
        (
            {"result": px.ShapeDtypeStruct((2,), F32), "input_output_aliases": {0: 0}},
            ValueError,
            "share memory",
        ),
        ({"attributes": {"a": object()}}, TypeError, "attribute 'a'"),
        ({"legacy_backend_config": "x"}, ValueError, "custom_call_api_version < 4"),
    ],
)
def test_errors_name_the_argument_and_the_line(options, kind, message):
    with pytest.raises(kind, match=message) as found:
        call(jnp.ones((2, 3)), **options)
    assert "test_ffi.py" in str(found.value)


def test_no_derivative_and_no_batch_without_being_told():
    with pytest.raises(ValueError, match="custom_vjp"):
        px.grad(lambda x: call(x).sum())(jnp.ones((2, 3)))
    with pytest.raises(NotImplementedError, match="vmap_method"):
        px.vmap(call)(jnp.ones((4, 2, 3)))
