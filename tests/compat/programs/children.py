"""Processes that a program starts resolve jax in the same way."""

import multiprocessing
import os
import subprocess
import sys


def square_sum(n):
    import jax.numpy as jnp

    return int(jnp.sum(jnp.arange(n) ** 2)), jnp.__class__.__name__


if __name__ == "__main__":
    code = "import jax, sys; print(jax, 'purax' in sys.modules, sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, "one"], capture_output=True, text=True, cwd=os.sep, check=True
    )
    print(done.stdout.strip(), done.stderr.strip())
    code = "import sys; print('purax' in sys.modules)"
    print(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square_sum, [4]))
