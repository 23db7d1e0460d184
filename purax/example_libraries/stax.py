"""Networks as pairs of functions: `init(key, input_shape) -> (output_shape, parameters)` and `apply(parameters, x)`.

A layer is such a pair, or a function that returns one; `serial` and `parallel` put layers together. `apply` takes a
`rng` by keyword where a layer needs random numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from purax import lax, random
from purax import numpy as jnp
from purax.api.jit import eval_shape
from purax.api.stages import ShapeDtypeStruct
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.nn import elu, gelu, leaky_relu, log_softmax, relu, selu, sigmoid, softmax, softplus, standardize
from purax.nn.initializers import glorot_normal, normal, ones, zeros

Layer = tuple[Callable, Callable]
glorot, randn, logsoftmax = glorot_normal, normal, log_softmax


def Dense(out_dim: int, W_init: Callable = glorot_normal(), b_init: Callable = normal()) -> Layer:  # noqa: B008
    """A dense layer: x · W + b.

    Args:
        out_dim: the number of its results.
        W_init: makes W from a key and a shape.
        b_init: makes b.

    >>> import purax as px
    >>> from purax.example_libraries import stax
    >>> init, apply = stax.serial(stax.Dense(4), stax.Relu, stax.Dense(2))
    >>> shape, parameters = init(px.random.key(0), (-1, 3))
    >>> shape, apply(parameters, px.numpy.ones((5, 3))).shape
    ((-1, 2), (5, 2))
    """

    def init(rng, input_shape):
        key_w, key_b = random.split(rng)
        return (*input_shape[:-1], out_dim), (
            W_init(key_w, (input_shape[-1], out_dim)),
            b_init(key_b, (out_dim,)),
        )

    def apply(params, inputs, **kwargs):
        weight, bias = params
        return jnp.dot(inputs, weight) + bias

    return init, apply


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable | None = None,
    b_init: Callable = normal(1e-6),  # noqa: B008
) -> Layer:
    """A convolution and a bias.

    Args:
        dimension_numbers: the layouts of inputs, filters and results, such as ("NHWC", "HWIO", "NHWC").
        out_chan: the number of channels of the results.
        filter_shape: the extent of the filter in space.
        strides: 1 by default.
        padding: "VALID", "SAME" or pairs of numbers.
        W_init: makes the filter from a key and a shape.
        b_init: makes the bias.
    """
    return _convolution(
        lax.conv_general_dilated, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable | None = None,
    b_init: Callable = normal(1e-6),  # noqa: B008
) -> Layer:
    """A transposed convolution and a bias, with the arguments of `GeneralConv`."""
    return _convolution(
        lax.conv_transpose, dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init
    )


def _convolution(
    function, dimension_numbers, out_chan, filter_shape, strides, padding, make_filter, make_bias
) -> Layer:
    in_layout, filter_layout, out_layout = dimension_numbers
    if not isinstance(filter_layout, str):
        raise located(TypeError, f"dimension_numbers must be three texts, got {shown(dimension_numbers)}")
    strides = strides or (1,) * len(filter_shape)
    make_filter = make_filter or glorot_normal(filter_layout.index("O"), filter_layout.index("I"))

    def convolve(inputs, weight):
        return function(inputs, weight, strides, padding, dimension_numbers=dimension_numbers)

    def init(rng, input_shape):
        extents = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[in_layout.index("C")]}
        shape = tuple(channels[axis] if axis in channels else next(extents) for axis in filter_layout)
        bias_shape = tuple(out_chan if axis == "C" else 1 for axis in out_layout)
        key_w, key_b = random.split(rng)
        out_shape = shape_of(convolve, input_shape, shape)
        return out_shape, (make_filter(key_w, shape), make_bias(key_b, bias_shape))

    def apply(params, inputs, **kwargs):
        weight, bias = params
        return convolve(inputs, weight) + bias

    return init, apply


def shape_of(function: Callable, input_shape: Sequence[int], *shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape of a layer's result; a batch of unknown size, -1, stays one."""
    input_shape = finite(input_shape)
    known = tuple(1 if size == -1 else size for size in input_shape)
    arguments = [ShapeDtypeStruct(shape, jnp.float32) for shape in (known, *shapes)]
    result = eval_shape(function, *arguments)
    found = getattr(result, "shape", None)
    if found is None:
        raise located(TypeError, f"shape_of: the function must return one array, it returned {shown(result)}")
    return tuple(-1 if given == -1 else size for given, size in zip(input_shape, found, strict=True))


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable = zeros,
    gamma_init: Callable = ones,
) -> Layer:
    """Normalization over a batch, by its own mean and variance.

    Args:
        axis: over which axes.
        epsilon: added to the variance.
        center: whether a learned number is added.
        scale: whether a learned number multiplies.
        beta_init: makes what is added.
        gamma_init: makes what multiplies.
    """
    axes = (axis,) if jnp.ndim(axis) == 0 else tuple(finite(axis))

    def init(rng, input_shape):
        shape = tuple(size for i, size in enumerate(finite(input_shape)) if i not in axes)
        key_beta, key_gamma = random.split(rng)
        beta = beta_init(key_beta, shape) if center else ()
        gamma = gamma_init(key_gamma, shape) if scale else ()
        return tuple(input_shape), (beta, gamma)

    def apply(params, x, **kwargs):
        beta, gamma = (
            jnp.expand_dims(p, axes) if wanted else None
            for p, wanted in zip(params, (center, scale), strict=True)
        )
        result = standardize(x, axes, epsilon=epsilon)
        result = result if gamma is None else gamma * result
        return result if beta is None else result + beta

    return init, apply


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """A layer without parameters that applies a function to every number.

    >>> from purax.example_libraries import stax
    >>> float(stax.elementwise(lambda x: 2 * x)[1]((), 3.0))
    6.0
    """
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(
        inputs, **fun_kwargs
    )


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)


