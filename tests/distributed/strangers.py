"""A coordinator with members that only talk, which are quick to start, and strangers that try to disturb them."""

from __future__ import annotations

import contextlib
import json
import random
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from purax.xla.processes import wire
from purax.xla.processes.addresses import free_port
from tests.distributed.groups import environment

HOST = "127.0.0.1"
SECRET = "the secret of the test"


@dataclass
class Target:
    """A coordinator, and what a stranger may have seen on the wire."""

    port: int
    count: int
    process: subprocess.Popen[str]
    seen: list[bytes] = field(default_factory=list)
    talkers: list[Talker] = field(default_factory=list)


@contextlib.contextmanager
def coordinator(count: int, initialization: float = 30.0, heartbeat: float = 30.0) -> Iterator[Target]:
    """A coordinator as process 0 starts it."""
    port = free_port(HOST)
    settings = {"addresses": [HOST], "port": port, "count": count, "secret": SECRET}
    settings |= {"initialization": initialization, "heartbeat": heartbeat}
    process = subprocess.Popen(
        [sys.executable, "-c", "from purax.xla.processes.coordinator import main; main()"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"ready {HOST}\n"
        target = Target(port, count, process)
        yield target
        for talker in target.talkers:
            talker.connection.close()
    finally:
        process.kill()
        process.communicate()


class Talker:
    """A member of a group that does nothing but talk."""

    def __init__(self, target: Target, id: Any, secret: str = SECRET, **more: Any):
        hello = {"kind": "hello", "id": id, "count": target.count, "engine": "1", "host": "here", "pid": id}
        deadline = time.monotonic() + 10
        self.connection, self.answer = wire.enter(
            HOST, target.port, wire.key_of(secret), hello | more, deadline
        )
        self.frames = wire.Frames(wire.ANSWER_LIMIT)
        self.heard: list[dict[str, Any]] = []
        target.talkers.append(self)

    def send(self, **message: Any) -> None:
        self.connection.sendall(wire.encode(message))

    def hear(self, *kinds: str, seconds: float = 10.0) -> dict[str, Any]:
        """The next message of these kinds; others, but for signs of life, are errors."""
        end = time.monotonic() + seconds
        while True:
            while self.heard:
                message = self.heard.pop(0)
                if message["kind"] in kinds:
                    return message
                assert message["kind"] == "beat", message
            ready, _, _ = select.select([self.connection], [], [], max(end - time.monotonic(), 0.0))
            assert ready, f"nothing was heard of {kinds} for {seconds} s"
            data = self.connection.recv(1 << 16)
            assert data, f"the connection closed instead of {kinds}"
            self.heard += self.frames.feed(data)


def form(target: Target) -> list[Talker]:
    """A complete group of members that talk."""
    talkers = [Talker(target, id) for id in range(target.count)]
    for talker in talkers:
        talker.hear("welcome")
    return talkers


def check_that_it_works(talkers: list[Talker], value: Any = "value") -> None:
    """All can exchange values."""
    key = f"check {random.random()}"
    among = list(range(len(talkers)))
    for id, talker in enumerate(talkers):
        talker.send(kind="gather", key=key, among=among, value=[id, value])
    for talker in talkers:
        assert talker.hear("gathered")["values"] == [[id, value] for id in among]


# -- what strangers do: functions of the target and of random numbers that return the sockets that they leave open

Attack = Callable[[Target, random.Random], list[socket.socket]]


def connect(target: Target) -> socket.socket:
    return socket.create_connection((HOST, target.port), timeout=5)


def send(connection: socket.socket, data: bytes) -> list[socket.socket]:
    with contextlib.suppress(OSError):  # it may hang up on us
        connection.sendall(data)
    return [connection]


def hear_greeting(connection: socket.socket) -> bytes:
    """The coordinator's nonce."""
    data = b""
    while len(data) < len(wire.GREETING) + wire.NONCE_BYTES:
        data += connection.recv(1024)
    return data[len(wire.GREETING) :]


def hello(target: Target, chance: random.Random, key: bytes, nonce: bytes) -> bytes:
    """A hello of any member, proved with a key."""
    named = {"kind": chance.choice(["hello", "dead", "service"]), "id": chance.randrange(target.count)}
    body = json.dumps({**named, "count": target.count, "how": "died", "nonce": "00" * 32}).encode()
    return wire.frame(wire.prove(key, "member", nonce, body) + body)


def random_bytes(target: Target, chance: random.Random) -> list[socket.socket]:
    return send(connect(target), chance.randbytes(chance.choice([1, 3, 4, 5, 100, 10_000, 300_000])))


def lines_of_json(target: Target, chance: random.Random) -> list[socket.socket]:
    return send(connect(target), b'{"kind": "hello", "id": %d}\n' % chance.randrange(target.count))


def silence(target: Target, chance: random.Random) -> list[socket.socket]:
    return [connect(target)]


def reset(target: Target, chance: random.Random) -> list[socket.socket]:
    connection = connect(target)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    return []


def half_a_message(target: Target, chance: random.Random) -> list[socket.socket]:
    whole = hello(target, chance, chance.randbytes(32), bytes(32))
    return send(connect(target), whole[: chance.randrange(1, len(whole))])


def byte_by_byte(target: Target, chance: random.Random) -> list[socket.socket]:
    connection = connect(target)
    for byte in hello(target, chance, chance.randbytes(32), hear_greeting(connection))[:60]:
        send(connection, bytes([byte]))
        time.sleep(0.001)
    return [connection]


def long_message(target: Target, chance: random.Random) -> list[socket.socket]:
    length = chance.choice([wire.HELLO_LIMIT + 1, 1 << 24, (1 << 32) - 1])
    return send(connect(target), struct.pack(">I", length) + bytes(chance.randrange(1 << 17)))


def flood(target: Target, chance: random.Random) -> list[socket.socket]:
    return [connect(target) for _ in range(chance.randrange(50, 400))]


def wrong_secret(target: Target, chance: random.Random) -> list[socket.socket]:
    connection = connect(target)
    return send(connection, hello(target, chance, chance.randbytes(32), hear_greeting(connection)))


def no_proof(target: Target, chance: random.Random) -> list[socket.socket]:
    connection = connect(target)
    hear_greeting(connection)
    body = b'{"kind": "dead", "id": %d, "how": "died", "nonce": ""}' % chance.randrange(target.count)
    return send(connection, wire.frame(bytes(chance.choice([0, 5, 32])) + body))


def replay(target: Target, chance: random.Random) -> list[socket.socket]:
    """Says what a member that knows the secret says on its connection, on another one, and what others said before."""
    overheard, own = connect(target), connect(target)
    target.seen.append(hello(target, chance, wire.key_of(SECRET), hear_greeting(overheard)))
    send(own, target.seen[-1])
    return [overheard, own, *send(connect(target), chance.choice(target.seen))]


def reflection(target: Target, chance: random.Random) -> list[socket.socket]:
    """Gives the coordinator its own nonce and whatever it answered back as a proof."""
    first, second = connect(target), connect(target)
    nonce = hear_greeting(first)
    body = json.dumps({"kind": "known", "nonce": nonce.hex()}).encode()
    key = wire.key_of(SECRET)  # as if the coordinator had proved this to somebody
    send(second, wire.frame(wire.prove(key, "coordinator", hear_greeting(second) + nonce, body)[:32] + body))
    return [first, second]


ATTACKS: list[Attack] = [
    random_bytes,
    lines_of_json,
    silence,
    reset,
    half_a_message,
    byte_by_byte,
    long_message,
    flood,
    wrong_secret,
    no_proof,
    replay,
    reflection,
]


# -- what processes that know the secret do too late or by mistake


def late_member(target: Target, chance: random.Random) -> list[socket.socket]:
    """A process that comes when the group works is refused, and told why."""
    id = chance.choice([0, target.count - 1, target.count, -1, 10**30, "x", None, [1]])
    try:
        Talker(target, id, count=chance.choice([target.count, 1, 10**9, "many"]))
    except wire.Refused as error:
        assert "complete and working already" in str(error), error
    else:
        raise AssertionError("a late process was let in")
    return []


def late_news(target: Target, chance: random.Random) -> list[socket.socket]:
    """A process says that a member has died, which the coordinator knows better."""
    named = {"kind": "dead", "id": chance.randrange(target.count), "how": "died"}
    return [wire.enter(HOST, target.port, wire.key_of(SECRET), named, time.monotonic() + 5)[0]]


MISTAKES: list[Attack] = [late_member, late_news]
