"""Initial values for the parameters of neural networks, as `jax.nn.initializers`.

An initializer is a function `(key, shape, dtype) -> array`; most functions here make one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from purax import numpy as jnp
from purax import random
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import shallow
from purax.errors import shown
from purax.numpy._promotion import promotes_freely
from purax.sharding.constraints import put_at


class Initializer(Protocol):
    """What makes initial values."""

    def __call__(
        self, key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None
    ) -> Array: ...


def _dtype(given: Any, default: Any) -> Any:
    chosen = default if given is None else given
    return dtypes.default_float() if chosen is None else dtypes.as_dtype(chosen)


def zeros(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """Zeros; the key is not used."""
    return jnp.zeros(shape, _dtype(dtype, None), out_sharding=out_sharding)


def ones(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Array:
    """Ones; the key is not used."""
    return jnp.ones(shape, _dtype(dtype, None), out_sharding=out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Makes an initializer that gives `value`, a number or an array that broadcasts to the shape.

    >>> import purax as px
    >>> px.nn.initializers.constant(7)(px.random.key(0), (2,))
    Array([7., 7.], dtype=float32)
    """
    return lambda key, shape, dtype=dtype, out_sharding=None: jnp.full(
        shape, value, _dtype(dtype, None), out_sharding=out_sharding
    )


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Makes an initializer of values uniform in [0, scale)."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        kind = _dtype(dtype, None)
        return put_at(random.uniform(key, shape, kind) * jnp.asarray(scale, kind), out_sharding)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Makes an initializer of normal values with standard deviation `stddev`."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        kind = _dtype(dtype, None)
        return put_at(random.normal(key, shape, kind) * jnp.asarray(stddev, kind), out_sharding)

    return init


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """Makes an initializer of normal values of standard deviation `stddev`, cut off at `lower` and `upper` times it."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        kind = _dtype(dtype, None)
        return put_at(
            random.truncated_normal(key, lower, upper, shape, kind) * jnp.asarray(stddev, kind), out_sharding
        )

    return init


def _fans(shape: Sequence[int], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """How many inputs and outputs each unit of a weight of this shape has."""
    if len(shape) <= 1:
        raise ValueError(
            f"variance_scaling needs a shape with at least two axes, to tell inputs from outputs; got {tuple(shape)}"
        )
    axes = [
        [axis % len(shape) for axis in ((a,) if isinstance(a, int) else a)]
        for a in (in_axis, out_axis, batch_axis)
    ]
    inputs, outputs, batches = (math.prod(shape[axis] for axis in group) for group in axes)
    receptive = math.prod(shape) / inputs / outputs / batches
    return inputs * receptive, outputs * receptive


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """Makes an initializer of values with variance scale / n; n is the number of inputs, of outputs, or their mean.

    Args:
        scale: the factor.
        mode: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
        distribution: "truncated_normal", "normal" or "uniform".
        in_axis: the axis, or axes, of the inputs.
        out_axis: the axis, or axes, of the outputs.
        batch_axis: axes that count as neither.
        dtype: the default dtype of the values.
    """
    fans = {
        "fan_in": lambda i, o: i,
        "fan_out": lambda i, o: o,
        "fan_avg": lambda i, o: (i + o) / 2,
        "fan_geo_avg": lambda i, o: math.sqrt(i * o),
    }
    if shallow(mode) not in fans:
        raise ValueError(f"variance_scaling: mode is one of {', '.join(fans)}, got {shown(mode)}")
    if distribution not in ("truncated_normal", "normal", "uniform"):
        raise ValueError(
            f"variance_scaling: distribution is 'truncated_normal', 'normal' or 'uniform', got {shown(distribution)}"
        )

    def init(key, shape, dtype=dtype, out_sharding=None):
        kind = _dtype(dtype, None)
        inputs, outputs = _fans(shape, in_axis, out_axis, batch_axis)
        variance = jnp.array(scale / max(fans[mode](inputs, outputs), 1e-30), kind)
        if distribution == "normal":
            return put_at(random.normal(key, shape, kind) * jnp.sqrt(variance), out_sharding)
        if distribution == "uniform" and dtypes.is_complex(kind):
            return put_at(_complex_uniform(key, shape, kind) * jnp.sqrt(variance), out_sharding)
        if distribution == "uniform":
            return put_at(random.uniform(key, shape, kind, -1) * jnp.sqrt(3 * variance), out_sharding)
        if dtypes.is_complex(kind):
            return put_at(
                _complex_truncated_normal(key, 2, shape, kind) * jnp.sqrt(variance) / 0.95311164380491208,
                out_sharding,
            )
        # The standard deviation of the normal distribution cut off at ±2.
        deviation = jnp.sqrt(variance) / jnp.array(0.87962566103423978, kind)
        return put_at(random.truncated_normal(key, -2, 2, shape, kind) * deviation, out_sharding)

    return init


@promotes_freely
def _complex_uniform(key: Any, shape: Sequence[int], dtype: Any) -> Array:
    """Complex values of variance 1, uniform in a circle."""
    real = dtypes.to_real_dtype(dtype)
    key_r, key_theta = random.split(key)
    radius = jnp.sqrt(2 * random.uniform(key_r, shape, real))
    angle = 2 * math.pi * random.uniform(key_theta, shape, real)
    return (radius * jnp.exp(1j * angle)).astype(dtype)


@promotes_freely
def _complex_truncated_normal(key: Any, upper: float, shape: Sequence[int], dtype: Any) -> Array:
    """Complex values with a normal distribution cut off at absolute value `upper`."""
    real = dtypes.to_real_dtype(dtype)
    key_r, key_theta = random.split(key)
    t = (1 - jnp.exp(jnp.array(-(upper**2), real))) * random.uniform(key_r, shape, real)
    radius = jnp.sqrt(-jnp.log(1 - t))
    angle = 2 * math.pi * random.uniform(key_theta, shape, real)
    return (radius * jnp.exp(1j * angle)).astype(dtype)


def glorot_uniform(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None
) -> Initializer:
    """Makes a uniform initializer with variance 2 / (inputs + outputs)."""
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None
) -> Initializer:
    """Makes a truncated normal initializer with variance 2 / (inputs + outputs)."""
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def lecun_uniform(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None
) -> Initializer:
    """Makes a uniform initializer with variance 1 / inputs."""
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None
) -> Initializer:
    """Makes a truncated normal initializer with variance 1 / inputs."""
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
    """Makes a uniform initializer with variance 2 / inputs."""
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis: Any = -2, out_axis: Any = -1, batch_axis: Any = (), dtype: Any = None) -> Initializer:
    """Makes a truncated normal initializer with variance 2 / inputs."""
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Makes an initializer of matrices with orthonormal columns (or rows, if there are fewer), times `scale`."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        kind = _dtype(dtype, None)
        if len(shape) < 2:
            raise ValueError(f"orthogonal needs a shape with at least two axes, got {tuple(shape)}")
        columns = shape[column_axis]
        rows = math.prod(shape) // columns
        if rows >= columns:
            matrix = random.orthogonal(key, rows, (), kind, columns)
        else:
            matrix = random.orthogonal(key, columns, (), kind, rows).T
        others = [n for i, n in enumerate(shape) if i != column_axis % len(shape)]
        return put_at(
            scale * jnp.moveaxis(jnp.reshape(matrix, (*others, columns)), -1, column_axis), out_sharding
        )

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Makes an initializer of convolution kernels that are orthogonal at the centre and zero elsewhere."""

    def init(key, shape, dtype=dtype, out_sharding=None):
        kind = _dtype(dtype, None)
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"delta_orthogonal needs a shape with 3, 4 or 5 axes, got {tuple(shape)}")
        if shape[-1] < shape[-2]:
            raise ValueError(
                f"delta_orthogonal needs as many outputs as inputs at least, got shape {tuple(shape)}"
            )
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        kernel = np.zeros(shape[:-2], bool)
        kernel[centre] = True
        return put_at(
            jnp.where(jnp.asarray(kernel)[..., None, None], jnp.broadcast_to(matrix, shape), 0).astype(kind),
            out_sharding,
        )

    return init
