"""Training over several processes, with checkpoints from which a restart goes on as if nothing had happened.

    purax launch -n 4 examples/train_processes.py --folder checkpoints --steps 200
    srun -n 4 python examples/train_processes.py --folder checkpoints --steps 200

Each process has a part of every batch; the compiler puts the sum of the gradients over the processes into the step. If
a process dies, the others end with an error that names it. The same command again continues after the last checkpoint,
with exactly the losses of an undisturbed run. Without `purax launch` it trains on the devices of one process.
"""

import argparse
import os
import tempfile
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp
from purax.experimental import multihost_utils
from purax.sharding import NamedSharding, PartitionSpec

BATCH, INPUTS, HIDDEN = 32, 8, 16
# What `purax launch`, srun, mpirun, Kubeflow and Kubernetes tell the processes that they start.
LAUNCHED = ("PURAX_COORDINATOR_ADDRESS", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "RANK", "JOB_COMPLETION_INDEX")


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    """The data of a step: a function of its number alone, so that a restart sees the same."""
    random = np.random.default_rng(step)
    x = random.normal(size=(BATCH, INPUTS)).astype(np.float32)
    return x, np.sin(x.sum(axis=1, keepdims=True))


State = dict[str, dict[str, Any]]  # weights and momentum, each with an array for each name


def initial_state() -> State:
    random = np.random.default_rng(0)
    weights = {
        "w1": random.normal(size=(INPUTS, HIDDEN)).astype(np.float32) / np.sqrt(np.float32(INPUTS)),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": random.normal(size=(HIDDEN, 1)).astype(np.float32) / np.sqrt(np.float32(HIDDEN)),
    }
    return {"weights": weights, "momentum": {name: np.zeros_like(value) for name, value in weights.items()}}


def loss_of(weights: dict[str, Any], x: px.Array, y: px.Array) -> px.Array:
    hidden = jnp.tanh(x @ weights["w1"] + weights["b1"])
    return jnp.mean((hidden @ weights["w2"] - y) ** 2)


@px.jit
def train_step(state: State, x: px.Array, y: px.Array) -> tuple[State, px.Array]:
    loss, gradient = px.value_and_grad(loss_of)(state["weights"], x, y)
    momentum = px.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], gradient)
    weights = px.tree.map(lambda w, m: w - 0.05 * m, state["weights"], momentum)
    return {"weights": weights, "momentum": momentum}, loss


def save(folder: str, step: int, state: State) -> None:
    """Writes a checkpoint whole or not at all: to a file of another name, to the disk, and in place by one rename."""
    leaves = [(f"{kind}.{name}", x) for kind, part in state.items() for name, x in part.items()]
    arrays: dict[str, Any] = {name: np.asarray(x) for name, x in leaves}
    descriptor, path = tempfile.mkstemp(dir=folder, suffix=".part")
    with os.fdopen(descriptor, "wb") as file:
        np.savez(file, step=step, **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path, os.path.join(folder, "checkpoint.npz"))


def load(folder: str) -> tuple[int, State]:
    """The last checkpoint and the number of the step after it; the initial state if there is none."""
    state = initial_state()
    path = os.path.join(folder, "checkpoint.npz")
    if not os.path.exists(path):
        return 0, state
    with np.load(path) as data:
        for kind, part in state.items():
            for name in part:
                part[name] = data[f"{kind}.{name}"]
        return int(data["step"]) + 1, state


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", required=True, help="where the checkpoint lies")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    options = parser.parse_args()
    if any(name in os.environ for name in LAUNCHED):
        px.distributed.initialize()
    is_first = px.process_index() == 0
    print(f"process {px.process_index()} of {px.process_count()}, process id {os.getpid()}", flush=True)

    mesh = px.make_mesh((px.device_count(),), ("data",))
    rows, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    os.makedirs(options.folder, exist_ok=True)
    # Process 0 reads, and all get its values: their disks may differ.
    first, state = multihost_utils.broadcast_one_to_all(load(options.folder))
    state = px.device_put(state, everywhere)
    for step in range(int(first), options.steps):
        x, y = px.device_put(batch_of(step), rows)
        state, loss = train_step(state, x, y)
        if is_first:
            print(f"step {step} loss {float(loss).hex()} {float(loss):.6f}", flush=True)
            if (step + 1) % options.every == 0:
                save(options.folder, step, state)
    multihost_utils.sync_global_devices("the end")


if __name__ == "__main__":
    main()
