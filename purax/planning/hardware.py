"""Devices by name: how much memory they have, how fast they compute and read, and how fast they send to each other.

Figures are those of the makers' data sheets, for dense matrices. What programs reach of them is less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.source import located
from purax.errors import shown

__all__ = ["Hardware", "find_hardware", "hardware", "read_description"]


@dataclass(frozen=True)
class Hardware:
    """A kind of device, and the network between devices of that kind.

    Attributes:
        name: of the kind.
        memory: bytes of one device; None if that depends on the machine.
        flops: operations per second on matrices, by the name of the dtype.
        bandwidth: bytes per second between a device and its memory.
        link: bytes per second that a device sends to its neighbours in one direction, within a node.
        node: how many devices such links connect.
        network: bytes per second that a device sends out of its node.
        latency: seconds until the first byte arrives.

    >>> from purax.planning import hardware
    >>> hardware["H200"].memory, hardware["H200"].node
    (141000000000, 8)
    """

    name: str
    memory: int | None
    flops: Mapping[str, float] = field(hash=False)
    bandwidth: float
    link: float
    node: int
    network: float
    latency: float

    def flops_for(self, dtype: Any) -> float:
        """Operations per second on matrices of a dtype; those of float32 for dtypes that have none."""
        name = "float8" if dtypes.dtype_name(dtype).startswith("float8") else dtypes.dtype_name(dtype)
        return self.flops.get(name, self.flops["float32"])

    def sending(self, devices: int, stride: int) -> float:
        """Bytes per second that each of `devices` sends in a ring, if neighbours are `stride` devices apart.

        A ring that leaves its node does so through the network cards of all its devices there.
        """
        if devices * stride <= self.node:
            return self.link
        return min(self.link, self.network * max(self.node // stride, 1))


def _gpu(name: str, gigabytes: int, tensor: float, bandwidth: float, link: float, network: float) -> Hardware:
    """A GPU of NVIDIA's in nodes of eight; float32 is computed as TF32, which is half the speed of bfloat16."""
    flops = {"bfloat16": tensor, "float16": tensor, "float32": tensor / 2, "int8": 2 * tensor}
    if tensor > 5e14:  # Hopper
        flops |= {"float8": 2 * tensor, "float64": 67e12}
    else:
        flops |= {"float64": 19.5e12}
    return Hardware(name, gigabytes * 10**9, flops, bandwidth, link, 8, network, 5e-6)


def _tpu(name: str, gibibytes: int, tensor: float, bandwidth: float, link: float, pod: int) -> Hardware:
    """A TPU in a torus; `link` is what it sends along one axis of the torus, in both directions together."""
    flops = {"bfloat16": tensor, "float32": tensor / 6, "int8": 2 * tensor if "v5" in name else tensor}
    return Hardware(name, gibibytes << 30, flops, bandwidth, link, pod, 6.25e9, 1e-6)


hardware: dict[str, Hardware] = {
    one.name: one
    for one in (
        _gpu("A100", 80, 312e12, 2.039e12, 300e9, 25e9),
        _gpu("H100", 80, 989e12, 3.35e12, 450e9, 50e9),
        _gpu("H200", 141, 989e12, 4.8e12, 450e9, 50e9),
        _tpu("TPU v4", 32, 275e12, 1.228e12, 90e9, 4096),
        _tpu("TPU v5e", 16, 197e12, 0.819e12, 90e9, 256),
        _tpu("TPU v5p", 95, 459e12, 2.765e12, 180e9, 8960),
        Hardware("CPU", None, {"float32": 5e10, "float64": 2.5e10}, 1e10, 5e9, 1 << 30, 1e9, 5e-6),
    )
}
"""The devices that `plan` knows by name."""

# What devices call themselves.
_KINDS = {
    "nvidia h200": "H200",
    "nvidia h100": "H100",
    "nvidia a100": "A100",
    "tpu v4": "TPU v4",
    "tpu v5 lite": "TPU v5e",
    "tpu v5": "TPU v5p",
    "tpu v5p": "TPU v5p",
    "cpu": "CPU",
}


def find_hardware(name: Any) -> Hardware:
    """The `Hardware` of a name, such as "H200", "tpu v5p" or what a device calls its kind."""
    if isinstance(name, Hardware):
        return name
    text = " ".join(str(name).lower().replace("-", " ").replace("_", " ").split())
    for own, one in hardware.items():
        if text in (own.lower(), own.lower().removeprefix("tpu ")):
            return one
    for kind in sorted(_KINDS, key=len, reverse=True):
        if text.startswith(kind):
            return hardware[_KINDS[kind]]
    raise located(
        ValueError,
        f"plan: there is no device named {shown(name)}; known are {', '.join(hardware)}. Describe another with "
        "`purax.planning.Hardware(...)`",
    )


def read_description(text: str) -> tuple[Hardware, tuple[int, ...]]:
    """The devices that a text such as "64 H200" or "8x8 TPU v5p" describes, and the sizes of a mesh of them.

    >>> from purax.planning.hardware import read_description
    >>> device, sizes = read_description("8x8 H200")
    >>> device.name, sizes
    ('H200', (8, 8))
    """
    found = re.fullmatch(r"\s*(\d+(?:\s*[x×*]\s*\d+)*)\s+(\S.*?)\s*", text)
    sizes = () if found is None else tuple(int(n) for n in re.findall(r"\d+", found[1]))
    if found is None or math.prod(sizes) < 1:
        raise located(
            ValueError,
            f"plan: {shown(text)} describes no devices; write their number and name, such as '64 H200', or the sizes "
            "of a mesh, '8x8 H200'",
        )
    return find_hardware(found[2]), sizes


def bytes_of(dtype: Any) -> float:
    """The bytes of one element."""
    if dtypes.is_extended(dtype):
        return 16.0  # a key
    return 1.0 if dtype == np.bool_ else dtypes.itemsize_bits(dtype) / 8
