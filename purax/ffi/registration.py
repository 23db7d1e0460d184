"""How kernels, and the types of their state, become known to XLA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from purax.core import source
from purax.core.source import located
from purax.errors import shown
from purax.xla import jaxlib_api, targets
from purax.xla.execute import engine_failure


def include_dir() -> str:
    """The folder of the C++ headers that kernels are compiled with: `-I` of the compiler.

    >>> import os
    >>> os.path.exists(os.path.join(include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return jaxlib_api.headers()


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Registers a kernel under a name, by which `ffi_call` calls it.

    Args:
        name: the name; another kernel under the same name is refused.
        fn: a capsule of a handler (see `pycapsule`), or a dict of such by stage: "instantiate", "prepare",
            "initialize" and "execute", of which the last must be there.
        platform: "cpu", "cuda" or "rocm".
        api_version: 1 for XLA's foreign function interface, 0 for the custom calls before it.
        kwargs: `traits`, bits that the runtime defines.

    >>> import purax as px
    >>> px.ffi.register_ffi_target("twice", None)
    Traceback (most recent call last):
        ...
    TypeError: register_ffi_target: fn of 'twice' must be a capsule, as purax.ffi.pycapsule(library.Function) ...
    """
    what = f"register_ffi_target: fn of {shown(name)}"
    _check_name(name, "register_ffi_target")
    if api_version not in (0, 1):
        raise located(
            ValueError,
            f"register_ffi_target: api_version must be 1 (typed FFI) "
            f"or 0 (custom call), got {shown(api_version)}",
        )
    if unknown := set(kwargs) - {"traits"}:
        raise located(
            TypeError,
            f"register_ffi_target takes no argument {min(unknown)!r}; besides api_version there is traits",
        )
    if isinstance(fn, Mapping):
        if "execute" not in fn or not set(fn) <= set(targets.STAGES):
            raise located(
                ValueError,
                f"{what} must have a handler for the stage 'execute', and may have some for "
                f"{', '.join(map(repr, targets.STAGES[:3]))}; it has {', '.join(map(repr, fn)) or 'none'}",
            )
        for stage, capsule in fn.items():
            _check_capsule(capsule, f"{what}, stage {shown(stage)},")
    else:
        _check_capsule(fn, what)
    targets.register(name, dict(fn) if isinstance(fn, Mapping) else fn, platform, api_version, **kwargs)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Lets programs over a mesh cut the calls of a kernel along leading axes, each part on its device.

    Arrays that are sharded along other axes are gathered along these first.

    Args:
        name: the name of the kernel, which may be registered later.

    >>> import purax as px
    >>> px.ffi.register_ffi_target_as_batch_partitionable("example_of_a_partitionable_kernel")
    """
    _check_name(name, "register_ffi_target_as_batch_partitionable")
    jaxlib_api.register_batch_partitionable(name)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Registers a type of the state that a kernel keeps between its stages.

    Args:
        name: the name of the type, the only one of that name in the process.
        type_registration: a dict with the capsule `type_id`, and `type_info` for types that XLA makes and deletes.
        platform: "cpu", "cuda" or "rocm".

    >>> import purax as px
    >>> px.ffi.register_ffi_type("state", {})
    Traceback (most recent call last):
        ...
    TypeError: register_ffi_type: type_registration of 'state' must be a dict with a capsule 'type_id' ...
    """
    _check_name(name, "register_ffi_type")
    if (
        not isinstance(type_registration, Mapping)
        or "type_id" not in type_registration
        or not set(type_registration) <= {"type_id", "type_info"}
    ):
        raise located(
            TypeError,
            f"register_ffi_type: type_registration of {shown(name)} must be a dict with a capsule 'type_id' "
            f"and, for types with a constructor, 'type_info'; got {shown(type_registration)}",
        )
    for key, capsule in type_registration.items():
        _check_capsule(capsule, f"register_ffi_type: {key} of {shown(name)}")
    try:
        jaxlib_api.register_target_type(name, dict(type_registration), targets.platform_name(platform))
    except jaxlib_api.EngineError as error:
        raise source.located(engine_failure, error) from None


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """`register_ffi_type` with nothing but the id of a type.

    Args:
        name: the name of the type.
        obj: a capsule with the address of its `XLA_FFI_TypeId`.
        platform: "cpu", "cuda" or "rocm".

    >>> import purax as px
    >>> px.ffi.register_ffi_type_id("state", 3)
    Traceback (most recent call last):
        ...
    TypeError: register_ffi_type: type_id of 'state' must be a capsule, as purax.ffi.pycapsule(library.Function) ...
    """
    register_ffi_type(name, {"type_id": obj}, platform)


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str) or not name:
        raise located(TypeError, f"{what} needs the name of a kernel, a string, not {shown(name)}")


def _check_capsule(capsule: Any, what: str) -> None:
    if type(capsule).__name__ != "PyCapsule":
        raise located(
            TypeError,
            f"{what} must be a capsule, as purax.ffi.pycapsule(library.Function) makes one, "
            f"not {shown(capsule)} of type {type(capsule).__name__}",
        )
