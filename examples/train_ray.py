"""Data-parallel training over Ray actors, with purax's own collectives; an actor that dies is done without.

    python examples/train_ray.py --actors 3 --folder checkpoints --lose 1

Every actor is a process of a group: it joins with the address of the first one and its own number. When an actor dies,
Ray says so; fewer actors start, from the last checkpoint. `ray.init()` finds the cluster that it runs in.
"""

import argparse
import os
import signal
import socket
import sys
from pathlib import Path

import ray

sys.path.insert(0, str(Path(__file__).parent))


@ray.remote(num_cpus=1, max_restarts=0)
class Trainer:
    """One process of the group."""

    def address(self) -> str:
        """A place on this machine where the coordinator can listen."""
        with socket.socket() as probe:
            probe.bind(("", 0))
            return f"{ray.util.get_node_ip_address()}:{probe.getsockname()[1]}"

    def join(self, address: str, count: int, number: int, secret: str) -> None:
        import purax as px

        px.distributed.initialize(address, count, number, secret=secret)

    def train(self, folder: str, steps: int, lose_at: int | None) -> list[float]:
        """The losses of the steps that this actor has done."""
        import train_processes as example

        import purax as px
        from purax.sharding import NamedSharding, PartitionSpec

        mesh = px.make_mesh((px.device_count(),), ("data",))
        rows, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
        saved = {"step": 0, "state": example.initial_state()}
        if os.path.exists(os.path.join(folder, "manifest.json")):
            saved = px.checkpoints.load(folder)
        state, losses = px.device_put(saved["state"], everywhere), []
        for step in range(saved["step"], steps):
            if step == lose_at:
                os.kill(os.getpid(), signal.SIGKILL)
            x, y = (part[:30] for part in example.batch_of(step))
            state, loss = example.train_step(state, *px.device_put((x, y), rows))
            losses.append(float(loss))
            if (step + 1) % 5 == 0:
                px.checkpoints.save(folder, {"step": step + 1, "state": state})
        px.distributed.shutdown()
        return losses


def train(actors: int, folder: str, steps: int, lose: int | None) -> list[float]:
    """The losses of the last group: one that no actor of dies."""
    while actors:
        group = [Trainer.remote() for _ in range(actors)]
        try:
            address = ray.get(group[0].address.remote())
            secret = os.urandom(16).hex()
            ray.get([one.join.remote(address, actors, i, secret) for i, one in enumerate(group)])
            done = [
                one.train.remote(folder, steps, 17 if i == lose else None) for i, one in enumerate(group)
            ]
            return ray.get(done)[0]
        except ray.exceptions.RayError as error:
            print(f"a group of {actors} ended: {str(error).splitlines()[0]}")
            for one in group:
                ray.kill(one)
            actors, lose = actors - 1, None
    raise SystemExit("no actor is left")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--actors", type=int, default=3)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--lose", type=int, help="an actor that kills itself in step 17")
    options = parser.parse_args()
    ray.init(num_cpus=4, include_dashboard=False, configure_logging=False)
    folder = str(Path(options.folder).resolve())
    losses = train(options.actors, folder, options.steps, options.lose)
    print(f"{len(losses)} steps of the last group, loss {losses[-1]:.6f}")


if __name__ == "__main__":
    main()
