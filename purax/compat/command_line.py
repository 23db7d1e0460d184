"""The command `purax`: `purax run` runs a JAX program on purax, as `python` would run it.

purax run script.py [arguments]
purax run -m module [arguments]
purax run -c "code" [arguments]

`purax launch` starts a group of processes on this machine, and `purax devices` prints what there is to compute on.
"""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any

from purax.compat.finder import install
from purax.compat.version import JAX_VERSION, PURAX_VERSION
from purax.distributed.launcher import launch
from purax.xla import client, plugins

USAGE = f"""usage: purax run SCRIPT [ARGUMENT ...]
       purax run -m MODULE [ARGUMENT ...]
       purax run -c CODE [ARGUMENT ...]
       purax launch -n COUNT SCRIPT [ARGUMENT ...]
       purax devices
       purax --version

Runs a Python program in which `import jax` gives purax (the interface of jax {JAX_VERSION}), also in the processes
that it starts. JAX_* environment variables set the flags of jax.
`purax launch --help` tells how to start several processes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script `purax`; returns the exit status.

    Args:
        arguments: the words after `purax`; those of the command line when left out.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        print(f"purax {PURAX_VERSION}, the interface of jax {JAX_VERSION}")
        return 0
    if words in (["--help"], ["-h"], ["run", "--help"], ["run", "-h"]):
        print(USAGE)
        return 0
    if words[:1] == ["launch"]:
        return launch(words[1:])
    if words == ["devices"]:
        return print_devices()
    if len(words) < 2 or words[0] != "run":
        problem = "nothing to run" if not words or words == ["run"] else f"unknown command {words[0]!r}"
        print(f"purax: {problem}\n{USAGE}", file=sys.stderr)
        return 2
    if words[1] in ("-m", "-c") and len(words) < 3:
        print(f"purax: {words[1]} needs an argument\n{USAGE}", file=sys.stderr)
        return 2
    install()
    if words[1] == "-m":
        run_module(words[2], words[3:])
    elif words[1] == "-c":
        run_main(compile(words[2], "<string>", "exec"), ["-c", *words[3:]], "")
    else:
        run_script(words[1], words[2:])
    return 0


def print_devices() -> int:
    """The command `purax devices`: a line for each device, the default platform first."""
    default = client.default_backend()
    names = dict.fromkeys([default, *plugins.find_plugins(), "cpu"])
    shown: set[str] = set()
    for name in names:
        try:
            found = client.devices(name)
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if found[0].platform in shown:
            continue
        shown.add(found[0].platform)
        for device in found:
            memory = device.memory_stats() if device.platform != "cpu" else None
            limit = (memory or {}).get("bytes_limit")
            print(
                f"{device.platform}:{device.id}  {device.device_kind}"
                + (f"  {limit / 2**30:.1f} GiB" if limit else "")
                + (f"  process {device.process_index}" if client.process_count(name) > 1 else "")
                + ("  (default)" if device == client.default_device() else "")
            )
    return 0


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
