"""The coordinator of a group of processes: it knows who belongs to the group, and tells all when one is lost.

It runs as a process of its own, started by process 0, so that no member's death takes it along: the engine ends every
process whose coordination service is gone. Members hold a connection to it and exchange lines of JSON; a connection
that ends without a goodbye is a death, known at once. The engine's own service, through which devices find each other,
runs in here too. It stays as long as a member is connected.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from typing import Any

from purax.xla import door

LINGER_SECONDS = 20.0


class Member:
    """A process that said hello."""

    def __init__(self, hello: dict[str, Any], writer: asyncio.StreamWriter):
        self.id: int = hello["id"]
        self.hello = hello
        self.writer = writer
        self.heard = time.monotonic()
        self.is_leaving = False
        self.is_gone = False

    def send(self, **message: Any) -> None:
        if not self.writer.is_closing():
            self.writer.write(json.dumps(message).encode() + b"\n")

    def __str__(self) -> str:
        return f"{self.hello['host']}, process id {self.hello['pid']}"


class Coordinator:
    """The group: first it gathers, then it works, and it ends when the last member has gone.

    Arguments:
        settings: `count` of members, `host` to listen at, and the timeouts `initialization` and `heartbeat` in seconds.
    """

    def __init__(self, settings: dict[str, Any]):
        self.count: int = settings["count"]
        self.host: str = settings["host"]
        self.initialization: float = settings["initialization"]
        self.heartbeat: float = settings["heartbeat"]
        self.members: dict[int, Member] = {}
        self.connections = 0
        self.service: Any = None
        self.failure: str | None = None
        self.has_lost = False
        self.gathers: dict[str, dict[int, Any]] = {}
        self.participants: dict[str, list[int]] = {}
        self.ended = asyncio.Event()

    async def run(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self.serve, sock=listener)
        try:
            print("ready", flush=True)
        except OSError:
            self.refuse_all("process 0 ended before all others had come")
        watching = asyncio.create_task(self.watch())
        await self.ended.wait()
        watching.cancel()
        server.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talks with one process until its connection ends."""
        self.connections += 1
        keep_alive(writer.get_extra_info("socket"), self.heartbeat)
        member = None
        try:
            while line := await reader.readline():
                message = json.loads(line)
                if message["kind"] == "dead":  # from who started the processes, and is none of them
                    self.hear_of_death(message["id"], message["how"])
                elif member is None:
                    member = self.welcome(message, writer)
                    if member is None:
                        break
                else:
                    self.receive(member, message)
        except (OSError, ValueError):
            pass  # as good as closed
        finally:
            with contextlib.suppress(Exception):
                await writer.drain()
                writer.close()
            self.connections -= 1
            if member is not None:
                self.depart(member, "its connection closed: it was killed, or it crashed")
            if self.connections == 0 and self.service is not None:
                self.end()

    def end(self) -> None:
        """Ends the coordinator; after a loss with some patience, since a process may be slow to end, not dead."""
        if self.has_lost:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self.ended.set)
        else:
            self.ended.set()

    # -- gathering

    def welcome(self, hello: dict[str, Any], writer: asyncio.StreamWriter) -> Member | None:
        member = Member(hello, writer)
        reason = self.failure or self.objection(member)
        if reason is not None:
            member.send(kind="refused", reason=reason)
            self.refuse_all(reason)
            return None
        self.members[member.id] = member
        if len(self.members) == self.count:
            self.start()
        return member

    def hear_of_death(self, id: int, how: str) -> None:
        """A process has ended; if it has not come yet, it never will."""
        if self.service is None and id not in self.members:
            self.refuse_all(never_came(id, how))

    def objection(self, new: Member) -> str | None:
        """Why a process cannot join, if it cannot."""
        first = next(iter(self.members.values()), None)
        if self.service is not None:
            return f"the group of {self.count} processes at this address is complete and working already"
        if new.hello["count"] != self.count:
            return (
                f"the processes disagree on their number: process {new.id} ({new}) was told num_processes="
                f"{new.hello['count']}, process 0 num_processes={self.count}"
            )
        if new.id in self.members:
            return f"two processes have process_id={new.id}: {self.members[new.id]}, and {new}"
        if first is not None and first.hello["engine"] != new.hello["engine"]:
            return (
                f"process {first.id} has jaxlib {first.hello['engine']}, process {new.id} has {new.hello['engine']}; "
                "all processes must have the same"
            )
        return None

    def refuse_all(self, reason: str) -> None:
        if self.failure is None:
            self.failure = reason
            for member in self.members.values():
                member.is_leaving = True
                member.send(kind="refused", reason=reason)
            # Processes that come late shall hear of it too.
            asyncio.get_running_loop().call_later(min(LINGER_SECONDS, self.initialization), self.ended.set)

    def start(self) -> None:
        """All are here: the engine's service starts, and everybody gets its port."""
        port = free_port(self.host)
        try:
            self.service = door.start_coordination_service(
                f"{bracketed(self.host)}:{port}",
                self.count,
                engine_heartbeat(self.heartbeat),
                int(self.initialization),
            )
        except Exception as error:
            self.refuse_all(f"the engine's coordination service could not start: {error}")
            return
        for member in self.members.values():
            member.send(kind="welcome", port=port)

    async def watch(self) -> None:
        """Looks for processes that do not come, and for members that say nothing."""
        deadline = time.monotonic() + self.initialization
        while True:
            await asyncio.sleep(min(1.0, self.heartbeat / 4))
            now = time.monotonic()
            if self.service is None and self.failure is None and now > deadline:
                missing = [i for i in range(self.count) if i not in self.members]
                self.refuse_all(
                    f"of {self.count} processes only {len(self.members)} came within {self.initialization:g} s; "
                    f"missing: {names(missing)}"
                )
            for member in list(self.members.values()):
                if not member.is_gone and not member.is_leaving and self.service is not None:
                    member.send(kind="beat")
                    if now - member.heard > self.heartbeat:
                        self.depart(member, f"there was no sign of life from it for {self.heartbeat:g} s")

    # -- working

    def receive(self, member: Member, message: dict[str, Any]) -> None:
        member.heard = time.monotonic()
        kind = message["kind"]
        if kind == "gather":
            self.gather(member, message["key"], message["among"], message["value"])
        elif kind == "leaving":
            member.is_leaving = True
            self.tell_others(member, kind="leaving", id=member.id, launched=message["launched"])
            self.answer_gathers()
        elif kind == "failed":
            self.depart(member, f"it ended with {message['reason']}")

    def gather(self, member: Member, key: str, among: list[int], value: Any) -> None:
        self.gathers.setdefault(key, {})[member.id] = value
        self.participants[key] = among
        self.answer_gathers()

    def answer_gathers(self) -> None:
        """Answers what all have contributed to, and what some never will, because their program ended."""
        for key, values in list(self.gathers.items()):
            among = self.participants[key]
            absent = [i for i in among if i not in values]
            ended = [i for i in absent if self.members[i].is_leaving and not key.startswith("exit")]
            if absent and not ended:
                continue
            for i in values:
                if ended:
                    self.members[i].send(kind="ended", key=key, ids=ended)
                else:
                    self.members[i].send(kind="gathered", key=key, values=[values[j] for j in among])
            del self.gathers[key], self.participants[key]

    def depart(self, member: Member, reason: str) -> None:
        """A member has gone; if it did not say so before, all others hear of it."""
        if member.is_gone or self.members.get(member.id) is not member:
            return
        member.is_gone = True
        if self.service is None:
            if self.failure is None:
                self.refuse_all(f"process {member.id} ({member}) ended before all others had come")
        elif not member.is_leaving:
            self.has_lost = True
            self.tell_others(member, kind="lost", id=member.id, where=str(member), reason=reason)
            member.writer.transport.abort()
        member.is_leaving = True

    def tell_others(self, member: Member, **message: Any) -> None:
        for other in self.members.values():
            if other is not member and not other.is_gone:
                other.send(**message)


