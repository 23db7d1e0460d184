"""Builds what of purax is not Python, if there is a compiler: the native kernels, and the extensions in C.

All else is in pyproject.toml. Everything here is optional: what goes wrong is reported, and the package is installed
without it. Without a compiler, or with PURAX_PURE_PYTHON=1, the package is one of Python alone, and its wheel says so.
The kernels need jaxlib's headers and know nothing of Python, so one library serves every version of it, and
every jaxlib that is not older than the headers, of which pyproject.toml asks for the oldest. It uses the instructions
that every processor of its kind has; kernels for which newer ones are faster hold versions for them, and choose when
they run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = Path("purax/native")
# Options for builds that look for errors while they run (tools/sanitize.py); they come last, and so prevail.
SANITIZERS = os.environ.get("PURAX_SANITIZERS", "").split()


class Kernels(Extension):
    """The kernels: a plain shared library."""

    def __init__(self) -> None:
        super().__init__("purax.native.kernels", sorted(map(str, SOURCES.glob("*.cc"))), optional=True)
        self.depends = sorted(map(str, SOURCES.glob("*.h")))
        self.language = "c++"
        self.extra_compile_args = [
            "-std=c++17", "-O3", "-g0", "-fvisibility=hidden", "-fno-math-errno", "-Wall",
            f'-DPURAX_BUILD="{build_name()}"', *SANITIZERS,
        ]  # fmt: skip
        self.extra_link_args = SANITIZERS


def build_name() -> str:
    """A name for the sources and the interface, which compiled programs that call the kernels are kept under."""
    digest = hashlib.sha256()
    folder = include_folder()
    interface = [] if folder is None else [Path(folder, "xla/ffi/api/c_api.h")]
    for path in sorted(SOURCES.glob("*.cc")) + sorted(SOURCES.glob("*.h")) + interface:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def include_folder() -> str | None:
    """Where jaxlib, which is not imported, keeps the headers of XLA's foreign function interface."""
    found = importlib.util.find_spec("jaxlib")
    if found is None or found.origin is None:
        return None
    folder = os.path.join(os.path.dirname(found.origin), "include")
    return folder if os.path.isdir(folder) else None


class BuildKernels(build_ext):
    """Builds files side by side; extensions that cannot be built are left out, with a line that says why."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = os.cpu_count()

    def build_extensions(self) -> None:
        one_after_the_other = self.compiler.compile

        def compile_side_by_side(sources: list[str], *args: Any, **kwargs: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                parts = pool.map(lambda source: one_after_the_other([source], *args, **kwargs), sources)
                return [name for part in parts for name in part]

        self.compiler.compile = compile_side_by_side
        kernels = Path(self.get_ext_fullpath("purax.native.kernels"))
        if kernels.exists() and build_name().encode() not in kernels.read_bytes():
            self.force = True  # newer than the sources perhaps, but of other headers
        super().build_extensions()

    def build_extension(self, extension: Extension) -> None:
        if isinstance(extension, Kernels):
            folder = include_folder()
            if folder is None:
                self.warn(f"{extension.name} is not built: jaxlib's headers were not found")
                return
            extension.extra_compile_args += ["-isystem", folder]
        super().build_extension(extension)

    def get_ext_filename(self, name: str) -> str:
        if name.rpartition(".")[2] == "kernels":
            return os.path.join(*name.split(".")) + ".so"
        return super().get_ext_filename(name)

    def get_export_symbols(self, extension: Extension) -> list[str]:
        return [] if isinstance(extension, Kernels) else super().get_export_symbols(extension)


def python_extensions() -> list[Extension]:
    """The extensions of Python: every `_name.c` is a module of its folder's package."""
    headers = sorted(map(str, Path("purax").rglob("_*.h")))
    return [
        Extension(
            ".".join(path.with_suffix("").parts), [str(path)], depends=headers, optional=True,
            extra_compile_args=SANITIZERS, extra_link_args=SANITIZERS,
        )
        for path in sorted(Path("purax").rglob("_*.c"))
    ]  # fmt: skip


def reason_for_python_alone() -> str | None:
    """Why nothing is compiled, if nothing can be or shall be: known before the wheel gets its tag."""
    if os.environ.get("PURAX_PURE_PYTHON") == "1":
        return "PURAX_PURE_PYTHON=1"
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC")
    if not compiler:
        return "this Python knows no C compiler"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "tried.c")
        source.write_text("#include <Python.h>\n")
        includes = [f"-I{sysconfig.get_path(kind)}" for kind in ("include", "platinclude")]
        command = [*shlex.split(compiler), *includes, "-c", str(source), "-o", str(source.with_suffix(".o"))]
        try:
            tried = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            return f"no C compiler: {error}"
    said = (tried.stderr or "it fails without a word").strip().splitlines()
    return f"the C compiler {compiler} does not work: {said[0]}" if tried.returncode else None


reason = reason_for_python_alone()
if reason is not None:
    print(f"purax: built without native code, so that calls and sorts take longer: {reason}", file=sys.stderr)
setup(
    ext_modules=[] if reason is not None else [Kernels(), *python_extensions()],
    cmdclass={"build_ext": BuildKernels},
)
