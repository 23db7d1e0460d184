"""`jax.extend.core.primitives`: purax's primitives, under the names of their instances."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import purax.api
import purax.control_flow
import purax.execution
import purax.primitives
import purax.sharding
from purax.compat.extension import Primitive

_SPELLED_OTHERWISE = {"add_jaxvals_p": "add_p", "pjit_p": "jit_p", "remat_p": "checkpoint_p"}


# Calls that programs of purax do not have: a call is a `jit`, or is merged into the program around it.
call_p = Primitive("call")
closed_call_p = Primitive("closed_call")
core_call_p = Primitive("core_call")
for _primitive in (call_p, closed_call_p, core_call_p):
    _primitive.multiple_results = True


def __getattr__(name: str) -> Any:
    wanted = _SPELLED_OTHERWISE.get(name, name)
    if wanted.endswith("_p"):
        for package in (purax.primitives, purax.api, purax.execution, purax.sharding, purax.control_flow):
            for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
                module = importlib.import_module(info.name)
                if wanted in vars(module):
                    return vars(module)[wanted]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