def never_came(id: int, how: str) -> str:
    """Why no group comes together if one process has ended."""
    return f"process {id} {how} before it had joined"


def tell_of_death(address: str, id: int, how: str) -> bool:
    """Tells the coordinator at `address` that a process has ended; False if there is no coordinator yet."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1.0) as connection:
            connection.sendall(json.dumps({"kind": "dead", "id": id, "how": how}).encode() + b"\n")
        return True
    except OSError:
        return False


def stand_in(address: str, reason: str) -> None:
    """Tells all that come to where a coordinator should be, and will never be, the reason."""
    host, _, port = address.rpartition(":")
    try:
        listener = listen(host, int(port))
    except OSError:  # there is one now
        return
    with listener:
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(json.dumps({"kind": "refused", "reason": reason}).encode() + b"\n")


def engine_heartbeat(heartbeat: float) -> int:
    """The engine's own timeout: much longer, since it ends a process that was only slow, and does not say why."""
    return int(10 * heartbeat) + 60


def names(ids: list[int]) -> str:
    """ "process 3", "processes 1 and 2"."""
    if len(ids) == 1:
        return f"process {ids[0]}"
    return f"processes {', '.join(map(str, ids[:-1]))} and {ids[-1]}"


def bracketed(host: str) -> str:
    """A host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


def keep_alive(connection: socket.socket, timeout: float) -> None:
    """Lets the system notice a machine that is gone, within `timeout` or 25 seconds."""
    seconds = max(1, int(min(timeout, 25.0) / 5))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", seconds), ("TCP_KEEPINTVL", seconds), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; dual-stack where `host` is "::"."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server(
        (host, port), family=family, backlog=1024, dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6()
    )


def free_port(host: str) -> int:
    """A port of this machine that nobody listens at."""
    with listen(host, 0) as probe:
        return probe.getsockname()[1]


def main() -> None:
    """Reads the settings from standard input, says "ready" or "failed: why" on standard output, and serves."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its group, and not before
    settings = json.loads(sys.stdin.readline())
    try:
        listener = listen(settings["host"], settings["port"])
    except OSError as error:
        print(f"failed: {error.strerror}", flush=True)
        return
    coordinator: list[Coordinator] = []

    async def run() -> None:
        coordinator.append(Coordinator(settings))
        await coordinator[0].run(listener)

    asyncio.run(run())
    os._exit(0)  # the engine's service would wait for members that have gone
