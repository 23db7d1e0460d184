"""LSTM networks of several layers and directions, over sequences of different lengths, as cuDNN computes them.

The weights are one vector, in cuDNN's order: for each layer and direction the matrices of the input and of the state,
then for each the two biases; the gates of a matrix stand in the order input, forget, cell, output. Everything is a
`scan` over time, so that it runs and differentiates on every platform.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from purax import lax, random
from purax import numpy as jnp
from purax.api.autodiff import vjp
from purax.core.array import Array
from purax.core.source import located
from purax.nn.activations import sigmoid, tanh

__all__ = [
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_bwd",
    "lstm_fwd",
    "lstm_ref",
    "sigmoid",
    "swap_lstm_gates",
    "tanh",
    "unpack_lstm_weights",
]

Weights = dict[int, Array]


def _parts(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """What the vector of weights holds, in its order: the kind (W_ih, W_hh, b_ih, b_hh), the layer, the shape."""
    directions = 2 if bidirectional else 1
    layers = range(num_layers * directions)
    for layer in layers:
        width = input_size if layer < directions else hidden_size * directions
        yield 0, layer, (4 * hidden_size, width)
        yield 1, layer, (4 * hidden_size, hidden_size)
    for layer in layers:
        yield 2, layer, (4 * hidden_size,)
        yield 3, layer, (4 * hidden_size,)


def _size(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """How many weights an LSTM has.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers.
        bidirectional: whether each layer also reads backwards.

    >>> from purax.experimental.rnn import get_num_params_in_lstm
    >>> get_num_params_in_lstm(3, 4, 2, True)
    736
    """
    parts = _parts(input_size, hidden_size, num_layers, bidirectional)
    return sum(_size(shape) for _, _, shape in parts)


def init_lstm_weight(
    rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Weights drawn from U(−k, k) with k = 1/√hidden_size.

    Args:
        rng: a random key.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers.
        bidirectional: whether each layer also reads backwards.
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    k = jnp.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (count,), jnp.float32, minval=-k, maxval=k)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Weights, Weights, Weights, Weights]:
    """The single matrices and biases of a vector of weights.

    Args:
        weights: the vector.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers.
        bidirectional: whether each layer also reads backwards.

    Returns:
        W_ih, W_hh, b_ih and b_hh, each by the number of layer and direction: layer · directions + direction.
    """
    found: tuple[Weights, Weights, Weights, Weights] = ({}, {}, {}, {})
    place = 0
    for kind, layer, shape in _parts(input_size, hidden_size, num_layers, bidirectional):
        found[kind][layer] = weights[place : place + _size(shape)].reshape(shape)
        place += _size(shape)
    return found


def swap_lstm_gates(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """The weights with the gates of the cell and of the output exchanged: the order of MIOpen, for AMD's GPUs.

    Args:
        weights: the vector.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers.
        bidirectional: whether each layer also reads backwards.
    """
    weights = jnp.asarray(weights)
    pieces, place = [], 0
    for _, _, shape in _parts(input_size, hidden_size, num_layers, bidirectional):
        gates = weights[place : place + _size(shape)].reshape(4, -1)
        pieces.append(jnp.concatenate([gates[:2], gates[3:], gates[2:3]]).reshape(-1))
        place += _size(shape)
    return jnp.concatenate(pieces)


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """An LSTM over a batch of sequences, each read up to its own length.

    Args:
        x: the sequences, of shape (batch, longest, input_size).
        h_0: the first states, of shape (layers · directions, batch, hidden_size).
        c_0: the first cells, of the same shape.
        weights: the vector of weights, see `get_num_params_in_lstm`.
        seq_lengths: the length of each sequence.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers.
        dropout: only 0: what is dropped would have to depend on a key, and none is given.
        bidirectional: whether each layer also reads backwards.
        precision: of the matrix products, as in `lax.dot`.

    Returns:
        The outputs, of shape (batch, longest, directions · hidden_size), which are 0 past the end of a sequence; the
        last states; the last cells.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental import rnn
    >>> weights = rnn.init_lstm_weight(px.random.key(0), 3, 4, 1, False)
    >>> h = jnp.zeros((1, 2, 4))
    >>> y, h_n, c_n = rnn.lstm(jnp.ones((2, 5, 3)), h, h, weights, jnp.array([5, 3]), 3, 4, 1, 0.0, False)
    >>> y.shape, bool((y[1, 2] == h_n[0, 1]).all()), float(abs(y[1, 3:]).max())
    ((2, 5, 4), True, 0.0)
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, parts, seq_lengths, num_layers, dropout, bidirectional, precision)


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: Weights,  # noqa: N803
    W_hh: Weights,  # noqa: N803
    b_ih: Weights,
    b_hh: Weights,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """`lstm` of unpacked weights.

    Args:
        x: the sequences, of shape (batch, longest, input_size).
        h_0: the first states, of shape (layers · directions, batch, hidden_size).
        c_0: the first cells, of the same shape.
        W_ih: the matrices of the inputs, by layer and direction.
        W_hh: the matrices of the states.
        b_ih: the biases of the inputs.
        b_hh: the biases of the states.
        seq_lengths: the length of each sequence.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers.
        dropout: only 0.
        bidirectional: whether each layer also reads backwards.

    Returns:
        The outputs, the last states, the last cells.
    """
    if (given := W_ih[0].shape) != (4 * hidden_size, input_size):
        raise located(
            ValueError,
            f"lstm_ref: W_ih[0] has the shape {given}, input_size={input_size} and hidden_size={hidden_size} "
            f"want {(4 * hidden_size, input_size)}",
        )
    parts = (W_ih, W_hh, b_ih, b_hh)
    return _layers(x, h_0, c_0, parts, seq_lengths, num_layers, dropout, bidirectional, None)


