"""What a training step would cost on meshes of devices that this machine does not have, as the compiler reports it.

    python examples/plan_meshes.py --devices 256

The step of `train_transformer_parallel.py`, for a larger model, is compiled for virtual devices and never run: shapes
stand for the parameters, so it needs neither the devices nor their memory.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import purax as px
import purax.numpy as jnp
from purax.sharding import Mesh, NamedSharding
from purax.sharding import PartitionSpec as P

sys.path.insert(0, str(Path(__file__).parent))
from train_transformer_parallel import layouts, train_step

WIDTH, HEADS, LAYERS, LETTERS, LENGTH, BATCH = 1024, 16, 4, 4096, 256, 512


def shapes(layers: int) -> dict[str, Any]:
    block = {
        "query_key_value": (WIDTH, 3, HEADS, WIDTH // HEADS),
        "out": (HEADS, WIDTH // HEADS, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }
    return {"embedding": (LETTERS, WIDTH), "blocks": [block] * layers}


def compiled_for(mesh: Mesh, layers: int) -> Any:
    """The training step, compiled for the devices of a mesh."""
    cut = layouts(mesh, layers)
    parameters = px.tree.map(
        lambda sharding, shape: px.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding),
        cut,
        shapes(layers),
    )
    rows = NamedSharding(mesh, P("data"))
    text = px.ShapeDtypeStruct((BATCH, LENGTH + 1), jnp.int32, sharding=rows)
    return px.jit(train_step, out_shardings=(cut, None)).lower(parameters, text).compile()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=256)
    parser.add_argument("--layers", type=int, default=LAYERS)
    options = parser.parse_args()
    count = options.devices
    px.config.update("num_cpu_devices", count)
    print("    mesh  collectives  sent per device  parameters  temporary     flops")
    for model in (1, 4, 16):
        if count % model:
            continue
        program = compiled_for(px.make_mesh((count // model, model), ("data", "model")), options.layers)
        found, memory = program.collectives(), program.memory_analysis()
        print(
            f"{count // model:>4} x {model:<2}{sum(c.times for c in found):>11}"
            f"{sum(c.sent for c in found) / 2**20:>14.0f} MiB"
            f"{memory.argument_size_in_bytes / 2**20:>8.0f} MiB{memory.temp_size_in_bytes / 2**20:>7.0f} MiB"
            f"{program.cost_analysis()['flops'] / 1e9:>7.0f} G"
        )


if __name__ == "__main__":
    main()
