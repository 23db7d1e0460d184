"""Penzai: named axes, selections of trees, and layers whose parameters are variables."""

import jax
import jax.numpy as jnp
import numpy as np
from penzai import pz

x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
named = pz.nx.wrap(jnp.asarray(x)).tag("row", "column")
assert dict(named.named_shape) == {"row": 2, "column": 3}
doubled = jax.jit(lambda a: a * 2 + 1)(named)
np.testing.assert_allclose(doubled.unwrap("row", "column"), x * 2 + 1)
sums = pz.nx.nmap(jnp.sum)(named.untag("column"))
np.testing.assert_allclose(sums.unwrap("row"), x.sum(1))
outer = pz.nx.wrap(jnp.arange(2.0)).tag("row") + pz.nx.wrap(jnp.arange(3.0)).tag("column")
assert dict(outer.named_shape) == {"row": 2, "column": 3}
assert outer.order_as("column", "row").unwrap("column", "row").shape == (3, 2)
assert float(pz.nx.wrap(jnp.float32(3)).item()) == 3.0

tree = {"a": [1.0, 2.0], "b": jnp.ones(2)}
changed = pz.select(tree).at_instances_of(float).apply(lambda value: value + 1)
assert changed["a"] == [2.0, 3.0]


@pz.pytree_dataclass
class Scale(pz.nn.Layer):
    """A layer with one parameter."""

    factor: pz.Parameter

    def __call__(self, argument, /, **inputs):
        return argument * self.factor.value


factors = [pz.Parameter(value=jnp.float32(x), label=name) for x, name in ((3, "first"), (2, "second"))]
layer = pz.nn.Sequential([Scale(factor) for factor in factors])
assert float(layer(jnp.float32(5))) == 30.0
unbound, variables = pz.unbind_params(layer, freeze=True)
slopes = jax.grad(lambda vs: pz.bind_variables(unbound, vs)(jnp.float32(5)))(variables)
assert sorted(float(v) for v in jax.tree.leaves(slopes)) == [10.0, 15.0]
assert "Scale" in repr(layer)
print("done")
