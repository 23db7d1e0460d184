"""Runs tests on extensions and kernels that were built to look for errors: `make sanitize`.

A copy of the tree in `build/sanitize` is built with AddressSanitizer and UndefinedBehaviorSanitizer; the normal build
stays as it is. jaxlib, NumPy and Python are not instrumented: what they do with our memory is seen only where they call
the C library. The pool of threads is tried by a program of its own, under ThreadSanitizer. Arguments go to pytest, in
place of the tests that are listed here.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build/sanitize"
SANITIZERS = "-O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
TESTS = (
    "tests/xla/test_native_faults.py", "tests/xla/test_native.py", "tests/xla/test_native_arrays.py",
    "tests/xla/test_native_linalg.py", "tests/primitives/test_native_products.py",
    "tests/primitives/test_convolution_native.py",
    "tests/primitives/test_choose.py", "tests/primitives/test_top_k.py", "tests/primitives/test_gather_scatter.py",
    "tests/lowering/test_row_programs.py", "tests/execution/test_dispatch.py", "tests/execution/test_eager.py",
    "tests/execution/test_host_rules.py", "tests/core",
)  # fmt: skip


def copy_tree() -> None:
    """Copies what git knows of, or would; files that did not change keep their times, so that little is built again."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in names.stdout.splitlines():
        if (ROOT / name).is_file():
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, FOLDER / name)


def library(name: str) -> str:
    """The path of a library of the compiler."""
    found = subprocess.run(["cc", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return str(Path(found.stdout.strip()).resolve())


def run_tests(arguments: list[str]) -> int:
    environment = dict(
        os.environ,
        PYTHONPATH=str(FOLDER),
        # The C++ library comes along, since exceptions are watched from the start.
        LD_PRELOAD=" ".join(map(library, ("libasan.so", "libstdc++.so.6"))),
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0",
        UBSAN_OPTIONS="print_stacktrace=1",
        PYTHONMALLOC="malloc",  # else errors in Python's objects are hidden in its arenas
    )
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or TESTS)],
        cwd=FOLDER,
        env=environment,
    ).returncode


def run_threads() -> int:
    jaxlib = importlib.util.find_spec("jaxlib")
    assert jaxlib is not None and jaxlib.origin is not None
    program = FOLDER / "thread_pool"
    sources = [ROOT / "tests/xla/thread_pool.cc", ROOT / "purax/native/radix.cc"]
    options = ["-std=c++17", "-O1", "-g1", "-fsanitize=thread", "-pthread"]
    options += ["-isystem", str(Path(jaxlib.origin).parent / "include")]
    subprocess.run(["c++", *options, *sources, "-o", program], check=True)
    return subprocess.run([program], env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1"}).returncode


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    copy_tree()
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=FOLDER,
        env={**os.environ, "PURAX_SANITIZERS": SANITIZERS},
        check=True,
    )
    failed = run_threads()
    return run_tests(sys.argv[1:]) or failed


if __name__ == "__main__":
    sys.exit(main())
