"""Joining a group of processes: process 0 starts the coordinator, all prove that they belong, and XLA is connected.

Everything here ends within the time that the user gave, with an error that says who is missing or what is wrong.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from purax.xla import execute, jaxlib_api
from purax.xla.processes import group, wire
from purax.xla.processes.addresses import bracketed, keep_alive, own_addresses
from purax.xla.processes.coordinator import CONNECT_SECONDS, SAME_SECRET, engine_heartbeat
from purax.xla.processes.member import Member
from purax.xla.processes.tunnel import Tunnel

# How long whoever holds the port of process 0 may take to say that it is a coordinator.
GREETING_SECONDS = 3.0
# How long the coordinator, which is a new interpreter, may take to start; the time to join counts from then on.
START_SECONDS = 30.0


def join(
    host: str,
    port: int,
    count: int,
    id: int,
    *,
    bind: str | None,
    secret: str,
    initialization: float,
    heartbeat: float,
    shutdown: float,
    collective: float = float("inf"),
) -> Member:
    """Makes this process number `id` of `count`; returns when all are there.

    Arguments:
        host, port: where the coordinator is, which process 0 starts.
        bind: the address that it listens at, if not at `host`.
        secret: what all processes of the group know, and nobody else.
        initialization, heartbeat, shutdown: timeouts in seconds.
        collective: how long a program may wait for a process that does not start it.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise RuntimeError("groups of processes need sockets of Unix, which this system does not have")
    deadline = time.monotonic() + initialization
    place = f"{bracketed(host)}:{port}"
    is_taken = False
    if id == 0:
        addresses = [bind] if bind is not None else _resolve(host, deadline)
        settings = {
            "count": count,
            "secret": secret,
            "initialization": initialization,
            "heartbeat": heartbeat,
        }
        listens_at = _start_coordinator({"addresses": addresses, "port": port, **settings}, place)
        deadline = time.monotonic() + initialization
        is_taken = listens_at is None
        if listens_at is not None and bind is None:
            host = listens_at
    key = wire.key_of(secret)
    connection, answer = _enter(host, port, key, count, id, deadline, is_taken)
    # From now on the coordinator keeps the time, so that all hear who is missing, whenever they themselves have come.
    deadline = time.monotonic() + answer["seconds"]
    keep_alive(connection, heartbeat)
    member = Member(connection, id, count, shutdown, heartbeat)
    member.joined_by = {
        "secret": secret,
        "initialization": initialization,
        "heartbeat": heartbeat,
        "shutdown": shutdown,
        "collective": collective,
    }
    member.collective_timeout = collective
    frames = wire.Frames(2 * wire.ANSWER_LIMIT)
    messages = _wait_for_all(connection, frames, place, id, deadline)
    # First the ears: a process may die while we wait for it in XLA.
    threading.Thread(target=member.listen, args=(frames,), name="purax-group", daemon=True).start()
    for message in messages:
        member.hear(message)
    hello = {"kind": "service", "id": id}
    tunnel = Tunnel(lambda: wire.enter(host, port, key, hello, time.monotonic() + CONNECT_SECONDS)[0])
    try:
        member.engine = _connect_engine(member, tunnel.address, engine_heartbeat(heartbeat))
    except BaseException:
        member.close()
        raise
    finally:
        tunnel.close()
    member.prepare_to_wake()
    group.current = member
    atexit.unregister(_leave_at_exit)
    atexit.register(_leave_at_exit)
    return member


def _resolve(host: str, deadline: float) -> list[str]:
    """The addresses of this machine that the coordinator listens at."""
    while True:
        try:
            return own_addresses(host)
        except OSError as error:  # in a young cluster names take a while
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"process 0 cannot find the address of {host!r}, which it is to listen at: {error}"
                ) from None
            time.sleep(0.5)


