"""Attention beside jax: run time, time to compile, and temporary memory, forwards and with derivatives.

    python -m bench.attention                     # on a CPU: all logits at once, tiles, and jax
    python -m bench.attention --backend cudnn     # on a GPU: cuDNN's kernels by purax and by jax, bfloat16

The calls of the libraries take turns, and each time is the best of several.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Batch, length, heads, width.
ON_CPU = (
    (8, 128, 8, 64), (1, 256, 8, 64), (16, 256, 8, 64), (1, 512, 1, 64), (1, 512, 16, 64), (2, 512, 8, 64),
    (1, 1024, 8, 64), (1, 2048, 8, 64),
)  # fmt: skip
ON_GPU = ((8, 1024, 16, 64), (4, 4096, 16, 128), (1, 16384, 16, 128))


def functions(library: Any, dtype: Any, size: Sequence[int], **options: Any) -> tuple[list[Any], list[Any]]:
    """Attention and its derivatives by a library, and their arguments."""
    generator = np.random.default_rng(0)
    arguments = [
        library.numpy.asarray(generator.normal(size=size).astype(np.float32)).astype(dtype) for _ in range(3)
    ]

    def forward(q: Any, k: Any, v: Any) -> Any:
        return library.nn.dot_product_attention(q, k, v, is_causal=True, **options)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return library.numpy.sum(library.numpy.sin(forward(q, k, v).astype(np.float32)))

    return [forward, library.grad(loss, argnums=(0, 1, 2))], arguments


def compiled(library: Any, function: Callable, arguments: Sequence[Any]) -> tuple[Callable, float, float]:
    """The compiled function, seconds of all threads for that, and megabytes that it needs."""
    start = time.process_time()
    made = library.jit(function).lower(*arguments).compile()
    seconds = time.process_time() - start
    return made, seconds, made.memory_analysis().temp_size_in_bytes / 2**20


def best_times(calls: Sequence[Callable[[], Any]], library: Any, turns: int) -> list[float]:
    """Seconds of each call, the best of several turns."""
    times = [float("inf")] * len(calls)
    for _ in range(turns):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            library.block_until_ready(call())
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", choices=("cpu", "cudnn"), default="cpu")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--long", action="store_true", help="also lengths at which all logits need gigabytes")
    given = parser.parse_args()
    import jax

    import purax
    from purax.nn import attention

    by_cudnn = given.backend == "cudnn"
    dtype = "bfloat16" if by_cudnn else "float32"
    options = {"implementation": "cudnn"} if by_cudnn else {}
    few = attention._FEWEST
    kinds = [("purax, cuDNN", purax, few), ("jax, cuDNN", jax, few), ("purax, chosen", purax, few)]
    if not by_cudnn:
        kinds = [("all logits", purax, 1 << 60), ("tiles", purax, 1), ("jax", jax, few)]
    sizes = ON_GPU if by_cudnn else ON_CPU + ((1, 8192, 8, 64),) * given.long
    print(f"{'B, T, N, H':>20} {'':9} {'':14} {'ms':>9} {'compile s':>10} {'MB':>8}")
    for size in sizes:
        for part, what in enumerate(("forward", "gradient")):
            made = []
            for name, library, fewest in kinds:
                attention._FEWEST, attention._SHORTEST = fewest, 1 if fewest == 1 else 256
                attention._SHORTEST_FOR_CUDNN = 1 if fewest == 1 else 128
                own = {} if name == "purax, chosen" else options
                made_of, arguments = functions(library, dtype, size, **own)
                function, seconds, megabytes = compiled(library, made_of[part], arguments)
                made.append((lambda f=function, a=arguments: f(*a), seconds, megabytes))
            times = best_times([call for call, _, _ in made], jax, given.turns)
            for (name, _, _), seconds, (_, first, megabytes) in zip(kinds, times, made, strict=True):
                print(
                    f"{str(size):>20} {what:9} {name:14} {seconds * 1e3:9.2f} {first:10.2f} {megabytes:8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
