"""`jax._src.distributed`, whose `global_state` Orbax asks whether there are other processes."""

from __future__ import annotations

from typing import Any

from purax.distributed import initialize, is_initialized, shutdown
from purax.xla import client
from purax.xla.processes import group

__all__ = ["global_state", "initialize", "is_initialized", "shutdown"]


class State:
    """This process and the group that it belongs to."""

    service = None  # runs in a process of its own
    preemption_sync_manager = None
    coordinator_address = None

    @property
    def client(self) -> Any:
        """XLA's connection to the other processes, or None."""
        return None if group.current is None else group.current.engine

    @property
    def process_id(self) -> int:
        return client.process_index()

    @property
    def num_processes(self) -> int:
        return client.process_count()


global_state = State()
