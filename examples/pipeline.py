"""Pipeline-parallel training by `shard_map`: eight devices, each with one layer, work on different parts of a batch.

    python examples/pipeline.py --steps 20

A batch is cut into microbatches. At every tick each device applies its own layer to a microbatch and hands the result
to the next device (`ppermute`), so that after the first few ticks all of them work at once. The backward pipeline is
not written here: differentiating the forward one gives it. The losses are those of the same layers on one device.
"""

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp
from purax.sharding import Mesh, NamedSharding
from purax.sharding import PartitionSpec as P

STAGES, WIDTH, MICROBATCHES, EXAMPLES = 8, 32, 16, 4

Layers = dict[str, Any]
Apply = Callable[[Layers, px.Array], px.Array]
Step = Callable[..., tuple[Layers, px.Array]]


def initial_layers() -> Layers:
    """The layers, stacked along the first axis."""
    random = np.random.default_rng(0)
    weights = random.normal(size=(STAGES, WIDTH, WIDTH)) / np.sqrt(WIDTH)
    return {"w": weights.astype(np.float32), "b": np.zeros((STAGES, WIDTH), np.float32)}


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(step).normal(size=(MICROBATCHES, EXAMPLES, WIDTH)).astype(np.float32)
    return x, np.roll(x, 1, axis=-1)


def layer(parameters: Layers, x: px.Array) -> px.Array:
    return x + jnp.tanh(x @ parameters["w"] + parameters["b"])


def sequential(layers: Layers, x: px.Array) -> px.Array:
    """All layers one after the other."""
    return px.lax.scan(lambda x, parameters: (layer(parameters, x), None), x, layers)[0]


def pipelined(mesh: Mesh) -> Apply:
    """The same, with layer `i` on device `i` of the axis "stage"."""
    onwards = [(i, i + 1) for i in range(STAGES - 1)]

    def on_one_device(layers: Layers, x: px.Array) -> px.Array:
        own = px.tree.map(lambda stack: stack[0], layers)
        stage = px.lax.axis_index("stage")
        outputs = px.lax.pcast(jnp.zeros_like(x), "stage", to="varying")
        waiting = px.lax.pcast(jnp.zeros_like(x[0]), "stage", to="varying")

        def tick(carry: tuple[px.Array, px.Array], t: px.Array) -> tuple[tuple[px.Array, px.Array], None]:
            waiting, outputs = carry
            fresh = x[jnp.minimum(t, MICROBATCHES - 1)]
            done = layer(own, jnp.where(stage == 0, fresh, waiting))
            # Microbatch m comes to stage s at tick m + s; what comes earlier or later is not used.
            m = jnp.clip(t - (STAGES - 1), 0, MICROBATCHES - 1)
            arrived = (stage == STAGES - 1) & (t >= STAGES - 1)
            outputs = outputs.at[m].set(jnp.where(arrived, done, outputs[m]))
            return (px.lax.ppermute(done, "stage", onwards), outputs), None

        ticks = jnp.arange(MICROBATCHES + STAGES - 1)
        (_, outputs), _ = px.lax.scan(tick, (waiting, outputs), ticks)
        result: px.Array = px.lax.psum(outputs, "stage")  # zeros on all but the last device
        return result

    return px.shard_map(on_one_device, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())


def trainer(apply: Apply) -> Any:
    @px.jit
    def step(layers: Layers, x: px.Array, y: px.Array) -> tuple[Layers, px.Array]:
        loss, gradient = px.value_and_grad(lambda layers: jnp.mean((apply(layers, x) - y) ** 2))(layers)
        return px.tree.map(lambda p, g: p - 0.05 * g, layers, gradient), loss

    return step


def train(steps: int, step: Step, layers: Layers) -> list[float]:
    losses = []
    for i in range(steps):
        layers, loss = step(layers, *batch_of(i))
        losses.append(float(loss))
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args().steps
    if "device_count" not in os.environ.get("XLA_FLAGS", ""):
        px.config.update("num_cpu_devices", STAGES)  # before the first operation
    expected = train(steps, trainer(sequential), initial_layers())
    mesh = px.make_mesh((STAGES,), ("stage",))
    layers = px.device_put(initial_layers(), NamedSharding(mesh, P("stage")))
    step = trainer(pipelined(mesh))
    losses = train(steps, step, layers)
    difference = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
    print(f"one device: loss {expected[0]:.4f} -> {expected[-1]:.4f}")
    print(f"{STAGES} stages:   loss {losses[0]:.4f} -> {losses[-1]:.4f}, differs by {difference:.1e}")
    for c in step.lower(layers, *batch_of(0)).compile().collectives():
        print(f"  {c.kind} of {c.bytes} bytes among {c.devices} devices, {c.times} times a step")
    assert difference < 1e-5, "the pipeline gives other losses than one device"


if __name__ == "__main__":
    main()