def _layers(
    x: Array,
    h_0: Array,
    c_0: Array,
    parts: tuple[Weights, Weights, Weights, Weights],
    seq_lengths: Array,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any,
) -> tuple[Array, Array, Array]:
    if dropout != 0:
        raise located(
            ValueError,
            f"lstm: dropout={dropout} would need a random key, which lstm does not take. Write dropout=0.0, run "
            "the layers one by one, and drop between them with purax.random.bernoulli.",
        )
    directions = 2 if bidirectional else 1
    states, cells = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            one = tuple(kind[i] for kind in parts)
            y, h, c = _one_layer(x, h_0[i], c_0[i], one, seq_lengths, direction == 1, precision)
            outputs.append(y)
            states.append(h)
            cells.append(c)
        x = jnp.concatenate(outputs, axis=-1)
    return x, jnp.stack(states), jnp.stack(cells)


def _one_layer(
    x: Array, h_0: Array, c_0: Array, weights: Any, lengths: Array, is_backward: bool, precision: Any
) -> tuple[Array, Array, Array]:
    """One layer in one direction; steps past the end of a sequence leave its state alone and give 0."""
    w_ih, w_hh, b_ih, b_hh = weights
    # The products with the inputs do not wait for the state, so they are one product.
    inputs = jnp.matmul(x, w_ih.T, precision=precision) + (b_ih + b_hh)
    steps = jnp.arange(x.shape[1])
    valid = steps[:, None] < lengths[None, :]

    def step(carry: tuple[Array, Array], now: tuple[Array, Array]) -> Any:
        h, c = carry
        given, is_valid = now
        gates = given + jnp.matmul(h, w_hh.T, precision=precision)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        new_c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        new_h = sigmoid(o) * tanh(new_c)
        keep = is_valid[:, None]
        return (jnp.where(keep, new_h, h), jnp.where(keep, new_c, c)), jnp.where(keep, new_h, 0)

    # Read backwards, what lies past the end comes first and leaves the first state as it is.
    over_time = jnp.swapaxes(inputs, 0, 1), valid
    (h, c), y = lax.scan(step, (h_0, c_0), over_time, reverse=is_backward)
    return jnp.swapaxes(y, 0, 1), h, c


def lstm_fwd(
    x: Array,
    h_0: Array,
    c_0: Array,
    w: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any,
) -> tuple[tuple[Array, Array, Array], Any]:
    """`lstm`, and what `lstm_bwd` needs of it.

    Args:
        x: the sequences.
        h_0: the first states.
        c_0: the first cells.
        w: the vector of weights.
        seq_lengths: the length of each sequence.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers.
        dropout: only 0.
        bidirectional: whether each layer also reads backwards.
        precision: of the matrix products.
    """
    options = (input_size, hidden_size, num_layers, dropout, bidirectional, precision)
    results = lstm(x, h_0, c_0, w, seq_lengths, *options)
    return results, (x, h_0, c_0, w, seq_lengths)


def lstm_bwd(
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any,
    residuals: Any,
    gradients: Any,
) -> tuple[Array, Array, Array, Array, None]:
    """The cotangents of the arguments of `lstm`, from those of its results.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers.
        dropout: only 0.
        bidirectional: whether each layer also reads backwards.
        precision: of the matrix products.
        residuals: from `lstm_fwd`.
        gradients: the cotangents of outputs, states and cells.

    Returns:
        Those of `x`, `h_0`, `c_0` and `w`; None for the lengths.
    """
    *arrays, lengths = residuals

    def run(x: Array, h_0: Array, c_0: Array, w: Array) -> Any:
        options = (input_size, hidden_size, num_layers, dropout, bidirectional, precision)
        return lstm(x, h_0, c_0, w, lengths, *options)

    _, pull_back = vjp(run, *arrays)
    dx, dh, dc, dw = pull_back(tuple(gradients))
    return dx, dh, dc, dw, None
