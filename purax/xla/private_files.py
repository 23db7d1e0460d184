"""Files that hold machine code: read only where nobody but the user, or root, can have written them.

Nothing but a regular file is opened, links are not followed, and what was opened is checked again, so that to exchange
a file meanwhile gains nothing. The signing key of a folder is made once, by whichever process comes first. All
functions raise OSError; `UntrustedFile` is the one that says why a file is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
import time

KEY_NAME = "signing.key"
_SECRET = 32  # bytes of a key; the file also has their SHA-256, which tells a damaged file
_READ_ONLY = 0o444  # how an administrator publishes the key of a folder that is shared
_OPEN = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class UntrustedFile(PermissionError):
    """A file or folder that another user can have written, or a key that another user can have read."""


def _user() -> int | None:
    """Who runs this process; None on systems without user numbers."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to the user."""
    return _user() in (None, status.st_uid)


def _refuse_others(path: str, status: os.stat_result) -> None:
    """Raises unless only the user and root can write a file or folder."""
    user = _user()
    if user is None:
        return
    if status.st_uid not in (user, 0):
        raise UntrustedFile(f"{path} belongs to user {status.st_uid}, and user {user} runs this process")
    if status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        raise UntrustedFile(
            f"{path} can be written by other users (mode {mode:04o}); `chmod go-w {path}` forbids it"
        )


def check_folder(path: str) -> os.stat_result:
    """What `os.stat` says of a folder that only the user or root can write; others raise."""
    status = os.stat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{path} is not a folder")
    _refuse_others(path, status)
    return status


def read_file(path: str) -> tuple[bytes, os.stat_result]:
    """The content of a file that only the user or root can write, and what `os.stat` says of it."""
    _refuse_special(path, os.lstat(path))  # opening a device can already do something
    descriptor = os.open(path, os.O_RDONLY | _OPEN)
    try:
        status = os.fstat(descriptor)
        _refuse_special(path, status)
        _refuse_others(path, status)
        parts, left = [], status.st_size
        while left > 0:
            part = os.read(descriptor, left)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts), status
    finally:
        os.close(descriptor)


def _refuse_special(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UntrustedFile(f"{path} is not a regular file, and is not opened")


def write_file(path: str, *parts: bytes) -> None:
    """Makes a new file that only the user can read, with these bytes on disk when it returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, 0o600)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                written = os.write(descriptor, rest)
                if written <= 0:
                    raise OSError(f"nothing more can be written to {path}")
                rest = rest[written:]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: str, *parts: bytes) -> None:
    """Writes a file aside and renames it, so that others see the old one, or all of the new one."""
    temporary = temporary_path(os.path.dirname(path))
    try:
        write_file(temporary, *parts)
        os.replace(temporary, path)
    except BaseException:
        remove_file(temporary)
        raise


def remove_file(path: str) -> None:
    """Removes a file if that is possible."""
    with contextlib.suppress(OSError, MemoryError):
        os.unlink(path)


def _host() -> str:
    """Where process numbers mean something: this machine, in a name for files."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return hashlib.sha256(name.encode(errors="replace")).hexdigest()[:12]


def temporary_path(directory: str) -> str:
    """A name for a file that is being written; it tells who writes it."""
    return os.path.join(
        directory, f"write-{_host()}-{os.getpid()}-{threading.get_ident()}-{time.time_ns()}.tmp"
    )


def is_left_over(name: str, age: float) -> bool:
    """Whether a file was being written by a process that died; `age` is the time since its last change, in seconds.

    Files that others call `*.tmp` are theirs, and of a process on another machine only the age tells anything.
    """
    parts = name.removesuffix(".tmp").split("-")
    if len(parts) != 5 or parts[0] != "write" or not name.endswith(".tmp") or not parts[2].isdecimal():
        return False
    if parts[1] != _host():
        return age > 7 * 24 * 3600
    return age > 3600 and not _is_alive(int(parts[2]))


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return False  # there, a file that is open cannot be removed
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True  # somebody else's
    return True


# -- the key of a folder


def read_key(directory: str) -> bytes | None:
    """The key that files of a folder are signed with; None if there is none yet, or it is damaged.

    A key that other users can have read raises. Root may publish one by mode 0444: whoever knows it still cannot write
    into the folder.
    """
    path = os.path.join(directory, KEY_NAME)
    try:
        content, status = read_file(path)
    except FileNotFoundError:
        return None
    mode = stat.S_IMODE(status.st_mode)
    is_published = status.st_uid == 0 and mode == _READ_ONLY
    if _user() is not None and mode & 0o077 and not is_published:
        raise UntrustedFile(
            f"the key {path} can be read by other users (mode {mode:04o}), who could sign programs with it"
        )
    secret = content[:_SECRET]
    return secret if content == secret + hashlib.sha256(secret).digest() and len(secret) == _SECRET else None


def make_key(directory: str) -> bytes:
    """The key of a folder, which is made if there is none, or none that can be used.

    If several processes make one at once, all of them get the one that came first.
    """
    with contextlib.suppress(OSError):
        known = read_key(directory)
        if known is not None:
            return known
    path = os.path.join(directory, KEY_NAME)
    secret = os.urandom(_SECRET)
    temporary = temporary_path(directory)
    try:
        write_file(temporary, secret, hashlib.sha256(secret).digest())
        _put_first(temporary, path, directory)
    finally:
        remove_file(temporary)
    known = read_key(directory)
    if known is None:
        raise OSError(f"the key {path} cannot be made")
    return known


def _put_first(temporary: str, path: str, directory: str) -> None:
    """Gives a file its name unless a good key has it already; a bad one is replaced."""
    try:
        os.link(temporary, path)
        return
    except FileExistsError:
        pass
    except OSError:  # a file system without links: the last one wins, and what was signed before is a miss
        os.replace(temporary, path)
        return
    with contextlib.suppress(OSError):
        if read_key(directory) is not None:
            return  # another process was first
    os.replace(temporary, path)