def _pooling(combine: Callable, start: float, average: bool = False) -> Callable[..., Layer]:
    def pool(
        window_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """A layer that makes one number of each window in space.

        Args:
            window_shape: the extent of a window.
            strides: 1 by default.
            padding: "VALID", "SAME" or pairs of numbers for all axes.
            spec: the layout of the inputs, such as "NHWC", which is the default.
        """
        window = tuple(finite(window_shape))
        steps = tuple(finite(strides or (1,) * len(window)))
        if not isinstance(spec, (str, type(None))):
            raise located(TypeError, f"spec must be a text such as 'NHWC', got {shown(spec)}")
        places = sorted((spec.index("N"), spec.index("C"))) if spec else (0, len(window) + 1)
        for i in places:
            window, steps = (*window[:i], 1, *window[i:]), (*steps[:i], 1, *steps[i:])

        def reduce(x):
            total = lax.reduce_window(x, start, combine, window, steps, padding)
            if not average:
                return total
            # Numbers that padding added do not count.
            return total / lax.reduce_window(jnp.ones(x.shape, x.dtype), 0.0, lax.add, window, steps, padding)

        return (
            lambda rng, input_shape: (shape_of(reduce, input_shape), ()),
            lambda params, inputs, **kwargs: reduce(inputs),
        )

    return pool


MaxPool = _pooling(lax.max, -math.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, average=True)

Flatten: Layer = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)),
)
Identity: Layer = (lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: inputs)
FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(jnp.add, inputs),
)


def FanOut(num: int) -> Layer:
    """Gives its input `num` times, for `parallel`."""
    return lambda rng, input_shape: ([input_shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


def FanInConcat(axis: int = -1) -> Layer:
    """Joins several inputs along an axis."""

    def init(rng, input_shape):
        place = axis % len(input_shape[0])
        joined = sum(shape[place] for shape in input_shape)
        return (*input_shape[0][:place], joined, *input_shape[0][place + 1 :]), ()

    return init, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keeps each number with probability `rate`, divided by it, and makes the others zero.

    Args:
        rate: the share of numbers that stay.
        mode: "train"; in any other mode inputs pass as they are.
    """

    def apply(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout needs random numbers: call apply(params, inputs, rng=key)")
        if mode != "train":
            return inputs
        kept = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(kept, inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply


def serial(*layers: Layer) -> Layer:
    """Layers one after the other.

    Args:
        layers: pairs of functions.
    """

    def init(rng, input_shape):
        params = []
        for layer_init, _ in layers:
            rng, key = random.split(rng)
            input_shape, of_layer = layer_init(key, input_shape)
            params.append(of_layer)
        return input_shape, params

    def apply(params, inputs, **kwargs):
        for (_, layer_apply), of_layer, key in zip(layers, params, _keys(kwargs, len(layers)), strict=True):
            inputs = layer_apply(of_layer, inputs, **{**kwargs, "rng": key})
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers side by side, from a sequence of inputs to a list of results, often between `FanOut` and `FanInSum`.

    Args:
        layers: pairs of functions.
    """

    def init(rng, input_shape):
        keys = random.split(rng, len(layers))
        made = [layer[0](key, shape) for layer, key, shape in zip(layers, keys, input_shape, strict=True)]
        return [shape for shape, _ in made], [params for _, params in made]

    def apply(params, inputs, **kwargs):
        parts = zip(layers, params, inputs, _keys(kwargs, len(layers)), strict=True)
        return [layer[1](p, x, **{**kwargs, "rng": key}) for layer, p, x, key in parts]

    return init, apply


def _keys(kwargs: dict[str, Any], count: int) -> Any:
    """A key for each layer, or None for each."""
    rng = kwargs.get("rng")
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made when the shape of its inputs is known.

    Args:
        make_layer: from the shape of the inputs to a layer.
    """
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
