"""What libraries ask of arrays, primitives and programs: classes of arrays, kinds of primitives, parameters to bind."""

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching

placed = jax.device_put(jnp.ones(2), jax.devices()[0])
parallel = jax.pmap(lambda x: x + 1)(jnp.ones((1, 2)))
print(type(placed) == type(jnp.ones(2)), type(parallel) == type(placed), type(placed) != type(parallel))  # noqa: E721
print({type(placed): 1}[type(placed)], type(placed) == int, type(placed) == jax.Array)  # noqa: E721


@jax.custom_jvp
def square(x):
    return x * x


square.defjvp(lambda primals, tangents: (square(*primals), 3 * tangents[0]))


@jax.custom_vjp
def cube(x):
    return x * x * x


cube.defvjp(lambda x: (cube(x), None), lambda _, cotangent: (5 * cotangent,))


def evaluate(closed, *values):
    """Binds each equation of a program again."""
    env = dict(zip(closed.jaxpr.invars, values, strict=True))
    for eqn in closed.jaxpr.eqns:
        assert isinstance(eqn.primitive, Primitive)
        params = eqn.primitive.get_bind_params(eqn.params)
        functions, params = params if isinstance(params, tuple) else ((), params)
        out = eqn.primitive.bind(
            *functions, *[env.get(v, getattr(v, "val", None)) for v in eqn.invars], **params
        )
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return [env[v] for v in closed.jaxpr.outvars]


for function in (square, cube):
    closed = jax.make_jaxpr(function)(2.0)
    print(evaluate(closed, 2.0), jax.grad(lambda x, closed=closed: evaluate(closed, x)[0])(2.0))

twice_p = Primitive("twice")
twice_p.def_impl(lambda x: 2 * x)
twice_p.def_abstract_eval(lambda x: x)


def jvp(primals, tangents):
    print("jvp", type(primals).__name__, type(tangents).__name__)
    return twice_p.bind(*primals), twice_p.bind(*tangents)


def batch(operands, axes):
    print("batch", type(operands).__name__, type(axes).__name__)
    return twice_p.bind(*operands), axes[0]


ad.primitive_jvps[twice_p] = jvp
batching.primitive_batchers[twice_p] = batch
print(jax.jvp(twice_p.bind, (1.0,), (3.0,))[1], jax.vmap(twice_p.bind)(jnp.arange(2.0)))

same = jax.custom_jvp(lambda x: x)
same.defjvp(lambda primals, tangents: (*primals, *tangents))
constant = jax.custom_jvp(lambda number, x: number, nondiff_argnums=(0,))
constant.defjvp(lambda number, primals, tangents: (number, 0.0))
for results in (
    constant(1, jnp.ones(2)),
    *jax.jvp(same, (1.0,), (2.0,)),
    *jax.jvp(lambda x: x, (1.0,), (3.0,)),
):
    print(isinstance(results, (int, float)), float(results))
for results in (
    jax.jit(same)(1.0),
    jax.vmap(same)(jnp.ones(2))[0],
    *jax.jvp(jnp.sin, (0.0,), (1.0,)),
    *jax.jvp(lambda x: x + 1, (0.0,), (1.0,)),
):
    print(isinstance(results, jax.Array), results)

# Libraries tell by a constant whether they are traced, and wrap what the class of arrays has.
made = []
for transformed in (jax.jit, jax.vmap, jax.grad):
    transformed(lambda x: (made.append(isinstance(jnp.asarray(False), jax.core.Tracer)), x.sum())[1])(
        jnp.ones(2) if transformed is not jax.grad else 1.0
    )
print(made, isinstance(jnp.asarray(True), jax.core.Tracer))
print([hasattr(jax.Array, name) for name in ("item", "sharding", "addressable_shards", "missing")])
