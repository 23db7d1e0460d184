"""Computing inside a callback: every operation runs in NumPy, and programs run equation by equation.

A compiled program that waits for its callback may hold all threads of XLA, so nothing in a callback is given to
XLA: it could wait forever.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from purax.core.avals import aval_of
from purax.core.source import names
from purax.core.trace import Tracer, check_usable, interpreting
from purax.execution.eager import EagerTrace, _Quiet
from purax.interpreters.extended_dtypes import has_extended
from purax.scopes import scoped
from purax.xla.array import DeviceArray


class HostTrace(EagerTrace):
    """Runs operations of any size on the host."""

    __slots__ = ()
    name = "callback"

    def process(self, primitive, operands, params):
        for x in operands:
            if isinstance(x, Tracer):
                check_usable(x, self)
        if primitive.runs_itself:
            return primitive.run(*operands, **params)
        avals = tuple([aval_of(x) for x in operands])
        inferred = primitive.infer_checked(avals, params)
        out_avals = list(inferred) if primitive.multiple_results else [inferred]
        if has_extended([*avals, *out_avals]):
            return super().process(primitive, operands, params)
        values = [
            x.host_value() if isinstance(x, DeviceArray) else np.asarray(x, aval.dtype)
            for x, aval in zip(operands, avals, strict=True)
        ]
        results = _quiet.run(primitive.host_function(avals, params), *values)
        if not primitive.multiple_results:
            return DeviceArray(inferred, np.asarray(results))
        return [DeviceArray(aval, np.asarray(y)) for aval, y in zip(out_avals, results, strict=True)]


_quiet = _Quiet()
host_trace = HostTrace(None)


@scoped
def on_host() -> Iterator[None]:
    """What runs in the `with` block runs on the host, and is attributed to its own lines of code."""
    location, names.location = names.location, None
    try:
        with interpreting(host_trace):
            yield
    finally:
        names.location = location
