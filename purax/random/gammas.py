"""The gamma distribution, and what is made of it: beta, Dirichlet, χ², F, Student's t, the generalized normal
distribution, and uniform points of a ball.

Samples are differentiable with respect to the parameters: a sample x of the gamma distribution moves with its parameter
a so that its cumulative probability stays what it is (`random_gamma_grad`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import purax.numpy as jnp
from purax.control_flow.custom_jvp import custom_jvp
from purax.control_flow.while_loop import while_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.errors import shown
from purax.primitives.elementwise.arithmetic import abs_, div, max_, sqrt, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul, neg
from purax.primitives.elementwise.logic import and_, eq, ge, gt, le, lt, or_, select
from purax.primitives.elementwise.transcendental import pow_
from purax.primitives.elementwise.xla_functions import exp, log
from purax.primitives.reductions.reduction import reduce_max, reduce_or
from purax.primitives.shape.broadcasting import broadcast_in_dim, reduce_sum
from purax.primitives.shape.gather_scatter import take
from purax.primitives.shape.reshaping import reshape
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.special.special import digamma, random_gamma_grad
from purax.primitives.stop_gradient import stop_gradient
from purax.random.arguments import as_operand, as_shape, broadcast_to, float_dtype, placed, result_shape
from purax.random.continuous import draw, standard_exponential
from purax.random.from_bits import like, unit_uniform, unstack
from purax.random.keys import single_key
from purax.random.normals import standard_normal
from purax.random.sampling import sampler
from purax.typing import ArrayLike, DTypeLike, Shape

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"]


# --- the method of Marsaglia and Tsang (2000), with a key for every element


def each_key(keys, count: int) -> list:
    """The `count` keys that each of many keys was split into: arrays (…, words) from (…, count, words)."""
    shape = aval_of(keys).shape
    axis = len(shape) - 2
    return [reshape(slice_axis(keys, i, i + 1, axis), (*shape[:axis], shape[-1])) for i in range(count)]


def choose_keys(predicate, if_true, if_false):
    """Keys (…, words) chosen by booleans (…)."""
    shape = aval_of(if_true).shape
    return select(broadcast_in_dim(predicate, shape, range(len(shape) - 1)), if_true, if_false)


def constant_like(x, number):
    """A number in the shape and dtype of `x`."""
    return broadcast_in_dim(like(x, number), aval_of(x).shape, ())


def any_of(x):
    """Whether any element is true."""
    return reduce_or(x, range(aval_of(x).ndim))


def _positive_cube_root(keys, c, implementation, dtype):
    """x standard normal and v = 1 + c x, drawn again until v is positive."""

    def step(state):
        keys, x, v = state
        again = le(v, 0)
        new_keys, now = each_key(implementation.split(keys, (2,)), 2)
        new_x = standard_normal(now, implementation, (), dtype)
        new_v = add(mul(new_x, c), 1)
        return choose_keys(again, new_keys, keys), select(again, new_x, x), select(again, new_v, v)

    start = (keys, constant_like(c, 0), constant_like(c, -1))
    _, x, v = while_loop(lambda state: any_of(le(state[2], 0)), step, start)
    return x, v


def _cubes(keys, c, d, implementation):
    """v = (1 + c x)³ for x standard normal, drawn again until it is accepted, with which d v is a gamma sample.

    In a large array few elements are drawn again, so these are taken out of it.
    """
    count = aval_of(c).shape[0]
    start = (keys, *(constant_like(c, number) for number in (0, 1, 2)))  # is rejected
    if not _LARGE <= count < 2**31:  # places are numbers of 32 bits
        return _draw_until(start, c, d, implementation, 0)[2]
    few = count // 16
    state = _draw_until(start, c, d, implementation, few)
    again = _is_rejected(state, d)
    (place,) = jnp.nonzero(again, size=few, fill_value=count)
    keys, x2, v, u = (take(x, place, 0) for x in state)
    u = select(lt(place, np.int32(count)), u, constant_like(u, 0))  # what fills up the places is accepted
    drawn = _draw_until((keys, x2, v, u), take(c, place, 0), take(d, place, 0), implementation, 0)
    return state[2].at[place].set(drawn[2], mode="drop")


_LARGE = 2048


def _is_rejected(state, d):
    _, x2, v, u = state
    near = ge(u, sub(1, mul(mul(x2, x2), 0.0331)))
    bound = add(mul(x2, 0.5), mul(d, add(sub(1, v), log(v))))
    return and_(near, ge(log(u), bound))


def _draw_until(state, c, d, implementation, few: int):
    """Draws the rejected elements of (keys, x², v, u) again until at most `few` are left."""
    dtype = aval_of(c).dtype

    def step(state):
        again = _is_rejected(state, d)
        keys, *old = state
        new_keys, normal_keys, uniform_keys = each_key(implementation.split(keys, (3,)), 3)
        x, v = _positive_cube_root(normal_keys, c, implementation, dtype)
        new = (mul(x, x), mul(mul(v, v), v), unit_uniform(uniform_keys, implementation, (), dtype))
        return choose_keys(again, new_keys, keys), *map(select, [again] * 3, new, old)

    def goes_on(state):
        rejected = _is_rejected(state, d)
        return gt(jnp.count_nonzero(rejected), np.int32(few)) if few else any_of(rejected)

    return while_loop(goes_on, step, state)


def _standard_gamma(words, a, implementation, log_space: bool):
    """Samples for an array `a` of parameters; their logarithms with `log_space`."""
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    is_large = ge(a, 1)
    shifted = select(is_large, a, add(a, 1))  # a sample for a < 1 is one for a + 1 times u^(1/a)
    d = sub(shifted, 1 / 3)
    c = div(like(d, 1 / 3), sqrt(d))
    keys, boost_keys = each_key(implementation.split(implementation.split(words, shape), (2,)), 2)
    flat = (math.prod(shape),)
    line = reshape(keys, (*flat, implementation.words))
    v = reshape(_cubes(line, reshape(c, flat), reshape(d, flat), implementation), shape)
    if not log_space:
        boost = pow_(sub(1, unit_uniform(boost_keys, implementation, (), dtype)), div(like(a, 1), a))
        return mul(mul(d, v), select(is_large, constant_like(a, 1), boost))
    log_u = neg(standard_exponential(boost_keys, implementation, (), dtype))
    boost = select(or_(is_large, eq(log_u, 0)), constant_like(a, 0), mul(log_u, div(like(a, 1), a)))
    return add(add(log(d), log(v)), boost)


_SMALL = 1e-4  # where x is so small that P(a, x) = x^a / Γ(a + 1) up to a factor of 1 + O(x)


def _gamma_with_derivative(log_space: bool):
    def sample(words, a, implementation):
        return _standard_gamma(words, a, implementation, log_space)

    differentiable = custom_jvp(sample, nondiff_argnums=(2,))

    @differentiable.defjvp
    def _(implementation, primals, tangents):
        words, a = primals
        y = differentiable(words, a, implementation)
        if not log_space:
            return y, mul(tangents[1], random_gamma_grad(a, y))
        # d(log x)/da = (dx/da)/x; for small x, which may underflow, from a log x − log Γ(a + 1) = constant.
        x = exp(y)
        is_small = lt(x, _SMALL)
        safe = select(is_small, constant_like(x, 1), x)
        slope = div(random_gamma_grad(a, safe), safe)
        tail = div(sub(digamma(add(a, 1)), y), a)
        return y, mul(tangents[1], select(is_small, tail, slope))

    return differentiable


_gamma_of = {log_space: _gamma_with_derivative(log_space) for log_space in (False, True)}


def standard_gamma(words, a, implementation, shape, log_space: bool = False):
    """Samples of the gamma distribution for parameters `a`, which broadcast to `shape`."""
    a = broadcast_in_dim(a, shape, range(len(shape) - aval_of(a).ndim, len(shape)))
    return _gamma_of[log_space](words, a, implementation)


@sampler()
def _gamma(words, a, *, implementation, shape, dtype):
    return standard_gamma(words, a, implementation, shape)


@sampler()
def _loggamma(words, a, *, implementation, shape, dtype):
    return standard_gamma(words, a, implementation, shape, log_space=True)


def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Gamma numbers: density x^(a − 1) exp(−x) / Γ(a) for x > 0.

    Args:
        key: A key.
        a: The parameter, positive.
        shape: The shape of the result, which `a` broadcasts to; that of `a` by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array, differentiable with respect to `a`.

    >>> from purax import random
    >>> bool((random.gamma(random.key(0), 2.0, (100,)) > 0).all())
    True
    """
    return draw("gamma", _gamma, key, shape, dtype, out_sharding, a=a)


