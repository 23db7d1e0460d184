"""`purax run`: runs a JAX program on purax, as `python` would run it: a script, a module (`-m`) or code (`-c`)."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any

from purax.compat.finder import install
from purax.compat.version import JAX_VERSION
from purax.config import config
from purax.core import phases

USAGE = f"""usage: purax run [OPTION ...] SCRIPT [ARGUMENT ...]
       purax run [OPTION ...] -m MODULE [ARGUMENT ...]
       purax run [OPTION ...] -c CODE [ARGUMENT ...]

Runs a Python program in which `import jax` gives purax (the interface of jax {JAX_VERSION}), also in the processes
that it starts. JAX_* environment variables set the flags of jax. Random numbers are those of that version.

  --jax VERSION  random numbers as that version of jax draws them: before 0.5 keys gave other ones
  --timings      at the end, print what making the programs took: tracing, analysis, hashing, passes, lowering, XLA,
                 and loading them from disk"""


def run(words: Sequence[str]) -> int:
    """The command `purax run`; returns the exit status.

    Args:
        words: what follows `run` on the command line.
    """
    if list(words[:1]) in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if words and words[0].partition("=")[0] == "--jax":
        first, separator, version = words[0].partition("=")
        rest = list(words[1:]) if separator else list(words[2:])
        version = version if separator else "".join(words[1:2])
        if _has_partitionable_keys(version) is None:
            print(f"purax: --jax needs a version such as {JAX_VERSION}, got {version!r}\n{USAGE}", file=sys.stderr)
            return 2
        install()
        config.update("threefry_partitionable", _has_partitionable_keys(version))
        # for the processes that it starts, and their JAX_* variables
        os.environ["JAX_THREEFRY_PARTITIONABLE"] = str(_has_partitionable_keys(version))
        return run(rest)
    if list(words[:1]) == ["--timings"]:
        totals = phases.Totals()
        try:
            with phases.listening(totals):
                return run(words[1:])
        finally:
            if totals.programs:
                print(totals.report(), file=sys.stderr)
    problem = None
    if not words:
        problem = "nothing to run"
    elif words[0] in ("-m", "-c") and len(words) < 2:
        problem = f"{words[0]} needs an argument"
    elif words[0].startswith("-") and words[0] not in ("-m", "-c"):
        problem = f"unknown option {words[0]!r}"
    if problem is not None:
        print(f"purax: {problem}\n{USAGE}", file=sys.stderr)
        return 2
    install()
    if words[0] == "-m":
        run_module(words[1], words[2:])
    elif words[0] == "-c":
        run_main(compile(words[1], "<string>", "exec"), ["-c", *words[2:]], "")
    else:
        run_script(words[0], words[1:])
    return 0


def _has_partitionable_keys(version: str) -> bool | None:
    """Whether keys are partitionable by default in a version of jax; None for what is no version.

    >>> _has_partitionable_keys("0.10"), _has_partitionable_keys("0.4.30"), _has_partitionable_keys("x.py")
    (True, False, None)
    """
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        return None
    return tuple(map(int, version.split("."))) >= (0, 5)


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Runs a file, or a folder or archive with a `__main__.py`, as the program."""
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        sys.path[0] = path
        run_module("__main__", arguments, path)
        return
    try:
        with io.open_code(os.path.abspath(path)) as file:
            code = compile(file.read(), path, "exec")
    except OSError as error:
        print(f"purax: cannot open {path!r}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    run_main(code, [path, *arguments], os.path.dirname(os.path.realpath(path)), __file__=path)


def run_module(name: str, arguments: Sequence[str], path: str | None = None) -> None:
    """Runs a module, or the `__main__` of a package, as the program."""
    if path is None and not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    if name == "__main__":
        sys.modules.pop("__main__", None)
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name, spec = f"{name}.__main__", importlib.util.find_spec(f"{name}.__main__")
    code = None if spec is None or spec.loader is None else spec.loader.get_code(spec.name)  # type: ignore[attr-defined]
    if code is None or spec is None:
        print(f"purax: no module named {name}", file=sys.stderr)
        sys.exit(1)
    names = {"__file__": spec.origin, "__spec__": spec, "__package__": spec.parent}
    run_main(code, [path or str(spec.origin), *arguments], None, **names)


def run_main(code: CodeType, arguments: list[str], folder: str | None, **names: Any) -> None:
    """Runs code as `__main__`, with the command line and the first entry of the path that Python would give it."""
    sys.argv[:] = arguments
    if folder is not None and not sys.flags.safe_path:
        sys.path[0] = folder  # the place of the folder of the command itself
    program = ModuleType("__main__")
    program.__dict__.update({"__builtins__": __builtins__, "__spec__": None, "__package__": None, **names})
    sys.modules["__main__"] = program
    exec(code, program.__dict__)
