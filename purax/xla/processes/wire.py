"""What processes and their coordinator say to each other: messages with their length, after both proved who they are.

A message is 4 bytes of length and JSON. The coordinator speaks first: a greeting with a nonce. The process answers with
a hello, which has a nonce of its own, and the HMAC of both under the secret of the group; the coordinator's answer is
proved in the same way. So the secret is never sent, nothing can be replayed, and neither side talks to a stranger.
Nothing is encrypted.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import socket
import struct
import time
from typing import Any

GREETING = b"purax group 1\n"
NONCE_BYTES = 32
PROOF_BYTES = 32
HELLO_LIMIT = 8 << 10  # of what is read from a process that has not proved anything
VALUE_LIMIT = 16 << 20  # of what a process gives to one exchange
ANSWER_LIMIT = 256 << 20  # of what all processes together give to it
EXIT = "exit"  # the key of the answer to those who leave
REGROUP = "regroup"  # and to those who go on after a loss
_LENGTH = struct.Struct(">I")


class Refused(Exception):
    """The coordinator does not want this process; the text says why."""


class NotACoordinator(Exception):
    """What listens at the address is something else, or belongs to another group."""


def key_of(secret: str) -> bytes:
    """The key that stands for a secret."""
    return hashlib.sha256(b"purax group\0" + secret.encode()).digest()


def make_nonce() -> bytes:
    return secrets.token_bytes(NONCE_BYTES)


def prove(key: bytes, role: str, nonces: bytes, body: bytes) -> bytes:
    """Shows that who says `body` knows the key, now, as `role`: "member" or "coordinator"."""
    return hmac.digest(key, role.encode() + b"\0" + nonces + body, "sha256")


def is_proved(proof: bytes, key: bytes, role: str, nonces: bytes, body: bytes) -> bool:
    return hmac.compare_digest(proof, prove(key, role, nonces, body))


def encode(message: dict[str, Any]) -> bytes:
    """A message as it travels."""
    return frame(json.dumps(message).encode())


def frame(body: bytes) -> bytes:
    return _LENGTH.pack(len(body)) + body


def checked_length(header: bytes, limit: int) -> int:
    (length,) = _LENGTH.unpack(header)
    if length > limit:
        raise ValueError(f"a message of {length} bytes, where {limit} are the most")
    return length


async def read_frame(reader: asyncio.StreamReader, limit: int) -> bytes:
    """The next message of a stream, still as bytes; `ValueError` if it is longer than `limit`."""
    return await reader.readexactly(checked_length(await reader.readexactly(_LENGTH.size), limit))


class Frames:
    """Cuts what comes from the coordinator into messages.

    Arguments:
        limit: the most bytes that one of them may have.
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that are complete with `data`."""
        self._data += data
        messages = []
        while len(self._data) >= _LENGTH.size:
            end = _LENGTH.size + checked_length(bytes(self._data[: _LENGTH.size]), self._limit)
            if len(self._data) < end:
                break
            messages.append(json.loads(self._data[_LENGTH.size : end]))
            del self._data[:end]
        return messages


def enter(
    host: str, port: int, key: bytes, hello: dict[str, Any], deadline: float, impatient: bool = False
) -> tuple[socket.socket, dict[str, Any]]:
    """A connection to the coordinator after both sides proved themselves, and what it answered.

    A coordinator that is not there yet is tried again until `deadline` (of `time.monotonic`), and one that hangs up in
    the middle, as it does when strangers crowd it. The connection may stay silent for as long.

    Arguments:
        host, port: where the coordinator listens.
        key: the key of the group.
        hello: what the process says of itself, with its `kind`.
        deadline: when to give up, with the last `OSError`.
        impatient: something listens there, so that whoever hangs up is no coordinator.
    """
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(deadline - time.monotonic(), 0.1))
            try:
                return connection, _introduce(connection, key, hello, deadline)
            except BaseException:
                connection.close()
                raise
        except OSError as error:
            if impatient:
                raise NotACoordinator("another program, which is no coordinator of purax") from error
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _introduce(
    connection: socket.socket, key: bytes, hello: dict[str, Any], deadline: float
) -> dict[str, Any]:
    greeting = _receive(connection, len(GREETING), deadline, GREETING)
    if greeting != GREETING:
        raise NotACoordinator("another program, which is no coordinator of purax")
    theirs, own = _receive(connection, NONCE_BYTES, deadline), make_nonce()
    body = json.dumps({**hello, "nonce": own.hex()}).encode()
    connection.sendall(frame(prove(key, "member", theirs, body) + body))
    length = checked_length(_receive(connection, _LENGTH.size, deadline), HELLO_LIMIT)
    answer = _receive(connection, length, deadline)
    proof, body = answer[:PROOF_BYTES], answer[PROOF_BYTES:]
    if not is_proved(proof, key, "coordinator", theirs + own, body):
        raise NotACoordinator("a coordinator with another secret")
    message = json.loads(body)
    if message["kind"] == "refused":
        raise Refused(message["reason"])
    return message


def _receive(connection: socket.socket, count: int, deadline: float, expected: bytes = b"") -> bytes:
    """The next `count` bytes; fewer if they are not as expected."""
    data = b""
    while len(data) < count:
        connection.settimeout(max(deadline - time.monotonic(), 0.1))
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the connection closed")
        data += part
        if expected and not expected.startswith(data):
            break
    return data
