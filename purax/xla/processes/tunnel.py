"""The way from XLA in this process to its coordination service, through a connection that has proved itself.

XLA's service asks nobody for a secret, and XLA aborts a process, with a C++ stack, as soon as the service is gone. So
the service listens at a socket in a folder that only its user may open, and XLA's client talks to one in this process,
from which bytes are carried on. When the coordinator is gone, XLA's side stays open and silent: the error is ours.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable

_PATH_LIMIT = 90  # the system's is 104 or 108 bytes


def make_socket_folder() -> str:
    """A new folder that only this user may open, with a path that is short enough for sockets."""
    for parent in (tempfile.gettempdir(), "/tmp", "/dev/shm"):
        if len(os.fsencode(parent)) < _PATH_LIMIT - 20:
            with contextlib.suppress(OSError):
                return tempfile.mkdtemp(prefix="purax-", dir=parent)
    raise RuntimeError(
        "a group of processes needs a folder for a socket, with a short path, that can be written: TMPDIR names none"
    )


class Tunnel:
    """A socket of this process whose connections are carried on.

    Arguments:
        connect: makes the connection that carries one on.
    """

    def __init__(self, connect: Callable[[], socket.socket]):
        self._connect = connect
        self._folder = make_socket_folder()
        path = os.path.join(self._folder, "service")
        self.address = f"unix:{path}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        threading.Thread(target=self._accept, name="purax-tunnel", daemon=True).start()

    def close(self) -> None:
        """Takes no further connection; those that are there stay."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                local, _ = self._listener.accept()
            except OSError:
                return
            try:
                remote = self._connect()
            except Exception:  # the coordinator is gone, which the member hears by itself
                local.detach()  # not closed: XLA would abort
                continue
            remote.settimeout(None)
            # A number, not an object: nothing may close XLA's side before XLA does, not even the interpreter's end.
            threading.Thread(
                target=_carry_out, args=(local.detach(), remote), name="purax-tunnel", daemon=True
            ).start()


def _carry_out(local: int, remote: socket.socket) -> None:
    """Copies what XLA sends until it hangs up."""
    inward = threading.Thread(target=_carry_in, args=(remote, local), name="purax-tunnel", daemon=True)
    inward.start()
    with contextlib.suppress(OSError):
        while data := os.read(local, 1 << 16):
            with contextlib.suppress(OSError):  # of a coordinator that is gone
                remote.sendall(data)
        remote.shutdown(socket.SHUT_RDWR)
    inward.join()
    remote.close()
    os.close(local)


def _carry_in(remote: socket.socket, local: int) -> None:
    """Copies what XLA's service sends; when it ends, XLA hears nothing more."""
    with contextlib.suppress(OSError):
        while data := remote.recv(1 << 16):
            while data:
                data = data[os.write(local, data) :]