def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Logarithms of gamma numbers, accurate also for small `a`, where the numbers themselves would be 0.

    Args:
        key: A key.
        a: The parameter, positive.
        shape: The shape of the result, which `a` broadcasts to; that of `a` by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array, differentiable with respect to `a`.

    >>> from purax import random
    >>> random.loggamma(random.key(0), 0.001, (3,)).shape
    (3,)
    """
    return draw("loggamma", _loggamma, key, shape, dtype, out_sharding, a=a)


# --- ratios of gamma numbers


@sampler()
def _beta(words, a, b, *, implementation, shape, dtype):
    keys = unstack(implementation.split(words, (2,)), 2)
    logs = [standard_gamma(key, x, implementation, shape, True) for key, x in zip(keys, (a, b), strict=True)]
    largest = max_(*logs)
    first, second = (exp(sub(x, largest)) for x in logs)
    return div(first, add(first, second))


def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Beta numbers: density proportional to x^(a − 1) (1 − x)^(b − 1) for 0 ≤ x ≤ 1.

    Args:
        key: A key.
        a: The first parameter, positive.
        b: The second parameter, positive.
        shape: The shape of the result, which the parameters broadcast to; their own by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array, differentiable with respect to `a` and `b`.

    >>> from purax import random
    >>> x = random.beta(random.key(0), 2.0, 3.0, (100,))
    >>> bool(((x >= 0) & (x <= 1)).all())
    True
    """
    return draw("beta", _beta, key, shape, dtype, out_sharding, a=a, b=b)


