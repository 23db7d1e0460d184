"""Addresses of machines: which ones a name stands for, listening at them, and sockets that notice a lost machine."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence

_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def bracketed(host: str) -> str:
    """A host as it stands before a port.

    >>> bracketed("::1"), bracketed("10.0.0.1")
    ('[::1]', '10.0.0.1')
    """
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether an address reaches this machine only."""
    return host == "localhost" or host.startswith("127.") or host == "::1"


def own_addresses(host: str) -> list[str]:
    """The addresses that `host`, a name of this machine, stands for, the one that other machines use first.

    A machine often knows its own name as a loopback address only, which no other machine reaches; the address of its
    way to others is then the first.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))
    if not is_loopback(host) and all(map(is_loopback, addresses)):
        addresses[:0] = _outgoing_address()
    return addresses


def _outgoing_address() -> list[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 9))  # nothing is sent: the system only chooses a way
        except OSError:
            return []
        return [probe.getsockname()[0]]


def listen(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """Listening sockets at those of the addresses that this machine has; `OSError` if it has none or one is taken."""
    listeners: list[socket.socket] = []
    failure: OSError | None = None
    for host in addresses:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = host == "::" and socket.has_dualstack_ipv6()
        try:
            listeners.append(
                socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=both)
            )
        except OSError as error:
            failure = error
            if error.errno not in _NOT_HERE:
                break
    if failure is not None and (not listeners or failure.errno not in _NOT_HERE):
        for listener in listeners:
            listener.close()
        raise failure
    return listeners


def free_port(host: str) -> int:
    """A port of this machine that nobody listens at."""
    (probe,) = listen([host], 0)
    with probe:
        return probe.getsockname()[1]


def keep_alive(connection: socket.socket, timeout: float) -> None:
    """Lets the system notice a machine that is gone, within `timeout` or 25 seconds."""
    seconds = max(1, int(min(timeout, 25.0) / 5))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", seconds), ("TCP_KEEPINTVL", seconds), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
