"""einops on arrays and tracers; jaxtyping's shapes, checked at run time."""

import jax
import jax.numpy as jnp
import numpy as np
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from jaxtyping import Array, Float, Int, PyTree, jaxtyped

x = jnp.arange(2 * 4 * 6, dtype=jnp.float32).reshape(2, 4, 6)
cut = jax.jit(lambda x: rearrange(x, "b (h p) w -> b h (p w)", p=2))
np.testing.assert_array_equal(cut(x), np.asarray(x).reshape(2, 2, 12))
np.testing.assert_allclose(jax.vmap(lambda x: reduce(x, "h w -> w", "mean"))(x), x.mean(1), rtol=1e-6)
np.testing.assert_array_equal(jax.grad(lambda x: reduce(x, "b h w ->", "sum"))(x), np.ones(x.shape))
assert repeat(x, "b h w -> b h w c", c=3).shape == (2, 4, 6, 3)
np.testing.assert_allclose(einsum(x, x, "b h w, b k w -> b h k"), np.einsum("bhw,bkw->bhk", x, x), rtol=1e-5)
packed, shapes = pack([x, x[:, 0]], "b * w")
assert packed.shape == (2, 5, 6) and unpack(packed, shapes, "b * w")[1].shape == (2, 6)

assert isinstance(x, Float[Array, "2 _ 6"]) and not isinstance(x, Int[Array, "2 4 6"])
assert not isinstance(x, Float[Array, "a a a"])
assert isinstance({"a": x, "b": [x]}, PyTree[Float[Array, "2 4 6"]])


@jax.jit
@jaxtyped(typechecker=None)
def traced(x):
    assert isinstance(x, Float[Array, "batch height width"]) and isinstance(
        x[0], Float[Array, "height width"]
    )
    assert not isinstance(x[0], Float[Array, "width height"])
    return x


traced(x)
print("done")
