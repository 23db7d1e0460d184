"""An operation of a third party means what its lowering says wherever a program runs, also inside of callbacks, and
is lowered once for each program."""

import functools

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

counts = {"impl": 0, "lowered": 0, "traced": 0}


def counted(what, x, factor):
    counts[what] += 1
    return x * factor


scaled_p = jax.extend.core.Primitive("scaled")
scaled_p.def_impl(functools.partial(counted, "impl"))
scaled_p.def_abstract_eval(lambda x, factor: jax.core.ShapedArray(x.shape, x.dtype))
ad.deflinear2(scaled_p, lambda g, x, factor: [scaled_p.bind(g, factor=factor)])
batching.defvectorized(scaled_p)
mlir.register_lowering(
    scaled_p, mlir.lower_fun(functools.partial(counted, "lowered"), multiple_results=False)
)


@jax.jit
def scaled(x):
    counts["traced"] += 1
    return scaled_p.bind(x, factor=3.0) + 1


@jax.jit
def in_a_loop(x):
    return jax.lax.fori_loop(0, 3, lambda i, x: scaled_p.bind(x, factor=2.0), x)


def call(function, x):
    return jax.pure_callback(lambda x: np.asarray(function(x)), jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def report(what, function, *args):
    counts.update(impl=0, lowered=0, traced=0)
    results = [np.asarray(function(*args)).tolist() for _ in range(3)]
    print(what, results[0], results[0] == results[1] == results[2], counts)


x, y = jnp.arange(2.0), jnp.arange(3.0)
report("at once", lambda x: scaled_p.bind(x, factor=3.0), x)
report("compiled", scaled, x)
report("in a callback", jax.jit(functools.partial(call, scaled)), y)
report(
    "its derivative", jax.jit(functools.partial(call, jax.grad(lambda x: scaled(x).sum()))), jnp.arange(4.0)
)
report("in a loop", jax.jit(functools.partial(call, in_a_loop)), x)
