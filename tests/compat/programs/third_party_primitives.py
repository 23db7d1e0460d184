"""Primitives made with jax.extend.core and registered with jax.interpreters, under every transformation."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import core
from jax.extend.core import Primitive
from jax.extend.core.primitives import sin_p
from jax.interpreters import ad, batching, mlir

product_p = Primitive("scaled_product")


def product(x, y, scale=2.0):
    return product_p.bind(x, y, scale=scale)


@product_p.def_impl
def _(x, y, *, scale):
    return jnp.asarray(np.asarray(x) * np.asarray(y) * np.float32(scale))


@product_p.def_abstract_eval
def _(x, y, *, scale):
    assert x.shape == y.shape
    return core.ShapedArray(x.shape, x.dtype)


ad.defbilinear(
    product_p,
    lambda cotangent, x, y, scale: product(cotangent, y, scale),
    lambda cotangent, x, y, scale: product(x, cotangent, scale),
)
batching.defbroadcasting(product_p)
mlir.register_lowering(product_p, mlir.lower_fun(lambda x, y, scale: x * y * scale, multiple_results=False))

x, y = jnp.arange(3.0), jnp.array([2.0, 3.0, 4.0])
expected = 2 * x * y
assert jnp.array_equal(product(x, y), expected) and jnp.array_equal(jax.jit(product)(x, y), expected)
print(jax.make_jaxpr(product)(x, y))
assert jnp.array_equal(jax.grad(lambda x: product(x, y).sum())(x), 2 * y)
assert jnp.array_equal(jax.jit(jax.grad(lambda x: product(x, x).sum()))(x), 4 * x)
assert jnp.array_equal(jax.vmap(product, (0, None))(jnp.stack([x, y]), y), jnp.stack([expected, 2 * y * y]))
assert jnp.array_equal(
    jax.jit(jax.vmap(product, (1, 0)))(jnp.stack([x, y], 1), jnp.stack([y, y]))[0], expected
)
assert (
    product_p in ad.primitive_jvps and product_p in batching.primitive_batchers and sin_p in ad.primitive_jvps
)

polar_p = Primitive("polar")
polar_p.multiple_results = True
polar_p.def_impl(lambda x: [jnp.cos(x), jnp.sin(x)])
polar_p.def_abstract_eval(lambda x: [core.ShapedArray(x.shape, x.dtype)] * 2)
mlir.register_lowering(polar_p, mlir.lower_fun(lambda x: [jnp.cos(x), jnp.sin(x)]))


def polar_jvp(primals, tangents):
    cosine, sine = polar_p.bind(*primals)
    tangent = ad.instantiate_zeros(tangents[0])
    return [cosine, sine], [-tangent * sine, tangent * cosine]


ad.primitive_jvps[polar_p] = polar_jvp
batching.primitive_batchers[polar_p] = lambda operands, axes: (polar_p.bind(*operands), [axes[0]] * 2)
both = jax.jit(jax.vmap(jax.grad(lambda x: polar_p.bind(x)[0] * 3)))(x)
assert jnp.allclose(both, -3 * jnp.sin(x)) and jnp.allclose(jax.jit(polar_p.bind)(x)[1], jnp.sin(x))

shift_p = Primitive("shift")  # linear, and lowered by operations of MLIR's bindings
shift_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
mlir.register_lowering(shift_p, lambda context, x: [mlir.hlo.add(x, mlir.hlo.multiply(x, x))])
assert jnp.array_equal(jax.jit(shift_p.bind)(y), y + y * y) and jnp.array_equal(shift_p.bind(y), y + y * y)

lonely_p = Primitive("lonely")
lonely_p.def_abstract_eval(lambda x: x)
for act in (
    lambda: jax.jit(lonely_p.bind)(x),
    lambda: jax.grad(lambda x: lonely_p.bind(x).sum())(x),
    lambda: jax.vmap(lonely_p.bind)(x),
):
    try:
        act()
        raise AssertionError("a missing rule was not reported")
    except NotImplementedError as error:
        print(str(error).splitlines()[0])

closed = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
assert np.allclose(core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0)[0], 2 * np.sin(2.0))
print([eqn.primitive.name for eqn in closed.jaxpr.eqns])
