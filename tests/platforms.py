"""Which tests run on another platform than the CPU: `make test PLATFORM=cuda SLICES='laws linear_algebra'`.

A slice is what one run of a few minutes tries; each file of tests is in one of them, or is left out for a reason that
stands here. There, jax computes on the CPU and products in float32 are exact (`default_matmul_precision="highest"`), so
that the tolerances of the CPU hold; `tests/on_device/test_precision.py` tries the other precisions.
"""

from __future__ import annotations

import fnmatch

# The files of a slice, and the minutes that it may take on a GPU with 8 worker processes.
SLICES: dict[str, tuple[int, tuple[str, ...]]] = {
    "device": (3, ("tests/on_device/*",)),
    "laws": (4, ("tests/primitives/test_laws.py",)),
    "rules": (9, ("tests/primitives/test_laws_on_device.py",)),
    "functions": (5, ("tests/lax/test_functions.py", "tests/lax/test_general_reductions.py")),
    "linear_algebra": (
        8,
        ("tests/numpy/test_linalg.py", "tests/scipy/test_linalg.py", "tests/numpy/test_polynomial_roots.py"),
    ),
    "numpy": (
        9,
        (
            "tests/numpy/test_fft.py", "tests/numpy/test_sorting.py", "tests/numpy/test_reductions.py",
            "tests/numpy/test_indexing.py", "tests/numpy/test_at.py", "tests/numpy/test_linear_algebra.py",
            "tests/numpy/test_signals.py", "tests/test_segments.py",
        ),
    ),
    "random": (5, ("tests/random/test_against_jax.py", "tests/random/test_generators.py")),
    "control_flow": (
        7,
        (
            "tests/control_flow/test_cond.py", "tests/control_flow/test_scan.py",
            "tests/control_flow/test_while_loop.py", "tests/control_flow/test_custom_*.py",
            "tests/control_flow/test_linear_solve.py",
            "tests/control_flow/test_bounded_loop.py",
        ),
    ),
    "programs": (
        8,
        (
            "tests/api/test_random_programs.py", "tests/api/test_programs_against_jax.py",
            "tests/api/test_autodiff.py", "tests/api/test_jacobians.py", "tests/interpreters/test_vmap.py",
            "tests/nn/test_scaled_products.py",
        ),
    ),
    "callbacks": (
        3,
        (
            "tests/callbacks/test_pure_callback.py", "tests/callbacks/test_effects.py",
            "tests/callbacks/test_debug.py",
        ),
    ),
}  # fmt: skip

_HOST = "about arrays on the host and what is computed there without a device"
_PYTHON = "about Python alone: names, errors, types, source; what runs is tried by other slices"
# What is left out elsewhere, and why.
LEFT_OUT: dict[str, str] = {
    "tests/sharding/*": "needs eight devices, which the CPU can pretend to have and a machine with one GPU cannot",
    "tests/distributed/*": "groups of processes over Gloo, on the CPU",
    "tests/xla/*": "the CPU's client, its kernels, its memory, and files",
    "tests/primitives/test_native_products.py": "native kernels, which are the CPU's",
    "tests/primitives/test_convolution_*.py": "native kernels and formulations of the CPU",
    "tests/primitives/test_accelerators.py": "looks at text, which needs no device",
    "tests/primitives/test_formulations.py": "runs on the CPU what is for platforms without libraries",
    "tests/primitives/test_*.py": "the CPU's formulas, and rules that the laws try",
    "tests/execution/test_host_*.py": _HOST,
    "tests/execution/test_eager.py": _HOST,
    "tests/execution/test_dispatch.py": _HOST,
    "tests/lowering/test_row_programs.py": "native kernels, which are the CPU's",
    "tests/lowering/test_outline*.py": "native kernels, which are the CPU's",
    "tests/api/*": "about programs, whatever compiles them",
    "tests/interpreters/*": "about programs, whatever compiles them",
    "tests/execution/*": "about programs, whatever compiles them",
    "tests/lowering/*": "about programs, whatever compiles them",
    "tests/callbacks/*": "needs several devices, or computes inside of callbacks, on the host",
    "tests/control_flow/*": "about programs, whatever compiles them",
    "tests/ffi/*": "kernels that are compiled for the CPU",
    "tests/pallas/*": "kernels as programs over their grid, on the CPU; tests/on_device runs some on a GPU",
    "tests/export/*": "exports are made and read without a device; tests/on_device runs one",
    "tests/core/*": _PYTHON,
    "tests/tree/*": _PYTHON,
    "tests/purity/*": _PYTHON,
    "tests/python_control_flow/*": _PYTHON,
    "tests/debugging/*": _PYTHON,
    "tests/commands/*": _PYTHON,
    "tests/explorer/*": _PYTHON,
    "tests/notebooks/*": _PYTHON,
    "tests/planning/*": "plans are made from types alone, and compared with eight devices of the CPU",
    "tests/checkpoints/*": "about files, whatever computes the arrays in them",
    "tests/clusters/*": "real schedulers, with processes on the CPU",
    "tests/ragged/*": "a library, written on what other slices try",
    "tests/compat/*": "starts processes that set up their own platform",
    "tests/libraries/*": "starts processes that set up their own platform",
    "tests/fuzz/*": "`make fuzz` runs for as long as it is told to, and on any platform",
    "tests/experimental/*": "libraries, written on what other slices try",
    "tests/nn/test_quantized_products.py": "a library, written on products that another slice tries",
    "tests/example_libraries/*": "libraries, written on what other slices try",
    "tests/scipy/*": "libraries, written on what other slices try",
    "tests/random/*": _PYTHON,
    "tests/lax/*": _PYTHON,
    "tests/numpy/*": "functions that are made of those that other slices try, one program each",
    "tests/test_*.py": _PYTHON,
}


def slice_of(path: str) -> str | None:
    """The slice that a file of tests is in, or None if it is left out.

    >>> slice_of("tests/numpy/test_fft.py"), slice_of("tests/sharding/test_pmap.py")
    ('numpy', None)
    """
    for name, (_, patterns) in SLICES.items():
        if any(fnmatch.fnmatch(path, pattern) for pattern in patterns):
            return name
    return None


def reason_for(path: str) -> str | None:
    """Why a file of tests is left out on other platforms than the CPU; None if nobody said."""
    return next((reason for pattern, reason in LEFT_OUT.items() if fnmatch.fnmatch(path, pattern)), None)
