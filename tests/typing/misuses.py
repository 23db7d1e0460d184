"""A program in which type checkers find a mistake in every line with a comment that says so: read, not run."""

import purax as px
import purax.numpy as jnp
from purax import lax

x = jnp.ones(3)
px.jitt(lambda x: x)  # mistake
x.summ()  # mistake
jnp.summ(x)  # mistake
print(lax.scann)  # mistake
x.reshape(3, ordering="C")  # mistake
print(x.shape.first)  # mistake
print(px.scipy.specialfunctions)  # mistake


@px.jit
def double(x: px.Array, times: int) -> px.Array:
    return x * times


double(x)  # mistake
px.jit(double, static_argnum=1)  # mistake
double(x, "2")  # mistake
number: int = x + 1  # mistake
