"""`make test-all`: all cases of all tests, on every supported Python, with the oldest and with the newest jaxlib.

Each combination has an environment of its own (.venv-3.12-newest, …), which `make` sets up as it does `.venv`. A Python
that is not on this machine is said to be missing and counts as a failure, unless `--pythons` leaves it out.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PYTHONS = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', REQUIREMENTS)
ENGINES = ("oldest", "newest")


def interpreter(version: str) -> str | None:
    """The Python of a version, from the path or from pyenv."""
    found = shutil.which(f"python{version}")
    if found is not None:
        return found
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    known = sorted(root.glob(f"{version}.*/bin/python"))
    return str(known[-1]) if known else None


def oldest_engine() -> str:
    """The least release of jaxlib that is allowed, and the jax of the same number that the tests compare with."""
    found = re.search(r'"jaxlib>=([\d.]+),', REQUIREMENTS)
    assert found is not None
    return found[1]


def run(python: str, version: str, engine: str, workers: int, arguments: str) -> bool:
    """Whether the suite passes in one environment."""
    folder = f".venv-{version}-{engine}"
    environment = dict(os.environ, ALL_CASES="1", ALL_EXAMPLES="1")
    if engine == "oldest":
        constraints = ROOT / f"{folder}.txt"
        constraints.write_text(f"jaxlib=={oldest_engine()}\njax=={oldest_engine()}\n", encoding="utf-8")
        environment["PIP_CONSTRAINT"] = str(constraints)
    # What is built in place is built for one Python.
    command = [
        "make",
        "test",
        f"PYTHON={python}",
        f"VENV={folder}",
        f"WORKERS={workers}",
        f"ARGS={arguments}",
    ]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pythons", default=",".join(PYTHONS), help="versions, with commas between them")
    parser.add_argument("--engines", default=",".join(ENGINES), help="oldest, newest, or both")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--pytest", default="", help="arguments of pytest")
    options = parser.parse_args()
    results = {}
    for version in options.pythons.split(","):
        python = interpreter(version)
        for engine in options.engines.split(","):
            name = f"Python {version}, {engine} jaxlib"
            if python is None:
                results[name] = "this Python is not here"
                continue
            print(f"== {name}", flush=True)
            passed = run(python, version, engine, options.workers, options.pytest)
            results[name] = "passed" if passed else "FAILED"
    print("\n".join(f"{name}: {result}" for name, result in results.items()))
    return 0 if set(results.values()) == {"passed"} else 1


if __name__ == "__main__":
    sys.exit(main())
