"""Many processes, on one machine or on many, that run one program together.

Every process calls `initialize` before anything else. From then on `purax.devices()` are the devices of all of them,
arrays may be sharded over a mesh of them, and what every process must do together is run the same programs in the same
order.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from purax.distributed.clusters import METHODS, Member, detect, own_accelerator
from purax.distributed.elastic import live_devices, reinitialize, use_devices_of
from purax.distributed.group_secret import find_secret
from purax.errors import shown
from purax.xla import client, execute
from purax.xla.processes import group
from purax.xla.processes.joining import join

__all__ = ["initialize", "is_initialized", "live_devices", "reinitialize", "shutdown"]


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    *,
    secret: str | None = None,
    collective_timeout_seconds: float = 600,
) -> None:
    """Joins this process to the others; returns when all are there.

    What is not given is taken from the environment: `purax launch`, SLURM, Open MPI, MPICH, torchrun, Kubernetes, and
    the variables PURAX_COORDINATOR_ADDRESS, PURAX_NUM_PROCESSES, PURAX_PROCESS_ID (JAX_ for PURAX_ means the same).

    When a process dies, the others end with a `purax.errors.ProcessLostError` that names it, or go on without it by
    `reinitialize`. Only processes that know
    the secret of the group can join it or talk to it; what they send is not encrypted.

    Args:
        coordinator_address: "host:port" of process 0's machine, with a port that is free there.
        num_processes: how many processes there are.
        process_id: the number of this one, from 0 to `num_processes - 1`.
        local_device_ids: the accelerators of the machine that this process uses; all of them unless given.
        cluster_detection_method: whom to ask: "explicit", "slurm", "ompi", "mpich", "torchrun", "k8s", "mpi4py", or
            "deactivate"; by default all but "mpi4py".
        initialization_timeout: how long to wait for process 0, and from then on for all others, in seconds.
        heartbeat_timeout_seconds: how long a process may give no sign of life. One that dies is noticed at once, and a
            machine that is cut off within 25 seconds.
        shutdown_timeout_seconds: how long to wait for the other processes at the end.
        coordinator_bind_address: the address that process 0 listens at, where it is not that of `coordinator_address`;
            "0.0.0.0:port" or "[::]:port" are all addresses of its machine.
        slice_index: not supported.
        partition_index: not supported.
        secret: a text that all processes of the group know and nobody else; PURAX_GROUP_SECRET unless given, which
            `purax launch` sets. Without either it is what the launcher shares (Open MPI, mpi4py), or the key of the
            user, a file in the home directory.
        collective_timeout_seconds: how long a program over several processes may wait for one that does not start it.
            That one is then taken for lost, and all hear at which line it is.

    >>> from purax.distributed import initialize, is_initialized, shutdown
    >>> is_initialized()
    False
    """
    if slice_index is not None or partition_index is not None:
        raise NotImplementedError("initialize: slice_index and partition_index are not supported")
    if group.current is not None:
        raise RuntimeError(
            "initialize: this process is in a group already; purax.distributed.shutdown() leaves it"
        )
    client.require_no_clients("purax.distributed.initialize")
    if cluster_detection_method not in (None, *METHODS):
        raise ValueError(
            f"initialize: cluster_detection_method must be one of {', '.join(map(repr, METHODS))}, not "
            f"{shown(cluster_detection_method)}"
        )
    found = Member()
    if None in (coordinator_address, num_processes, process_id):
        found = detect(cluster_detection_method, os.environ)
    address = coordinator_address or found.address
    count = found.count if num_processes is None else num_processes
    id = found.id if process_id is None else process_id
    missing = [
        name
        for name, value in (("coordinator_address", address), ("num_processes", count), ("process_id", id))
        if value is None
    ]
    if address is None or count is None or id is None:
        raise ValueError(
            f"initialize: {', '.join(missing)} must be given: the environment does not say. `purax launch -n 4 "
            "script.py` and srun start processes that need no arguments; see purax.distributed.initialize for others"
        )
    host, port = _split("coordinator_address", address)
    if count < 1:
        raise ValueError(f"initialize: num_processes must be at least 1, got {count}")
    if not 0 <= id < count:
        raise ValueError(
            f"initialize: process_id must be from 0 to {count - 1} for num_processes={count}, got {id}"
        )
    bind = None
    if coordinator_bind_address is not None:
        bind, bind_port = _split("coordinator_bind_address", coordinator_bind_address)
        if bind_port != port:
            raise ValueError(
                f"initialize: coordinator_bind_address {shown(coordinator_bind_address)} and coordinator_address "
                f"{shown(address)} must have the same port"
            )
    if not collective_timeout_seconds > 0:
        raise ValueError(
            f"initialize: collective_timeout_seconds must be positive, not {shown(collective_timeout_seconds)}"
        )
    visible = _visible_devices(local_device_ids, found)
    joined = join(
        host,
        port,
        count,
        id,
        bind=bind,
        secret=find_secret(secret, found.secret, os.environ),
        initialization=initialization_timeout,
        heartbeat=heartbeat_timeout_seconds,
        shutdown=shutdown_timeout_seconds,
        collective=float(collective_timeout_seconds),
    )
    joined.joined_by["visible"] = visible
    use_devices_of(joined, visible)


def _split(name: str, address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(
            f"initialize: {name} must be 'host:port', such as '10.0.0.1:8476', not {shown(address)}"
        )
    return host.strip("[]"), int(port)


def _visible_devices(given: int | Sequence[int] | None, found: Member) -> list[int] | None:
    if given is None:
        text = os.environ.get("PURAX_LOCAL_DEVICE_IDS") or os.environ.get("JAX_LOCAL_DEVICE_IDS")
        if text:
            return [int(part) for part in text.split(",")]
        return own_accelerator(found, os.environ)
    return [given] if isinstance(given, int) else [int(one) for one in given]


def is_initialized() -> bool:
    """Whether this process belongs to a group: between `initialize` and `shutdown`.

    >>> is_initialized()
    False
    """
    return group.current is not None


def shutdown() -> None:
    """Leaves the group, after all processes have come to this point; the end of the program does it too.

    The devices of the other processes cannot be used afterwards.
    """
    if group.current is None:
        return
    execute.wait_for_programs()
    left, group.current = group.current, None
    try:
        left.leave()
    finally:
        left.close()
