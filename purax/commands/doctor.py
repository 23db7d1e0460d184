"""`purax doctor`: what this installation consists of, what is slow or missing in it, and how to mend that.

Each section of the report is a function that yields findings. A finding is a line to show; one with a remedy is a
problem, and makes the exit status 1. A section that fails is a finding itself: the report never ends early.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from purax.compat.version import PURAX_VERSION
from purax.config import config
from purax.xla import client, disk_cache, jaxlib_api, native, plugins, private_files

USAGE = """usage: purax doctor

Shows versions, devices, native code, the cache of compiled programs and the flags in effect, and for everything that is
slow or missing how to mend it. The exit status is 1 if there is something to mend."""

PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Finding:
    """A line of the report, with what to do if something is wrong."""

    name: str
    text: str
    remedy: str | None = None


def versions() -> Iterator[Finding]:
    """The packages that purax stands on."""
    yield Finding("purax", f"{PURAX_VERSION} in {PACKAGE}")
    yield Finding("Python", f"{platform.python_version()} in {sys.executable}")
    for name in ("jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum"):
        try:
            yield Finding(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, "not installed", f"pip install {name}")
    yield Finding("machine", f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} processors")


def devices() -> Iterator[Finding]:
    """What there is to compute on, and what could be but is not."""
    for device in client.devices():
        default = "  (default)" if device == client.default_device() else ""
        yield Finding(f"{device.platform}:{device.id}", f"{device.device_kind}{default}")
    for name, plugin in plugins.find_plugins().items():
        version = _version_of(plugin.package)
        problem = None
        if version is not None and version != jaxlib_api.version and name in ("cuda", "rocm"):
            problem = f"pip install a plugin of version {jaxlib_api.version}, that of jaxlib"
        yield Finding(f"plugin for {name}", f"{plugin.library} {version or ''}".strip(), problem)
    for name in ("cuda", "rocm", "tpu"):
        if name not in plugins.find_plugins() and plugins.has_device(name):
            hint = plugins.missing_plugin_hint(name)
            yield Finding(name, "there seems to be a device, and no plugin for it", hint.strip())


def _version_of(package: str) -> str | None:
    """The version of the distribution that a plugin came with."""
    name = package.rpartition(".")[2].replace("xla_", "jax-").replace("_", "-") + "-plugin"
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def native_code() -> Iterator[Finding]:
    """The kernels in C++ and the extensions in C, without which everything works, more slowly."""
    build = native.build()
    if build is None:
        yield Finding("kernels", "missing: sorts, convolutions and decompositions use XLA's", _BUILD)
    else:
        yield Finding("kernels", f"build {build}, for {native.instruction_set()}")
        if not config.native_kernels:
            yield Finding("kernels", "switched off by native_kernels=False", "unset PURAX_NATIVE_KERNELS")
    missing = []
    for path in sorted(PACKAGE.rglob("_*.c")):
        name = ".".join((PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts))
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if missing:
        yield Finding(
            "extensions", f"missing: {', '.join(missing)}: small calls cost 2 to 4 times as much", _BUILD
        )
    else:
        yield Finding("extensions", "calls and small operations run in C")


_BUILD = "install a C++ compiler (apt install g++), then: pip install --force-reinstall --no-deps purax"


def cache() -> Iterator[Finding]:
    """The compiled programs on disk."""
    folder = disk_cache.folder()
    if folder is None:
        yield Finding("folder", "none: every process compiles anew", "unset PURAX_ENABLE_COMPILATION_CACHE")
        return
    if not os.path.isdir(folder):
        yield Finding("folder", f"{folder} (made when the first program is kept)")
        return
    entries = [entry.stat().st_size for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    yield Finding("folder", f"{folder}: {len(entries)} files, {sum(entries) / 2**20:.1f} MB")
    try:
        private_files.check_folder(folder)
    except OSError as error:
        yield Finding(
            "trust", f"it is not used: {error}", "set PURAX_COMPILATION_CACHE_DIR to a folder of your own"
        )
    if not os.access(folder, os.W_OK):
        yield Finding("access", "it cannot be written: new programs are not kept", f"chmod u+w {folder}")
    yield Finding("to clear it", f"delete the folder: {folder}")


def flags() -> Iterator[Finding]:
    """Flags that are not at their defaults, and the environment that is read."""
    values = config.values
    changed = [name for name, flag in config.flags.items() if values[name] != flag.default]
    for name in changed:
        yield Finding(name, f"{values[name]!r} (default {config.flags[name].default!r})")
    if not changed:
        yield Finding("flags", "all at their defaults")
    for name in sorted(os.environ):
        if name.startswith(("PURAX_", "JAX_", "XLA_", "CUDA_VISIBLE", "TF_CPP", "OMP_NUM", "OPENBLAS_NUM")):
            yield Finding(name, os.environ[name])
    for name, flag, cost in _SLOW:
        if values.get(name) == flag:
            yield Finding(name, cost, f"unset PURAX_{name.upper()}")


# Flags that help to find errors, and what they cost.
_SLOW = (
    ("disable_jit", True, "nothing is compiled"),
    ("debug_nans", True, "every result is waited for and looked at"),
    ("debug_infs", True, "every result is waited for and looked at"),
    ("check_jaxprs", True, "every program is checked when it is traced"),
    ("check_tracer_leaks", True, "garbage is collected after each trace"),
)

SECTIONS: dict[str, Callable[[], Iterator[Finding]]] = {
    "Versions": versions,
    "Devices": devices,
    "Native code": native_code,
    "Cache of compiled programs": cache,
    "Flags": flags,
}


def findings(section: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """What a section finds; that it failed, if it does."""
    try:
        yield from section()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        yield Finding(section.__name__, text, "the report could not go on here; please tell us of it")


def doctor(arguments: Sequence[str] = ()) -> int:
    """The command `purax doctor`; returns the exit status.

    Args:
        arguments: the words after `doctor`.
    """
    if arguments:
        print(USAGE, file=sys.stdout if arguments[0] in ("-h", "--help") else sys.stderr)
        return 0 if arguments[0] in ("-h", "--help") else 2
    problems = []
    for title, section in SECTIONS.items():
        print(title)
        for finding in findings(section):
            print(f"  {finding.name:24} {finding.text}")
            if finding.remedy is not None:
                print(f"  {'':24} -> {finding.remedy}")
                problems.append(finding)
    print(f"{len(problems)} to mend" if problems else "Nothing to mend.")
    return 1 if problems else 0