@sampler()
def _dirichlet(words, alpha, *, implementation, shape, dtype):
    logs = standard_gamma(words, alpha, implementation, shape, log_space=True)
    axis = len(shape) - 1
    leading = range(axis)
    largest = broadcast_in_dim(stop_gradient(reduce_max(logs, (axis,))), shape, leading)
    parts = exp(sub(logs, largest))
    return div(parts, broadcast_in_dim(reduce_sum(parts, (axis,)), shape, leading))


def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Dirichlet vectors: density proportional to Π xᵢ^(αᵢ − 1) for positive xᵢ with Σ xᵢ = 1.

    Args:
        key: A key.
        alpha: The parameters along the last axis, positive.
        shape: The shape of the result without its last axis; that of `alpha` without its last axis by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array, differentiable with respect to `alpha`.

    >>> from purax import numpy as jnp, random
    >>> random.dirichlet(random.key(0), jnp.ones(3), (5,)).shape
    (5, 3)
    """
    found = single_key(key, "dirichlet")
    chosen = float_dtype(dtype, "dirichlet")
    parameters = as_operand(alpha, chosen, "dirichlet", "alpha")
    if not parameters.ndim:
        raise located(ValueError, "dirichlet: alpha must have an axis of parameters, got a scalar")
    if shape is None:
        full = parameters.shape
    else:
        full = (*as_shape(shape, "dirichlet"), parameters.shape[-1])
        result_shape(full, "dirichlet", alpha=parameters)
    static = {"implementation": found.implementation, "shape": full, "dtype": chosen}
    return placed(_dirichlet(found.words, parameters, **static), out_sharding)


# --- distributions of test statistics


def standard_chisquare(words, df, implementation, shape):
    half = div(df, like(df, 2))
    return mul(exp(standard_gamma(words, half, implementation, shape, log_space=True)), 2)


@sampler()
def _chisquare(words, df, *, implementation, shape, dtype):
    return standard_chisquare(words, df, implementation, shape)


def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """χ² numbers: the sum of `df` squared standard normal numbers.

    Args:
        key: A key.
        df: The degrees of freedom, positive.
        shape: The shape of the result, which `df` broadcasts to; that of `df` by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> bool((random.chisquare(random.key(0), 3.0, (100,)) >= 0).all())
    True
    """
    return draw("chisquare", _chisquare, key, shape, dtype, out_sharding, df=df)


@sampler()
def _f(words, dfnum, dfden, *, implementation, shape, dtype):
    second, first = unstack(implementation.split(words, (2,)), 2)
    top = div(standard_chisquare(first, dfnum, implementation, shape), broadcast_to(dfnum, shape))
    bottom = div(standard_chisquare(second, dfden, implementation, shape), broadcast_to(dfden, shape))
    return div(top, bottom)


def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """F numbers: the ratio of two χ² numbers, each divided by its degrees of freedom.

    Args:
        key: A key.
        dfnum: The degrees of freedom of the numerator, positive.
        dfden: The degrees of freedom of the denominator, positive.
        shape: The shape of the result, which the parameters broadcast to; their own by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> random.f(random.key(0), 3.0, 4.0, (5,)).shape
    (5,)
    """
    return draw("f", _f, key, shape, dtype, out_sharding, dfnum=dfnum, dfden=dfden)


@sampler()
def _t(words, df, *, implementation, shape, dtype):
    first, second = unstack(implementation.split(words, (2,)), 2)
    z = standard_normal(first, implementation, shape, dtype)
    half = div(df, like(df, 2))
    g = standard_gamma(second, half, implementation, shape)
    return mul(z, sqrt(div(broadcast_to(half, shape), g)))


def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Student's t numbers: density proportional to (1 + x²/ν)^(−(ν + 1)/2).

    Args:
        key: A key.
        df: ν, the degrees of freedom, positive.
        shape: The shape of the result, which `df` broadcasts to; that of `df` by default.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array.

    >>> from purax import random
    >>> random.t(random.key(0), 3.0, (5,)).shape
    (5,)
    """
    return draw("t", _t, key, shape, dtype, out_sharding, df=df)


