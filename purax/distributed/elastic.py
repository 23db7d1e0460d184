"""Going on after a loss: the processes that are left form a group again, in the same processes, with new devices.

XLA's clients cannot lose a member, so that new ones are made. The old ones are never destroyed: threads of theirs may
wait for the dead. Arrays and meshes over their devices are gone, and say so when they are used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.api.jit import clear_caches
from purax.core.memo import forget_all
from purax.core.source import located
from purax.errors import ProcessLostError, shown
from purax.xla import client, execute, interruptible_calls, jaxlib_api, living_arrays
from purax.xla.array import forget_home
from purax.xla.processes import group
from purax.xla.processes.addresses import free_port
from purax.xla.processes.joining import join
from purax.xla.processes.member import Member

__all__ = ["live_devices", "reinitialize"]


def use_devices_of(member: Member, visible: list[int] | None) -> None:
    """Gives the clients that are made from now on the devices of a group."""
    client.join_distributed(
        distributed_client=member.engine,
        node_id=member.id,
        num_nodes=member.count,
        collectives=jaxlib_api.make_cpu_collectives(member.engine, member.own_address),
        **({} if visible is None else {"visible_devices": visible}),
    )


def live_devices() -> list[Any]:
    """The devices of the processes that are not lost, as far as this process knows; all without a group.

    >>> import purax as px
    >>> px.distributed.live_devices() == px.devices()
    True
    """
    lost = set() if group.current is None else set(group.current.lost_ids)
    return [device for device in client.devices() if device.process_index not in lost]


def reinitialize(timeout: int = 60) -> list[int]:
    """Forms a group of those that are left, after a `ProcessLostError`; returns when all of them are there.

    They are numbered anew, in their order, and have new devices: make meshes of `purax.devices()` again, and load
    arrays from the last checkpoint. Arrays that are nowhere but on the host stay; all others are gone, and functions
    are compiled again when they are next called. The group's coordinator must be alive, which runs beside the first
    process, on its machine. Call it soon: a process that learns of a loss and does nothing ends after twenty seconds.

    Args:
        timeout: how long to wait for the others, in seconds; who does not come by then is taken for lost.

    Returns:
        The numbers that the members of the new group had in the old one, in order.
    """
    member = group.current
    if member is None:
        raise located(
            RuntimeError, "reinitialize: this process is in no group; purax.distributed.initialize() joins one"
        )
    if member.lost is None:
        raise located(
            RuntimeError,
            "reinitialize: no process of the group is lost; shutdown() leaves a group that is whole, and initialize() "
            "joins another",
        )
    if not isinstance(timeout, int | float) or timeout <= 0:
        raise located(ValueError, f"reinitialize: timeout must be a number of seconds, not {shown(timeout)}")
    host = member.own_address
    answer = member.regroup({"host": host, "port": free_port(host)}, float(timeout))
    ids, place = answer["ids"], answer["offer"]
    if member.id not in ids:
        raise ProcessLostError(f"process {member.id}, this one, was left out when its group was formed again")
    _leave(member)
    options = dict(member.joined_by)
    visible = options.pop("visible", None)
    options["initialization"] = float(timeout)
    joined = join(place["host"], place["port"], len(ids), ids.index(member.id), bind=None, **options)
    joined.joined_by |= {"visible": visible, "initialization": member.joined_by["initialization"]}
    use_devices_of(joined, visible)
    return list(ids)


def _leave(member: Member) -> None:
    """Gives up the group and all that was made over its devices."""
    group.current = None
    _rescue()
    execute.abandon_programs()
    member.abandon()
    interruptible_calls.survive_loss()
    client.abandon_clients()
    clear_caches()
    forget_all()
    forget_home()


def _rescue() -> None:
    """Arrays that belong to nobody's mesh, and are done, become values of the host; all others are deleted."""
    for x in living_arrays.arrays_alive():
        buffer = x._buffer
        if buffer is None:
            continue
        try:
            if not hasattr(x, "_placement") and x._host is None and buffer.is_ready():
                x._host = np.array(execute.to_numpy(buffer))
        except (jaxlib_api.EngineError, ProcessLostError):
            pass  # it is a result of what the lost process took part in
        if hasattr(x, "_placement"):
            x._host = None
        x._buffer = None
