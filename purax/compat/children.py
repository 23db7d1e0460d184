"""Child processes: Python processes that a program starts resolve `import jax` as their parent does.

The environment says so: `PURAX_COMPAT_JAX=1`, and a folder on `PYTHONPATH` whose `sitecustomize` module puts a small
finder in place, which loads purax only when jax is imported. Children started with `-I` or `-E` ignore it.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

VARIABLE = "PURAX_COMPAT_JAX"
FOLDER = str(Path(__file__).parent / "child_site")


def prepare(environment: MutableMapping[str, str] | None = None) -> None:
    """Sets, in `environment` (default: that of this process), what child processes need."""
    variables = os.environ if environment is None else environment
    variables[VARIABLE] = "1"
    folders = [folder for folder in variables.get("PYTHONPATH", "").split(os.pathsep) if folder]
    if FOLDER not in folders:
        variables["PYTHONPATH"] = os.pathsep.join([FOLDER, *folders])