def _start_coordinator(settings: dict[str, Any], place: str) -> str | None:
    """Starts the process that coordinates; returns the first address that it listens at, None if its port is taken."""
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", "from purax.xla.processes.coordinator import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it may outlive this process, and must not hold on to its output
        text=True,
        env=environment,
    )
    assert process.stdin is not None and process.stdout is not None
    answer = ""
    with process.stdin, process.stdout:
        try:
            process.stdin.write(json.dumps(settings) + "\n")
            process.stdin.flush()
        except OSError:
            pass  # it has ended; what follows says so
        if select.select([process.stdout], [], [], START_SECONDS)[0]:
            answer = process.stdout.readline().strip()
    process.returncode = 0  # it outlives this object, on purpose
    if answer.startswith("EADDRNOTAVAIL"):
        raise RuntimeError(
            f"process 0 cannot listen at {place}: {' and '.join(settings['addresses'])} is no address of this machine. "
            "coordinator_address names the machine of process 0; where it is reached by an address that it does not "
            f"have itself, say initialize(coordinator_bind_address='0.0.0.0:{settings['port']}')"
        )
    if answer.startswith("EADDRINUSE"):
        return None
    if not answer.startswith("ready"):
        raise RuntimeError(
            f"the coordinator at {place} could not start: {answer or 'it ended, or was silent'}"
        )
    return answer.removeprefix("ready ")


def _enter(
    host: str, port: int, key: bytes, count: int, id: int, deadline: float, is_taken: bool
) -> tuple[socket.socket, dict[str, Any]]:
    """The connection of this process to the coordinator, after both proved themselves, and its answer."""
    hello = {"kind": "hello", "id": id, "count": count}
    hello |= {"engine": jaxlib_api.version, "host": socket.gethostname(), "pid": os.getpid()}
    place = f"{bracketed(host)}:{port}"
    if is_taken:
        deadline = min(deadline, time.monotonic() + GREETING_SECONDS)
    try:
        return wire.enter(host, port, key, hello, deadline, impatient=is_taken)
    except wire.Refused as error:
        raise RuntimeError(f"process {id} cannot join the group at {place}: {error}") from None
    except wire.NotACoordinator as error:
        if is_taken:
            raise RuntimeError(
                f"process 0 cannot listen at {place}: the port is taken by {error}. Choose another port"
            ) from None
        raise RuntimeError(
            f"process {id} cannot join the group at {place}: there is {error}. Of a group, {SAME_SECRET}"
        ) from None
    except OSError as error:
        raise RuntimeError(
            f"process {id} found no coordinator at {place} ({error}). Process 0 starts it: is it running, with the "
            "same coordinator_address, and is that an address of its machine?"
        ) from None


def _wait_for_all(
    connection: socket.socket, frames: wire.Frames, place: str, id: int, deadline: float
) -> list[dict[str, Any]]:
    """Waits until the group is complete; returns what was heard after that."""
    connection.settimeout(max(deadline - time.monotonic(), 0) + 5)  # the coordinator may be slow to tell
    reason = "the coordinator, which process 0 starts, ended"
    try:
        while data := connection.recv(1 << 16):
            messages = frames.feed(data)
            if messages and messages[0]["kind"] == "welcome":
                return messages[1:]
            if messages:
                reason = messages[0]["reason"]
                break
    except TimeoutError:
        reason = "the coordinator does not answer"
    except OSError as error:
        reason = f"the coordinator, which process 0 starts, is gone: {error.strerror}"
    connection.close()
    raise RuntimeError(f"process {id} cannot join the group at {place}: {reason}")


def _connect_engine(member: Member, address: str, heartbeat: int) -> Any:
    try:
        return member.wait_for(
            lambda: jaxlib_api.connect_to_service(address, member.id, heartbeat, int(CONNECT_SECONDS))
        )
    except jaxlib_api.EngineError as error:
        raise RuntimeError(f"process {member.id} cannot reach XLA's coordination service: {error}") from None


def _forget_after_fork() -> None:
    """A copy of this process is no member, and must not keep the connection open when this one dies."""
    if group.current is not None:
        group.current.close()
        group.current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _leave_at_exit() -> None:
    member = group.current
    if member is None:
        return
    error = getattr(sys, "last_value", None)
    if error is None:
        execute.wait_for_programs()
    member.leave(None if error is None else f"{type(error).__name__}: {error}"[:2000])
