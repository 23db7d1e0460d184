"""Functions for neural networks, as `jax.nn`."""

# ruff: noqa: F401
from purax.nn import initializers
from purax.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from purax.nn.attention import dot_product_attention
from purax.nn.normalization import (
    log_softmax,
    logmeanexp,
    logsumexp,
    one_hot,
    softmax,
    standardize,
)
from purax.nn.quantized_products import get_scaled_dot_general_config, scaled_dot_general
from purax.nn.scaled_products import scaled_matmul
