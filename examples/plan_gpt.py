"""How to shard the training of GPT-like models of 7, 70 and 400 billion parameters over devices that are not here.

    python examples/plan_gpt.py                        # all three
    python examples/plan_gpt.py 70 --mesh "256 H200" --sequences 512
    python examples/plan_gpt.py 70 --mesh "16x8 H200" --details

The step is that of a plain decoder: attention with rotary positions, a gated hidden layer, Adam in float32, products in
bfloat16, and layers that are computed again backwards. Nothing is allocated, compiled or run.
"""

import argparse
from typing import Any, NamedTuple

import purax as px
import purax.numpy as jnp


class Model(NamedTuple):
    layers: int
    width: int
    heads: int
    groups: int  # of heads that share keys and values
    hidden: int
    letters: int = 128256
    length: int = 4096


MODELS = {
    7: Model(layers=32, width=4096, heads=32, groups=32, hidden=11008, letters=32000),
    70: Model(layers=80, width=8192, heads=64, groups=8, hidden=28672),
    400: Model(layers=126, width=16384, heads=128, groups=8, hidden=53248),
}
PLACES = {7: ("64 H200", 256), 70: ("512 H200", 1024), 400: ("8192 TPU v5p", 4096)}


def state_of(model: Model) -> dict[str, Any]:
    """The types of parameters and of Adam's averages."""

    def array(*shape: int) -> px.ShapeDtypeStruct:
        return px.ShapeDtypeStruct(shape, jnp.float32)

    n, d, size = model.layers, model.width, model.width // model.heads
    layers = {
        "query": array(n, d, model.groups, model.heads // model.groups, size),
        "key": array(n, d, model.groups, size),
        "value": array(n, d, model.groups, size),
        "out": array(n, model.groups, model.heads // model.groups, size, d),
        "gate": array(n, d, model.hidden),
        "up": array(n, d, model.hidden),
        "down": array(n, model.hidden, d),
        "before": array(n, d),
        "between": array(n, d),
    }
    parameters: dict[str, Any] = {"letters": array(model.letters, d), "layers": layers, "last": array(d)}
    parameters["scores"] = array(d, model.letters)
    return {"parameters": parameters, "mean": parameters, "square": parameters, "count": array()}


def normalized(x: px.Array, scale: px.Array) -> px.Array:
    wide = x.astype(jnp.float32)
    wide = wide * px.lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + 1e-6)
    return (wide * scale).astype(x.dtype)


def rotated(x: px.Array) -> px.Array:
    """Turns pairs of features by angles that grow with the position."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] / 10000.0 ** (jnp.arange(half) / half)
    angles = angles.reshape(1, x.shape[1], *(1,) * (x.ndim - 3), half)
    a, b = x[..., :half], x[..., half:]
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


@px.checkpoint
def layer(x: px.Array, w: dict[str, px.Array]) -> px.Array:
    h = normalized(x, w["before"])
    query = rotated(jnp.einsum("bsd,dghk->bsghk", h, w["query"]))
    key = rotated(jnp.einsum("bsd,dgk->bsgk", h, w["key"]))
    value = jnp.einsum("bsd,dgk->bsgk", h, w["value"])
    scores = jnp.einsum("bsghk,btgk->bghst", query, key) / query.shape[-1] ** 0.5
    visible = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = px.nn.softmax(jnp.where(visible, scores, -1e9))
    mixed = jnp.einsum("bghst,btgk->bsghk", weights, value)
    x = x + jnp.einsum("bsghk,ghkd->bsd", mixed, w["out"])
    h = normalized(x, w["between"])
    return x + (px.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]


def loss_of(parameters: dict[str, Any], text: px.Array) -> px.Array:
    narrow = px.tree.map(lambda w: w.astype(jnp.bfloat16), parameters)
    x = narrow["letters"][text[:, :-1]]
    x, _ = px.lax.scan(lambda x, w: (layer(x, w), None), x, narrow["layers"])
    scores = (normalized(x, narrow["last"]) @ narrow["scores"]).astype(jnp.float32)
    found = jnp.take_along_axis(px.nn.log_softmax(scores), text[:, 1:, None], axis=-1)
    return -jnp.mean(found)


def train_step(state: dict[str, Any], text: px.Array) -> tuple[dict[str, Any], px.Array]:
    loss, gradient = px.value_and_grad(loss_of)(state["parameters"], text)
    count = state["count"] + 1
    mean = px.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradient)
    square = px.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, state["square"], gradient)

    def updated(p: px.Array, m: px.Array, v: px.Array) -> px.Array:
        step: px.Array = m / (1 - 0.9**count) / (jnp.sqrt(v / (1 - 0.95**count)) + 1e-8)
        return p - 3e-4 * (step + 0.1 * p)

    parameters = px.tree.map(updated, state["parameters"], mean, square)
    return {"parameters": parameters, "mean": mean, "square": square, "count": count}, loss


def planned(model: Model, mesh: str, sequences: int, count: int = 8) -> Any:
    text = px.ShapeDtypeStruct((sequences, model.length + 1), jnp.int32)
    return px.plan(train_step, mesh, state_of(model), text, count=count)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=int, default=list(MODELS))
    parser.add_argument("--mesh")
    parser.add_argument("--sequences", type=int)
    parser.add_argument("--details", action="store_true", help="what the best plan sends, and its picture")
    options = parser.parse_args()
    for size in options.models:
        mesh, sequences = PLACES[size]
        mesh, sequences = options.mesh or mesh, options.sequences or sequences
        plans = planned(MODELS[size], mesh, sequences)
        leaves = px.tree.leaves(state_of(MODELS[size])["parameters"])
        print(f"\n{sum(x.size for x in leaves) / 1e9:.1f} billion parameters, {sequences} sequences")
        print(plans)
        if options.details:
            print(plans.best)
            print(plans.best.picture())


if __name__ == "__main__":
    main()
