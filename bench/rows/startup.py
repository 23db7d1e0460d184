"""From a fresh interpreter to the first result: each sample is a new process, and the peers take turns.

The clock starts inside the child, after the interpreter is up, so that only the import and the work are counted. Disk
caches are off, but for the rows that say otherwise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.child import ChildError, cache_environment, run_code
from bench.measure import Options, failure_note
from bench.row import Bar, Group, Outcome, bar


@dataclass(frozen=True)
class Script:
    """A row of this group: the source text to time, by label."""

    name: str
    builders: dict[str, str]
    disk_cache: bool = False
    heavy: bool = False
    bars: tuple[Bar, ...] = field(default=())


def measure(group: Group, rows: list[Script], options: Options) -> Iterator[Outcome]:
    """Best time of each peer's script over fresh processes that take turns."""
    for row in rows:
        outcome = Outcome(group.name, row.name, bars=row.bars)
        labels = [label for label in row.builders if options.wants(label)]
        with tempfile.TemporaryDirectory() as folder:
            # The first turn is not counted: it fills file-system and bytecode caches, and the disk cache.
            for turn in range(1 if options.smoke else min(options.repeat, 7) + 1):
                for label in labels:
                    if label in outcome.notes:
                        continue
                    environment = cache_environment(label, folder if row.disk_cache else None)
                    try:
                        elapsed = run_code(row.builders[label], environment)
                    except ChildError as error:
                        outcome.notes[label] = failure_note(error)
                        outcome.costs.pop(label, None)
                        continue
                    if turn or options.smoke:
                        outcome.costs[label] = min(elapsed, outcome.costs.get(label, elapsed))
        yield outcome


group = Group("startup", "a fresh process, import included", measure, bars=(bar(0.5, "jax"),))


def script(
    name: str,
    text: str,
    *,
    torch: str = "",
    numpy: str = "",
    autograd: str = "",
    bars: tuple[Bar, ...],
    disk_cache: bool = False,
):
    """A row whose text for purax and jax differs in the name of the package only; `{px}` stands for it."""
    builders = {px: text.format(px=px) for px in ("purax", "jax")}
    builders |= {
        label: own for label, own in (("torch", torch), ("numpy", numpy), ("autograd", autograd)) if own
    }
    group.rows.append(Script(name, builders, bars=bars, disk_cache=disk_cache))


half = (bar(0.5, "jax"),)
script(
    "import",
    "import {px}",
    torch="import torch",
    numpy="import numpy",
    autograd="import autograd.numpy",
    bars=half,
)
script(
    "import + first operation",
    "import {px}.numpy as jnp\nx = jnp.ones(4) + 1.0\nassert float(x[0]) == 2.0",
    torch="import torch\nx = torch.ones(4) + 1.0\nassert float(x[0]) == 2.0",
    numpy="import numpy as np\nx = np.ones(4) + 1.0\nassert float(x[0]) == 2.0",
    bars=(bar(0.5, "jax", "base"),),
)
script(
    "first grad",
    "import {px}, {px}.numpy as jnp\n"
    "g = {px}.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2))(jnp.ones(4))\nassert g.shape == (4,)",
    torch="import torch\n"
    "g = torch.func.grad(lambda x: torch.sum(torch.tanh(x) ** 2))(torch.ones(4))\nassert g.shape == (4,)",
    autograd="import autograd, autograd.numpy as np\n"
    "g = autograd.grad(lambda x: np.sum(np.tanh(x) ** 2))(np.ones(4))\nassert g.shape == (4,)",
    bars=half,
)
first_jit = (
    "import {px}, {px}.numpy as jnp\nf = {px}.jit(lambda x: jnp.sin(x) @ x.T + 1.0)\n"
    "y = f(jnp.ones((2, 3))).block_until_ready()\nassert y.shape == (2, 2)"
)
script("first jit", first_jit, bars=half)
script("first jit, second process with the disk cache", first_jit, bars=half, disk_cache=True)
