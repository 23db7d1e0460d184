"""The modules of jax are there, hold purax's names, and say which name is missing."""

import importlib
import importlib.metadata
import pickle

import jax
import jax.numpy as jnp

import purax

print(jax, jax.__version__, jax.__version_info__, importlib.metadata.version("jax"))
assert jax.grad is purax.grad and jnp.sin is purax.numpy.sin and jax.Array is purax.Array
NAMES = """
numpy numpy.linalg numpy.fft lax lax.linalg random nn nn.initializers tree tree_util errors dtypes typing stages
custom_derivatives custom_batching ad_checkpoint flatten_util sharding core extend extend.core extend.core.primitives
extend.backend extend.linear_util interpreters interpreters.ad interpreters.batching interpreters.mlir
interpreters.partial_eval interpreters.xla interpreters.pxla api_util util monitoring version test_util config lib
experimental experimental.layout ops
""".split()
for name in NAMES:
    module = importlib.import_module(f"jax.{name}")
    assert module.__name__ == f"jax.{name}", module
    assert dir(module) == module.__all__, module
    for public in dir(module):
        getattr(module, public)
from jax.numpy import *  # noqa: E402, F403

assert arange(2).shape == (2,)  # noqa: F405
assert pickle.loads(pickle.dumps(jnp.sin)) is jnp.sin and pickle.loads(pickle.dumps(jax.nn)) is jax.nn
assert not hasattr(jax, "no_such_name") and getattr(jnp, "no_such_name", 3) == 3
for attempt in (
    "jax.lax.no_such_name",
    "jax.numpy.aranges",
    "from jax.lax import no_such_name",
    "import jax.no_such_module",
    "from jax import no_such_name",
    "import jax._src.no_such_module",
):
    try:
        exec(attempt)
    except (AttributeError, ImportError) as error:
        kinds = [kind.__name__ for kind in (AttributeError, ImportError) if isinstance(error, kind)]
        print(*kinds, error)
