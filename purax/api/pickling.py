"""How functions and programs that purax made are pickled.

A function that a module has under its own name is pickled as that name, like any function of Python; others as what
they were made from, which the pickler must know how to write. Picklers that write the functions of
`__main__` themselves (cloudpickle and its copies, dill) get what the function was made from there too, since another
process has another `__main__`.
"""

from __future__ import annotations

import sys
from typing import Any

from purax.core.jaxpr import ClosedJaxpr, JaxprEqn
from purax.xla import client, jaxlib_api


def global_name(function: Any) -> str | None:
    """The name by which pickle finds `function` in its module, or None if it finds nothing or something else."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if module == "__main__" and _writes_main():
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is function else None


def _writes_main() -> bool:
    """Whether the pickler that is at work writes the functions of `__main__` by value."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if "cloudpickle" in module or module.partition(".")[0] == "dill":
            return True
        if module == "pickle" or frame.f_back is None:
            return False
        frame = frame.f_back
    return False


class PickledByName:
    """A base of functions with rules of their own, which a module usually has under the name of the function."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return global_name(self) or super().__reduce_ex__(protocol)


def compilable(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` without what lowering does not read: the functions of custom rules, which hardly any pickle can hold."""
    return closed.replace(jaxpr=closed.jaxpr.replace(eqns=[_compilable(eqn) for eqn in closed.jaxpr.eqns]))


def _compilable(eqn: JaxprEqn) -> JaxprEqn:
    unread = eqn.primitive.not_lowered
    return eqn.replace(
        params={
            name: None if name in unread and not isinstance(value, (str, int)) else _inside(value)
            for name, value in eqn.params.items()
        }
    )


def _inside(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return compilable(value)
    return tuple(map(_inside, value)) if type(value) is tuple else value


class PickledDevice:
    """A device in a pickle, which stands for the one of the same platform and number where it is loaded."""

    def __init__(self, device: Any):
        self.platform, self.number = device.platform, device.id

    def found(self) -> Any:
        return client.device_of(self.platform, self.number)


def with_devices_named(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a function with devices as pickles can hold them."""
    return {k: PickledDevice(x) if isinstance(x, jaxlib_api.Device) else x for k, x in options.items()}


def with_devices_found(options: dict[str, Any]) -> dict[str, Any]:
    return {k: x.found() if isinstance(x, PickledDevice) else x for k, x in options.items()}
