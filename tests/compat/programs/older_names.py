"""Names that jax has given up work, each with a DeprecationWarning at the line that uses it."""

import warnings

import jax
import jax.numpy as jnp
from jax.config import config

assert config is jax.config
array = jnp.arange(3)


def warned(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    assert all(issubclass(w.category, DeprecationWarning) and w.filename == __file__ for w in caught), caught
    print(result, "|", *sorted({str(w.message) for w in caught}))


warned(lambda: jnp.alltrue(array < 3))
warned(lambda: jnp.sometrue(array > 5))
warned(lambda: jnp.product(array + 1))
warned(lambda: jax.ops.index_update(array, jax.ops.index[1:], 7))
warned(lambda: jax.ops.index_add(array, 2, 6))
warned(lambda: jax.ops.index_max(array, 2, 20))
warned(lambda: jax.ops.index_min(array, 2, -1))
warned(lambda: jax.tree_map(lambda x: x + 1, {"a": 1}))
warned(lambda: jax.tree_multimap(lambda x, y: x + y, [1], [2]))
warned(lambda: jax.interpreters.xla.DeviceArray is jax.Array)
warned(lambda: isinstance(array, jnp.DeviceArray))
warned(lambda: jax.scipy.special.lpmn_values(1, 1, jnp.zeros(1), False)[1, 1])