# --- generalized normal numbers and balls


def standard_generalized_normal(words, p, implementation, shape, dtype):
    """s g^(1/p), with g a gamma number for 1/p and s a random sign."""
    first, second = unstack(implementation.split(words, (2,)), 2)
    power = div(like(p, 1), p)
    g = standard_gamma(first, power, implementation, shape)
    u = unit_uniform(second, implementation, shape, dtypes.default_float())
    sign = sub(mul(convert_element_type(lt(u, 0.5), dtype), 2), 1)
    return mul(sign, pow_(g, broadcast_in_dim(power, shape, ())))


@sampler()
def _generalized_normal(words, p, *, implementation, shape, dtype):
    return standard_generalized_normal(words, p, implementation, shape, dtype)


def _scalar_power(p: Any, dtype: Any, name: str) -> Any:
    power = as_operand(p, dtype, name, "p")
    if power.ndim:
        raise located(ValueError, f"{name}: p must be a scalar, got shape {power.shape}")
    return power


def generalized_normal(
    key: ArrayLike, p: float, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Generalized normal numbers: density proportional to exp(−|x|^p).

    Args:
        key: A key.
        p: The power, a positive scalar.
        shape: The shape of the result.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.generalized_normal(random.key(0), 1.5, (5,)).shape
    (5,)
    """
    found = single_key(key, "generalized_normal")
    chosen = float_dtype(dtype, "generalized_normal")
    static = {"implementation": found.implementation, "shape": as_shape(shape, "generalized_normal")}
    power = _scalar_power(p, chosen, "generalized_normal")
    return placed(_generalized_normal(found.words, power, **static, dtype=chosen), out_sharding)


@sampler()
def _ball(words, p, *, implementation, shape, dtype):
    """Generalized normal numbers, divided by a length that an exponential number adds to (Barthe et al. 2005)."""
    first, second = unstack(implementation.split(words, (2,)), 2)
    g = standard_generalized_normal(first, p, implementation, shape, dtype)
    leading = shape[:-1]
    e = standard_exponential(second, implementation, leading, dtype)
    total = add(reduce_sum(pow_(abs_(g), broadcast_in_dim(p, shape, ())), (len(leading),)), e)
    length = pow_(total, broadcast_in_dim(div(like(p, 1), p), leading, ()))
    return div(g, broadcast_in_dim(length, shape, range(len(leading))))


def ball(
    key: ArrayLike,
    d: int,
    p: float = 2,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform points of the unit ball in `d` dimensions, in the p-norm.

    Args:
        key: A key.
        d: The number of dimensions.
        p: The power of the norm, a positive scalar.
        shape: The shape of an array of points.
        dtype: A float dtype, float32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of shape (*shape, d).

    >>> from purax import random
    >>> x = random.ball(random.key(0), 3, shape=(100,))
    >>> bool(((x**2).sum(axis=1) <= 1).all())
    True
    """
    found = single_key(key, "ball")
    chosen = float_dtype(dtype, "ball")
    try:
        full = (*as_shape(shape, "ball"), as_size(d))
    except TypeError:
        raise located(TypeError, f"ball: d must be an integer, got {shown(d):.60}") from None
    power = _scalar_power(p, chosen, "ball")
    static = {"implementation": found.implementation, "shape": full, "dtype": chosen}
    return placed(_ball(found.words, power, **static), out_sharding)
