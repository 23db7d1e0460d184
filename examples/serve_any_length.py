"""A small language model served with prompts of 1 to 4,096 tokens: 13 compilations, and one exported artifact.

    python examples/serve_any_length.py --requests 60

`jit(dynamic=...)` pads a prompt to the next power of two and masks what it padded, so that results are those of the
prompt alone: each request is checked against the model at its own length as far as `--checks` says. The same function,
exported once with a symbolic length, serves all prompts from one file.
"""

import argparse
import time
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp
from purax import nn

WORDS, WIDTH, HEADS, LAYERS, LONGEST = 256, 32, 4, 2, 4096

Weights = dict[str, Any]


def initial_weights() -> Weights:
    """Random weights."""
    keys = iter(px.random.split(px.random.key(0), 2 + 4 * LAYERS))

    def matrix(rows: int, columns: int) -> Any:
        return px.random.normal(next(keys), (rows, columns)) * rows**-0.5

    layers = [
        {
            "mix": matrix(WIDTH, 3 * WIDTH),
            "out": matrix(WIDTH, WIDTH),
            "up": matrix(WIDTH, 4 * WIDTH),
            "down": matrix(4 * WIDTH, WIDTH),
        }
        for _ in range(LAYERS)
    ]
    return {"words": matrix(WORDS, WIDTH), "end": matrix(WIDTH, WORDS), "layers": layers}


def normalized(x: px.Array) -> px.Array:
    """Each row with mean 0 and variance 1."""
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-6)


def next_word(tokens: Any, weights: Weights) -> Any:
    """The logits of the word after a prompt: a transformer that knows nothing of padding."""
    length = tokens.shape[0]
    place = jnp.arange(length)
    x = weights["words"][tokens] + jnp.sin(place[:, None] / 100 ** (jnp.arange(WIDTH) / WIDTH))
    sees = place[:, None] >= place[None, :]
    for layer in weights["layers"]:
        query, key, value = jnp.split(normalized(x) @ layer["mix"], 3, axis=1)
        parts = [
            nn.softmax(jnp.where(sees, q @ k.T / np.sqrt(WIDTH // HEADS), -jnp.inf)) @ v
            for q, k, v in zip(*(jnp.split(y, HEADS, axis=1) for y in (query, key, value)), strict=True)
        ]
        x = x + jnp.concatenate(parts, axis=1) @ layer["out"]
        x = x + nn.gelu(normalized(x) @ layer["up"]) @ layer["down"]
    return normalized(x[-1]) @ weights["end"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--longest", type=int, default=LONGEST)
    parser.add_argument("--checks", type=int, default=3, help="requests that are checked at their own length")
    options = parser.parse_args()

    weights = initial_weights()
    serve = px.jit(next_word, dynamic={"tokens": 0})
    generator = np.random.default_rng(0)
    # Short and long prompts alike: lengths are uniform in their logarithm, and both ends occur.
    lengths = np.exp(generator.uniform(0, np.log(options.longest), options.requests)).astype(int)
    lengths[:2] = 1, options.longest
    start, error = time.perf_counter(), 0.0
    for number, length in enumerate(lengths):
        prompt = generator.integers(0, WORDS, length)
        logits = np.asarray(serve(prompt, weights))
        if number >= options.requests - options.checks:
            error = max(error, float(np.abs(logits - np.asarray(px.jit(next_word)(prompt, weights))).max()))
    seconds = time.perf_counter() - start
    print(f"{options.requests} prompts of {lengths.min()} to {lengths.max()} tokens in {seconds:.1f} s")
    print(f"compilations: {serve._cache_size()}")
    print(serve.explain_dynamic())
    print(f"largest difference from the model at the prompt's own length: {error:.1e}")

    (n,) = px.export.symbolic_shape("n", constraints=[f"n <= {options.longest}"])
    types = px.tree.map(lambda x: px.ShapeDtypeStruct(x.shape, x.dtype), weights)
    exported = px.export.export(px.jit(next_word))(px.ShapeDtypeStruct((n,), np.int32), types)
    artifact = exported.serialize()
    served = px.export.deserialize(artifact)
    for length in (3, 17):
        prompt = generator.integers(0, WORDS, length).astype(np.int32)
        np.testing.assert_allclose(served.call(prompt, weights), serve(prompt, weights), rtol=1e-3, atol=1e-4)
    print(f"one artifact of {len(artifact)} bytes serves them all: {exported.in_avals[0].str_short()}")


if __name__ == "__main__":
    main()
