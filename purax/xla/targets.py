"""Kernels that programs call by name: purax's own and the user's are registered here with XLA.

A kernel for a platform whose plugin is not loaded yet is registered when that happens.
"""

from __future__ import annotations

from typing import Any

from purax.core import source
from purax.core.source import located
from purax.errors import shown
from purax.xla import jaxlib_api
from purax.xla.execute import engine_failure
from purax.xla.stablehlo import Module

STAGES = ("instantiate", "prepare", "initialize", "execute")
_PLATFORMS = {"cpu": "cpu", "host": "cpu", "cuda": "cuda", "gpu": "cuda", "rocm": "rocm"}
_registered: set[str] = set()  # for the CPU, through this module


def platform_name(platform: str) -> str:
    """The name of a platform in small letters; "gpu" stands for CUDA."""
    found = _PLATFORMS.get(platform.lower()) if isinstance(platform, str) else None
    if found is None:
        raise located(
            ValueError,
            f"kernels can be registered for the platforms 'cpu', 'cuda' and 'rocm', not {shown(platform)}",
        )
    return found


def pycapsule(funcptr: Any) -> Any:
    """Wraps a function of a library that `ctypes` loaded, for `register_ffi_target`.

    Args:
        funcptr: the function, as `ctypes.CDLL("kernels.so").RmsNorm`.

    Returns:
        A `PyCapsule` that holds its address.

    >>> import ctypes
    >>> type(pycapsule(ctypes.pythonapi.Py_GetVersion)).__name__
    'PyCapsule'
    """
    try:
        return jaxlib_api.make_capsule(funcptr)
    except Exception as error:  # ctypes has exceptions of its own
        raise located(
            TypeError,
            f"pycapsule needs a function of a library, as "
            f"ctypes.CDLL(path).name gives it, not {shown(funcptr)}: {error}",
        ) from None


def register(name: str, function: Any, platform: str = "cpu", api_version: int = 1, traits: int = 0) -> None:
    """Makes a kernel known to XLA under a name; `function` is a capsule, or capsules by the names of the stages."""
    platform = platform_name(platform)
    try:
        jaxlib_api.register_target(name, function, platform, api_version, traits)
    except jaxlib_api.EngineError as error:
        raise source.located(engine_failure, error) from None
    if platform == "cpu":
        _registered.add(name)


def require(module: Module) -> None:
    """Raises the error that the user should read if a program calls a kernel that nobody registered."""
    if module.platform != "cpu" or not module.targets or _registered.issuperset(module.targets):
        return
    known = jaxlib_api.targets_of_cpu() | _registered
    for name, location in module.targets.items():
        if name not in known:
            raise source.located(
                LookupError,
                f"no kernel is registered for the FFI target {shown(name)} on "
                f"the platform 'cpu'. Register it before "
                f"the first call: purax.ffi.register_ffi_target({shown(name)}, "
                "purax.ffi.pycapsule(library.Function), platform='cpu')",
                at=location,
            )
