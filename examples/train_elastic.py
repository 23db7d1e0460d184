"""Training that goes on when processes are lost: those that are left form a group again, in the same processes.

    purax launch -n 8 --elastic examples/train_elastic.py --folder checkpoints --steps 60 --lose 3 5 --at 25

Processes 3 and 5 kill themselves in step 25. The others hear of it, form a group of six, make a mesh of it, put
the state of the last checkpoint on it, and end with the losses of six processes that start from that checkpoint. What
is made anew are XLA's clients; each process keeps its memory, its files and its values on the host.
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

import purax as px
from purax.experimental import multihost_utils
from purax.sharding import NamedSharding, PartitionSpec

sys.path.insert(0, str(Path(__file__).parent))
from train_processes import batch_of, initial_state, train_step


def train(folder: str, steps: int, every: int, lose: set[int], at: int) -> None:
    """Trains with the group as it is now, from the last checkpoint on."""
    mesh = px.make_mesh((px.device_count(),), ("data",))
    rows, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    saved: dict[str, Any] = {"step": 0, "state": initial_state()}
    if os.path.exists(os.path.join(folder, "manifest.json")):
        saved = px.checkpoints.load(folder)
    state = px.device_put(saved["state"], everywhere)
    for step in range(saved["step"], steps):
        if step == at and px.process_index() in lose:
            os.kill(os.getpid(), signal.SIGKILL)
        # As many examples as eight, six and four devices can share.
        x, y = (part[: 24 // len(mesh.devices) * len(mesh.devices)] for part in batch_of(step))
        state, loss = train_step(state, *px.device_put((x, y), rows))
        if px.process_index() == 0:
            print(f"step {step} with {mesh.size} devices, loss {float(loss).hex()}", flush=True)
        if (step + 1) % every == 0:
            px.checkpoints.save(folder, {"step": step + 1, "state": state}, wait=False)
    multihost_utils.sync_global_devices("the end")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", required=True, help="where the checkpoint lies")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--lose", type=int, nargs="*", default=[], help="processes that kill themselves")
    parser.add_argument("--at", type=int, default=25, help="the step in which they do")
    options = parser.parse_args()
    px.distributed.initialize()
    lose = set(options.lose)
    while True:
        try:
            train(options.folder, options.steps, options.every, lose, options.at)
            return
        except px.errors.ProcessLostError as error:
            before = px.distributed.reinitialize()
            lose = set()
            if px.process_index() == 0:
                print(f"lost: {str(error).partition(' Process')[0]}", flush=True)
                print(f"going on with processes {before}", flush=True)


if __name__ == "__main__":
    main()
