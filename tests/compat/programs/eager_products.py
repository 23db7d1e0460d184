"""Products of matrices round alike outside of `jit` and inside, whatever their sizes: tests of libraries rely on it."""

import jax
import jax.numpy as jnp
import numpy as np

random = np.random.RandomState(0)


def equal(f, *arguments):
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(f(*arguments)), jax.tree.leaves(jax.jit(f)(*arguments)), strict=True)
    )


for shapes in [((7,), (7,)), ((512, 2), (2,)), ((2, 512), (512,)), ((16, 16), (16, 16)), ((5, 33), (33, 3))]:
    for dtype in (np.float32, np.complex64, jnp.bfloat16):
        x, y = (jnp.asarray(random.randn(*shape), dtype) for shape in shapes)
        print(shapes, x.dtype, equal(jnp.matmul, x, y))

w, x = jnp.asarray(random.randn(40, 40), jnp.float32), jnp.asarray(random.randn(6, 40), jnp.float32)
print("vmap", equal(jax.vmap(lambda x: w @ x), x))
print("grad", equal(jax.grad(lambda w: (w @ x[0])[1]), w))
print("einsum", equal(lambda w, x: jnp.einsum("ij,bj->bi", w, x), w, x))
