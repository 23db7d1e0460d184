"""The coordinator of a group of processes: it knows who belongs to the group, and tells all when one is lost.

It runs as a process of its own, started by process 0, so that no member's death takes it along. Members hold a
connection to it that began with a proof that they know the group's secret (`wire`); one that ends without a goodbye is
a death, known at once. XLA's coordination service, through which devices find each other, runs in here too, and is
reached through the same port and proof only (`tunnel`). A stranger cannot touch the group, whatever it sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import sys
import time
from typing import Any

from purax.xla import jaxlib_api
from purax.xla.processes import wire
from purax.xla.processes.addresses import keep_alive, listen
from purax.xla.processes.group import names
from purax.xla.processes.tunnel import make_socket_folder

try:
    import resource
except ImportError:  # no Unix: there are no groups, but this file is imported
    resource = None  # type: ignore[assignment]

LINGER_SECONDS = 20.0
# How long a process may take to prove itself, and how many may be about to, besides the members: past that number the
# oldest goes, and a member to whom that happens comes again.
HANDSHAKE_SECONDS = 10.0
STRANGERS = 256
# How long XLA may take to connect processes that are all there; that one of them is lost meanwhile is noticed at once.
CONNECT_SECONDS = 60.0


class Member:
    """A process that said hello."""

    def __init__(self, hello: dict[str, Any], writer: asyncio.StreamWriter):
        self.id: int = hello["id"]
        self.hello = hello
        self.writer = writer
        self.heard = time.monotonic()
        self.is_leaving = False  # or has gone
        self.is_at_exit = False  # and waits for the others
        self.is_lost = False  # it went without a goodbye
        self.offer: dict[str, Any] | None = None  # of a place for the next group, after a loss
        self.is_gone = False

    def send(self, **message: Any) -> None:
        self.send_encoded(wire.encode(message))

    def send_encoded(self, data: bytes) -> None:
        if not self.writer.is_closing():
            self.writer.write(data)

    def __str__(self) -> str:
        return f"{self.hello['host']}, process id {self.hello['pid']}"


class Coordinator:
    """The group: first it gathers, then it works, and it ends when the last member has gone.

    Arguments:
        settings: the `count` of members, the `secret`, and the timeouts `initialization` and `heartbeat` in seconds.
        failure: why the group will not come together, where that is known from the beginning.
    """

    def __init__(self, settings: dict[str, Any], failure: str | None = None):
        self.count: int = settings["count"]
        self.key = wire.key_of(settings["secret"])
        self.initialization: float = settings["initialization"]
        self.deadline = time.monotonic() + self.initialization
        self.heartbeat: float = settings["heartbeat"]
        self.members: dict[int, Member] = {}
        self.servers: list[asyncio.Server] = []
        self.strangers: dict[asyncio.StreamWriter, None] = {}
        self.turned_away = 0
        self.service: Any = None
        self.service_folder: str | None = None
        self.tunnels = 0
        self.failure = failure
        self.told: set[int] = set()
        self.is_regrouping = False
        self.reports: dict[str, dict[str, Any]] = {}  # of programs that some member does not start
        self.gathers: dict[str, dict[int, Any]] = {}
        self.participants: dict[str, list[int]] = {}
        self.ended = asyncio.Event()

    async def run(self, listeners: list[socket.socket]) -> None:
        for listener in listeners:
            self.servers.append(await asyncio.start_server(self.serve, sock=listener, backlog=STRANGERS))
        watching = asyncio.create_task(self.watch())
        try:
            await self.ended.wait()
        finally:
            watching.cancel()
            self.remove_service_folder()
            self.stop_listening()

    def stop_listening(self) -> None:
        for server in self.servers:
            server.close()

    # -- strangers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talks with whoever connects until the connection ends."""
        self.strangers[writer] = None
        if len(self.strangers) > STRANGERS + self.count:
            oldest = next(iter(self.strangers))
            del self.strangers[oldest]
            oldest.transport.abort()
        try:
            keep_alive(writer.get_extra_info("socket"), self.heartbeat)
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                proved = await self.ask_for_proof(reader, writer)
            self.strangers.pop(writer, None)
            if proved is not None:
                await self.talk(*proved, reader, writer)
        except (OSError, ValueError, KeyError, TypeError, EOFError):
            pass  # as good as closed
        finally:
            self.strangers.pop(writer, None)
            await hang_up(writer)

    async def ask_for_proof(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[dict[str, Any], bytes] | None:
        """What a process says of itself, and the nonces of both sides; None if it does not know the secret."""
        own = wire.make_nonce()
        writer.write(wire.GREETING + own)
        data = await wire.read_frame(reader, wire.HELLO_LIMIT)
        proof, body = data[: wire.PROOF_BYTES], data[wire.PROOF_BYTES :]
        if not wire.is_proved(proof, self.key, "member", own, body):
            self.turned_away += 1
            writer.write(wire.frame(bytes(wire.PROOF_BYTES)))
            return None
        hello = json.loads(body)
        return hello, own + bytes.fromhex(hello["nonce"])

    async def talk(
        self, hello: dict[str, Any], nonces: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Does what a process that knows the secret has come for."""

        def answer(**message: Any) -> None:
            body = json.dumps(message).encode()
            writer.write(wire.frame(wire.prove(self.key, "coordinator", nonces, body) + body))

        if hello["kind"] == "dead":  # from who started the processes, and is none of them
            answer(kind="known")
            self.hear_of_death(hello["id"], hello["how"])
        elif hello["kind"] == "service":
            if self.service_folder is None or hello["id"] not in self.members:
                answer(kind="refused", reason="the group does not work")
            else:
                answer(kind="known")
                await self.carry_to_service(reader, writer)
        else:
            member = Member(hello, writer)
            reason = self.failure or self.objection(member)
            if reason is not None:
                answer(kind="refused", reason=reason)
                self.told.add(member.id)
                if self.service is None:
                    self.refuse_all(reason)
                return
            answer(kind="known", seconds=max(self.deadline - time.monotonic(), 0.0))
            await self.attend(member, reader)

    async def carry_to_service(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carries bytes between a member and XLA's service."""
        assert self.service_folder is not None
        inner_reader, inner_writer = await asyncio.open_unix_connection(f"{self.service_folder}/service")
        self.tunnels += 1
        if (
            self.tunnels == self.count
        ):  # all are through, and a folder of a killed coordinator would stay forever
            self.remove_service_folder()
        try:
            directions = [copy(reader, inner_writer), copy(inner_reader, writer)]
            _, running = await asyncio.wait(
                map(asyncio.create_task, directions), return_when=asyncio.FIRST_COMPLETED
            )
            for task in running:
                task.cancel()
        finally:
            await hang_up(inner_writer)

    def remove_service_folder(self) -> None:
        if self.service_folder is not None:
            shutil.rmtree(self.service_folder, ignore_errors=True)

    # -- gathering

    async def attend(self, member: Member, reader: asyncio.StreamReader) -> None:
        """Hears a member until its connection ends."""
        self.members[member.id] = member
        if len(self.members) == self.count:
            self.start()
        try:
            while True:
                data = await wire.read_frame(reader, wire.VALUE_LIMIT)
                self.receive(member, json.loads(data))
        except (OSError, EOFError):
            self.depart(member, "its connection closed: it was killed, or it crashed")
        except Exception as error:
            self.depart(member, f"it sent what no process of purax sends: {error!r}")
        finally:
            if self.service is not None and all(one.is_gone for one in self.members.values()):
                self.ended.set()

    def hear_of_death(self, id: int, how: str) -> None:
        """A process has ended; if it has not come yet, it never will."""
        self.told.add(id)
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
        if not isinstance(new.id, int) or not 0 <= new.id < self.count:
            return f"process_id must be from 0 to {self.count - 1}, got {new.id!r} from {new}"
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
                self.told.add(member.id)
            # Processes that come late shall hear of it too.
            asyncio.get_running_loop().call_later(min(LINGER_SECONDS, self.initialization), self.ended.set)
        if len(self.told) >= self.count:
            asyncio.get_running_loop().call_later(1.0, self.ended.set)

    def start(self) -> None:
        """All are here: XLA's service starts, and everybody is told."""
        self.service_folder = make_socket_folder()
        try:
            self.service = jaxlib_api.start_coordination_service(
                f"unix:{self.service_folder}/service",
                self.count,
                engine_heartbeat(self.heartbeat),
                int(CONNECT_SECONDS),
            )
        except Exception as error:
            self.refuse_all(f"XLA's coordination service could not start: {error}")
            return
        for member in self.members.values():
            member.heard = time.monotonic()
            member.send(kind="welcome")

    async def watch(self) -> None:
        """Looks for processes that do not come, and for members that say nothing."""
        period = min(1.0, self.heartbeat / 4)
        then = time.monotonic()
        while True:
            await asyncio.sleep(period)
            now = time.monotonic()
            # If this process itself was stopped, nobody else was silent meanwhile.
            paused, then = max(now - then - period, 0.0), now
            if self.service is None and self.failure is None and now > self.deadline:
                self.refuse_all(self.who_is_missing())
            for member in list(self.members.values()):
                if not member.is_gone and self.service is not None:
                    member.heard += paused if paused > period else 0.0
                    member.send(kind="beat")
                    if now - member.heard > self.heartbeat and not member.is_leaving:
                        self.depart(member, f"there was no sign of life from it for {self.heartbeat:g} s")

    def who_is_missing(self) -> str:
        missing = [i for i in range(self.count) if i not in self.members]
        others = (
            f". {self.turned_away} connections did not know the group's secret: {SAME_SECRET}"
            if self.turned_away
            else ""
        )
        return (
            f"of {self.count} processes only {len(self.members)} came within {self.initialization:g} s; missing: "
            f"{names(missing)}{others}"
        )

    # -- working

    def receive(self, member: Member, message: dict[str, Any]) -> None:
        member.heard = time.monotonic()
        kind = message["kind"]
        if kind == "gather":
            value = Excess(message["too large"]) if "too large" in message else message["value"]
            self.gathers.setdefault(message["key"], {})[member.id] = value
            self.participants[message["key"]] = message["among"]
            self.answer_gathers()
        elif kind == "leaving":
            member.is_leaving, member.is_at_exit = True, message["waits"]
            self.tell_others(member, kind="leaving", id=member.id, launched=message["launched"])
            self.answer_gathers()
            self.answer_at_exit()
        elif kind == "failed":
            self.depart(member, f"it ended with {message['reason']}")
        elif kind == "stuck":
            self.look_for_stuck(message)
        elif kind == "here":
            self.hear_where(member, message)
        elif kind == "regroup":
            member.offer = message["offer"]
            if not self.is_regrouping:
                self.is_regrouping = True
                asyncio.get_running_loop().call_later(message["within"], self.give_up_on_absent)
            self.answer_regroup()

    # -- programs that a member does not start

    def look_for_stuck(self, report: dict[str, Any]) -> None:
        """A program waits for a member that does not start it: all that take part are asked where they are."""
        self.reports[report["key"]] = report
        for i in report["key"].split(","):
            if not self.members[int(i)].is_leaving:
                self.members[int(i)].send(kind="where")

    def hear_where(self, member: Member, place: dict[str, Any]) -> None:
        """A member says where it is: it is lost if others wait for it, while it waits for nobody.

        One that does not answer is none of this: it is busy, or its heartbeat ends.
        """
        for report in self.reports.values():
            behind = place["launched"].get(report["key"], 0) < report["count"]
            if str(member.id) in report["key"].split(",") and behind and not place["waits"]:
                where = f"it is at {place['where']}" if place["where"] else "it does not say where it is"
                self.depart(
                    member,
                    f"it did not start the program {report['what']}, number {report['count']} of those that they run "
                    f"together, within {report['seconds']:g} s; {where}",
                )
                return

    # -- forming a group again

    def answer_regroup(self) -> None:
        """Tells those who survived a loss who else did, and where the next group meets, when all have asked."""
        there = [one for _, one in sorted(self.members.items()) if not one.is_leaving]
        if self.is_regrouping and there and all(one.offer is not None for one in there):
            self.is_regrouping = False
            values = {"ids": [one.id for one in there], "offer": there[0].offer}
            for member in there:
                member.is_leaving = True  # in order: they are the next group's
                member.send(kind="gathered", key=wire.REGROUP, values=values)

    def give_up_on_absent(self) -> None:
        """Takes those for lost who did not come in time to form a group again."""
        if self.is_regrouping:
            for member in list(self.members.values()):
                if member.offer is None and not member.is_leaving:
                    self.depart(member, "it did not come in time to form the group again")
            self.answer_regroup()

    def answer_gathers(self) -> None:
        """Answers what all have contributed to, and what some never will, because their program ended.

        Those who wait for a process that is lost have heard of that.
        """
        for key, values in list(self.gathers.items()):
            among = self.participants[key]
            absent = [i for i in among if i not in values]
            ended = [i for i in absent if self.members[i].is_leaving and not self.members[i].is_lost]
            if absent and not ended:
                continue
            answer = wire.encode({"key": key, **_outcome(among, values, ended)})
            if len(answer) > wire.ANSWER_LIMIT:
                excess = {"who": "all processes together have", "bytes": len(answer)}
                answer = wire.encode({"key": key, "kind": "too large", **excess})
            for i in values:
                self.members[i].send_encoded(answer)
            del self.gathers[key], self.participants[key]

    def answer_at_exit(self) -> None:
        """Lets those go who wait at the exit, when all the others are there, or have gone.

        That is said by the one message with which a process leaves: one that stops right after it keeps nobody.
        """
        if all(one.is_leaving for one in self.members.values()):
            self.stop_listening()  # the same processes may form the next group, here, as soon as they have left
            for member in self.members.values():
                if member.is_at_exit:
                    member.send(kind="gathered", key=wire.EXIT, values=[])

    def depart(self, member: Member, reason: str) -> None:
        """A member has gone; if it did not say so before, all others hear of it."""
        if member.is_gone or self.members.get(member.id) is not member:
            return
        member.is_gone = True
        said_goodbye, member.is_leaving = member.is_leaving, True
        if self.service is None:
            if self.failure is None:
                self.refuse_all(f"process {member.id} ({member}) ended before all others had come")
        elif not said_goodbye:
            member.is_lost = True
            self.stop_listening()  # this group ends; who comes now waits for the next
            self.tell_others(member, kind="lost", id=member.id, where=str(member), reason=reason)
            # It may be alive, and wake up.
            member.send(kind="expelled", reason=reason)
            member.writer.close()
            asyncio.get_running_loop().call_later(LINGER_SECONDS, member.writer.transport.abort)
        self.answer_regroup()

    def tell_others(self, member: Member, **message: Any) -> None:
        data = wire.encode(message)
        for other in self.members.values():
            if other is not member and not other.is_gone:
                other.send_encoded(data)


class Excess(int):
    """The number of bytes of a value that was too large to send."""


def _outcome(among: list[int], values: dict[int, Any], ended: list[int]) -> dict[str, Any]:
    """What comes of an exchange among some processes, of which some may have ended."""
    if ended:
        return {"kind": "ended", "ids": ended}
    for id, value in values.items():
        if isinstance(value, Excess):
            return {"kind": "too large", "who": f"process {id} has", "bytes": value}
    return {"kind": "gathered", "values": [values[i] for i in among]}


SAME_SECRET = (
    "all processes need the same one, by the environment variable PURAX_GROUP_SECRET or initialize(secret=...); "
    "`purax launch` sets it"
)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copies bytes until one side ends."""
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Sends what is left, if the other side takes it in time, and closes."""
    try:
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            await writer.drain()
            writer.close()
            await writer.wait_closed()
    except OSError:
        writer.transport.abort()


def never_came(id: int, how: str) -> str:
    """Why no group comes together if one process has ended."""
    return f"process {id} {how} before it had joined"


def tell_of_death(host: str, port: int, secret: str, id: int, how: str) -> bool:
    """Tells the coordinator that a process has ended; False if there is no coordinator yet."""
    hello = {"kind": "dead", "id": id, "how": how}
    try:
        connection, _ = wire.enter(
            host, port, wire.key_of(secret), hello, time.monotonic() + 1.0, impatient=True
        )
        connection.close()
        return True
    except (OSError, wire.NotACoordinator):
        return False


def stand_in(host: str, port: int, secret: str, count: int, reason: str) -> None:
    """Tells all that come to where a coordinator should be, and will never be, the reason."""
    try:
        listeners = listen([host], port)
    except OSError:  # there is one now
        return
    settings = {"count": count, "secret": secret, "initialization": 60.0, "heartbeat": 60.0}

    async def serve() -> None:
        await Coordinator(settings, reason).run(listeners)

    asyncio.run(serve())


def engine_heartbeat(heartbeat: float) -> int:
    """XLA's own timeout: much longer, since it ends a process that was only slow, and does not say why."""
    return int(10 * heartbeat) + 60


def main() -> None:
    """Reads the settings from standard input, says "ready" or "failed: why" on standard output, and serves."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its group, and not before
    settings = json.loads(sys.stdin.readline())
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # three for each member
    try:
        listeners = listen(settings["addresses"], settings["port"])
    except OSError as error:
        print(errno.errorcode.get(error.errno or 0, "?"), error.strerror, flush=True)
        return
    asyncio.run(_serve(settings, listeners))
    os._exit(0)  # XLA's service would wait for members that have gone


async def _serve(settings: dict[str, Any], listeners: list[socket.socket]) -> None:
    coordinator = Coordinator(settings)
    try:
        print("ready", listeners[0].getsockname()[0], flush=True)
    except OSError:
        coordinator.refuse_all("process 0 ended before all others had come")
    await coordinator.run(listeners)
