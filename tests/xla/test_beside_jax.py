"""purax and jax in one process, in either order: neither notices the other."""

from __future__ import annotations

import pytest

USE_JAX = """
import jax
import jax.numpy as jnp
assert jax.jit(lambda x: x * 2 + 1)(jnp.arange(3)).tolist() == [1, 3, 5]
assert jnp.arange(3, dtype="float32").dtype == "float32" and jnp.float64(1).dtype == "float32"
assert abs(float(jnp.linalg.cholesky(jnp.eye(2) * 4)[0, 0]) - 2) < 1e-6
assert jax.jit(lambda x: jax.pure_callback(lambda y: y + 1, x, x))(jnp.arange(2)).tolist() == [1, 2]
"""
USE_PURAX = """
import ml_dtypes
import numpy as np
from purax.xla import client, compiler, execute
from purax.sharding.shardings import SingleDeviceSharding
device = client.devices("cpu")[0]
text = '''func.func public @main(%x: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %y:2 = "stablehlo.custom_call"(%x) {call_target_name = "lapack_dpotrf_ffi", api_version = 4 : i32,
    backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
    : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<i32>)
  return %y#0 : tensor<2x2xf64> }'''
program = compiler.compile_program(text, [execute.BufferType((2, 2), np.dtype("float64"))], (device,))
(result,) = program([execute.device_put(np.array([[4.0, 2], [2, 5]]), device)])
assert np.tril(execute.to_numpy(result)).tolist() == [[2, 0], [1, 2]]
assert result._sharding is SingleDeviceSharding(device) and result._sharding.device_set == {device}
assert repr(result._sharding) == "SingleDeviceSharding(device=cpu:0)"
for dtype in (np.int64, ml_dtypes.bfloat16, ml_dtypes.int4, np.bool_, ml_dtypes.float8_e5m2):
    array = np.ones((2, 3), dtype)
    back = execute.to_numpy(execute.device_put(array, device))
    assert back.dtype == dtype and back.tobytes() == array.tobytes()
    assert execute.copy_to_device(execute.device_put(array, device), device, copy=True).aval.dtype == dtype
"""


@pytest.mark.parametrize("order", ["jax first", "purax first", "jax, purax, jax, purax"])
def test_one_process_serves_both(order, run_python):
    parts = {"jax first": "jp", "purax first": "pj", "jax, purax, jax, purax": "jpjp"}[order]
    code = "".join(USE_JAX if part == "j" else USE_PURAX for part in parts)
    check = """
assert jax.devices()[0] is not client.devices("cpu")[0]
assert jax.device_count() == 1 and client.device_count("cpu") == 2
"""
    assert run_python(code + check, PURAX_NUM_CPU_DEVICES="2", XLA_FLAGS=None) == ""


def test_jax_keeps_the_tracebacks_it_wants(run_python):
    output = run_python(
        USE_JAX
        + USE_PURAX
        + "print(jax.make_jaxpr(lambda x: x + 1)(1.0).eqns[0].source_info.traceback is None)"
    )
    assert output == "False"
