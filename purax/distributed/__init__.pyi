# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Many processes, on one machine or on many, that run one program together."""

from typing import Any
from collections.abc import Callable
from collections.abc import Sequence as Sequence
from purax.distributed.clusters import METHODS as METHODS
from purax.distributed.clusters import Member as Member
from purax.distributed.clusters import detect as detect
from purax.distributed.clusters import own_accelerator as own_accelerator
from purax.distributed.elastic import live_devices as live_devices
from purax.distributed.elastic import reinitialize as reinitialize
from purax.distributed.elastic import use_devices_of as use_devices_of
from purax.distributed.group_secret import find_secret as find_secret
from purax.errors import shown as shown
from purax.xla import client as client
from purax.xla import execute as execute
from purax.xla.processes import group as group
from purax.xla.processes.joining import join as join

initialize: Callable[..., Any]
is_initialized: Callable[..., Any]
shutdown: Callable[..., Any]

__all__ = ['initialize', 'is_initialized', 'live_devices', 'reinitialize', 'shutdown']
