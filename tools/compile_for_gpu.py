"""Compiles every case of every primitive with XLA's compiler for NVIDIA GPUs, on a machine that need not have one.

    python tools/compile_for_gpu.py [names of files of tests/cases …]

It needs the packages jax-cuda13-plugin and jax-cuda13-pjrt, and nvidia-nvvm and nvidia-cuda-nvcc for what the compiler
calls. Cases are compiled in processes of their own, since a crash of the compiler is one of the things looked for.
Calls of libraries are compiled up to the call, for which a device is needed.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("PURAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

TOGETHER = 20
NO_DEVICE = "No FFI handler registered for"  # what the compiler says of a library's kernel

# What the compiler wants to know of an H200.
TARGET = """
gpu_device_info {
  cuda_compute_capability { major: 9 minor: 0 }
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448 shared_memory_per_core: 233472
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 4800000000000 device_memory_size: 151397597184 l2_cache_size: 52428800
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
device_description_str: "H200"
"""


def all_cases(names: list[str]) -> list:
    """The cases of some files, or of all."""
    from tests import cases

    chosen = names or sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
    return [case for name in chosen for case in importlib.import_module(f"tests.cases.{name}").CASES]


def work(start: int, names: list[str]) -> None:
    """Compiles the cases from `start` on, and says before each what it is about to compile."""
    from purax.testing import laws
    from purax.xla import jaxlib_api, plugins

    found = plugins.find_plugins().get("cuda")
    if found is None:
        sys.exit("there is no plugin for CUDA: install jax-cuda13-plugin and jax-cuda13-pjrt")
    compiler = jaxlib_api.compiler_without_device("cuda", found.library, TARGET, plugins.cuda_folder())
    rows = all_cases(names)

    def attempt(first: int, count: int) -> str | None:
        print("at", first, count, flush=True)
        try:
            compiler(laws.joint_program(rows[first : first + count], "gpu").text())
        except Exception as error:
            return str(error)
        return None

    while start < len(rows):
        if attempt(start, min(TOGETHER, len(rows) - start)) is not None:
            for one in range(start, min(start + TOGETHER, len(rows))):
                failure = attempt(one, 1)
                if failure is not None and NO_DEVICE not in failure:
                    print("bad", rows[one], "|", " ".join(failure.split())[:300], flush=True)
        start += TOGETHER


def main() -> None:
    names = sys.argv[1:]
    if names[:1] == ["--from"]:
        work(int(names[1]), names[2:])
        return
    rows = all_cases(names)
    start, failures = 0, 0
    while start < len(rows):
        command = [sys.executable, __file__, "--from", str(start), *names]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said, errors = process.communicate()
        lines = said.splitlines()
        for line in lines:
            if line.startswith("bad"):
                failures += 1
                print(line)
        if process.returncode == 0:
            break
        places = [line.split() for line in lines if line.startswith("at")]
        if not places:
            sys.exit(errors[-2000:])
        at, count = int(places[-1][1]), int(places[-1][2])
        failures += 1
        if count == 1:
            print(f"crash ({process.returncode}) of the compiler: {rows[at]}", flush=True)
        else:
            print(
                f"crash ({process.returncode}) of the compiler in one of cases {at} to {at + count - 1}",
                flush=True,
            )
        start = at + count
    print(f"{len(rows)} cases, {failures} that the compiler does not take")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
