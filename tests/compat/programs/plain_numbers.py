"""Numbers that no operation touches come back as numbers: from differentiation, and to and from custom rules."""

import jax
import jax.numpy as jnp
import numpy as np

seen = []


def kind(x):
    if isinstance(x, (tuple, list)):
        return "(" + " ".join(map(kind, x)) + ")"
    if isinstance(x, jax.core.Tracer):
        return "tracer"
    if getattr(x, "dtype", None) == jax.dtypes.float0:
        return "float0"
    if isinstance(x, jax.Array):
        return "array"
    for name in (bool, int, float, complex):
        if isinstance(x, name) and not isinstance(x, np.generic):
            return name.__name__
    return "numpy"


def noted(x):
    seen.append(kind(x))
    return x


@jax.custom_jvp
def power(x):
    return noted(x) ** 2 + 1


@power.defjvp
def _(primals, tangents):
    noted((*primals, *tangents))
    return power(*primals), tangents[0] * 2


@jax.custom_vjp
def doubled(x):
    return noted(x) * 2


doubled.defvjp(lambda x: (noted(x) * 2, 3), lambda r, g: (noted(g) * noted(r),))

NUMBERS = {
    "bool": (True, np.zeros((), jax.dtypes.float0)),
    "int": (2, np.zeros((), jax.dtypes.float0)),
    "float": (2.0, 3.0),
    "complex": (2.0j, 3.0j),
    "float32": (np.float32(2), np.float32(3)),
    "complex64": (np.complex64(2), np.complex64(3)),
    "array": (jnp.float32(2), jnp.float32(3)),
    "float and array": (2.0, jnp.float32(3)),
    "array and float": (jnp.float32(2), 3.0),
}
FUNCTIONS = {
    "itself": noted,
    "a number": lambda x: 7.0,
    "in a tree": lambda x: {"a": x, "b": (x * 1, x)},
    "asarray": jnp.asarray,
    "reshape": lambda x: jnp.reshape(x, ()),
    "product": lambda x: x * x,
    "power": power,
    "doubled": doubled,
}


def ways(f, x, t):
    """How a function can be used at a number and a tangent."""
    return {
        "call": lambda: f(x),
        "jvp": lambda: jax.jvp(f, (x,), (t,)),
        "vjp": lambda: jax.vjp(f, x)[0],
        "linearize": lambda: jax.linearize(f, x)[0],
        "jvp in jit": lambda: jax.jit(lambda: jax.jvp(f, (x,), (t,)))(),
    }


for number, given in NUMBERS.items():
    for name, function in FUNCTIONS.items():
        if number in ("float32", "complex64") and name in ("reshape", "power"):
            continue  # purax makes arrays of NumPy's numbers sooner
        for how, run in ways(function, *given).items():
            seen.clear()
            try:
                result = [kind(y) for y in jax.tree.leaves(run())]
            except TypeError:
                result = ["error"]
            print(number, "|", name, "|", how, "|", *result, "|", *seen)
