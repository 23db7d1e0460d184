"""Programs from files are read and compiled in a process of their own: XLA was not made for programs of strangers.

The process (`isolated_worker`) is started when it is first needed, serves one request after the other, and ends with
this one. A request on which it dies is answered with ValueError. What it found out about a module is remembered by the
digest of the module, in this process and among the compiled programs on disk.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from purax.config import config
from purax.xla import disk_cache, isolated_worker, jaxlib_api, native

MARK = "// from a file"  # before functions of a program that came from files
_PATIENCE = 20.0  # seconds for reading a module, and one more for each megabyte; then somebody means ill


class _DiedError(Exception):
    """The process ended instead of answering; perhaps because it was ended for taking too long."""

    def __init__(self, too_long: bool = False):
        self.too_long = too_long


class _Process:
    """A worker, and what was asked of it."""

    def __init__(self) -> None:
        if not sys.executable or getattr(sys, "frozen", False):
            raise OSError("sys.executable is not a Python interpreter")
        self.process = subprocess.Popen(
            [sys.executable, "-I", isolated_worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.answered = 0
        self._send({"path": sys.path, "jaxlib_api": jaxlib_api.__file__}, b"")

    def _send(self, request: Any, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            isolated_worker.write_message(self.process.stdin, request, data)
        except (BrokenPipeError, ConnectionError, ValueError):
            raise _DiedError from None

    def ask(self, request: Any, data: bytes) -> tuple[Any, bytes]:
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self.process.kill()

        timer = threading.Timer(_PATIENCE + len(data) / 1e6, expire)
        timer.daemon = True
        if request["kind"] != "compile":  # which may take as long as it does
            timer.start()
        try:
            self._send(request, data)
            assert self.process.stdout is not None
            answer = isolated_worker.read_message(self.process.stdout)
        finally:
            timer.cancel()
        if answer is None:
            raise _DiedError(expired.is_set())
        self.answered += 1
        return answer

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.process.kill()
        for file in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                file.close()  # type: ignore[union-attr]
        self.process.wait()


_lock = threading.Lock()
_worker: _Process | None = None


def _ask(request: Any, data: bytes) -> tuple[Any, bytes]:
    """The worker's answer; ValueError if it refuses, or dies of the question also when it is asked nothing else."""
    global _worker
    if not config.isolate_exported_programs:
        answer, made = isolated_worker.Worker(jaxlib_api).answer(request, data)
        return _accepted(answer), made
    with _lock:
        while True:
            if _worker is None:
                try:
                    _worker = _Process()
                except OSError as error:
                    raise RuntimeError(
                        "no process can be started that reads programs from files where a crash does not hurt "
                        f"({error}). If you trust the file, set PURAX_ISOLATE_EXPORTED_PROGRAMS=0"
                    ) from None
            was_asked_before = _worker.answered > 0
            try:
                answer, made = _worker.ask(request, data)
                break
            except BaseException as error:  # also an interrupt, after which an answer would come too late
                _worker.end()
                _worker = None
                if not isinstance(error, _DiedError):
                    raise
                if error.too_long:
                    raise ValueError("XLA needs more time to read it than any program should") from None
                if not was_asked_before:
                    raise ValueError("XLA crashes on it") from None
    return _accepted(answer), made


def _accepted(answer: Any) -> Any:
    if "refused" in answer:
        raise ValueError(answer["refused"])
    return answer


def _forget_worker() -> None:
    """A copy of the process must not share the worker's pipes, and cannot wait for it."""
    global _lock, _worker
    _lock = threading.Lock()
    if _worker is not None:
        for file in (_worker.process.stdin, _worker.process.stdout):
            os.close(file.fileno())  # type: ignore[union-attr]
            with contextlib.suppress(OSError):
                file.close()  # type: ignore[union-attr]
        _worker.process.returncode = 0
        _worker = None


@atexit.register
def _end_worker() -> None:
    if _worker is not None:
        _worker.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_worker)


class KernelCall(NamedTuple):
    """A call of a kernel, with types and attributes as StableHLO writes them."""

    target: str
    operands: list[str]
    results: list[str]
    attributes: dict[str, str]


@dataclass(frozen=True)
class ReadModule:
    """A module from a file, read where a crash does not hurt.

    Attributes:
        functions: the name and the text of each function.
        in_types, out_types: the types of arguments and results of `main`, as StableHLO writes them.
        kernel_calls: each call of a kernel.
    """

    functions: tuple[tuple[str, str], ...]
    in_types: tuple[str, ...]
    out_types: tuple[str, ...]
    kernel_calls: tuple[KernelCall, ...]


@functools.lru_cache(maxsize=128)
def read_module(data: bytes) -> ReadModule:
    """What a module in StableHLO's portable bytecode says; ValueError if it is not a program that can be run."""
    name = f"a module that was read {disk_cache.engine_build()} {_rules()} {hashlib.sha256(data).hexdigest()}"
    key = hashlib.sha256(name.encode()).digest()
    kept = disk_cache.read(key)
    if kept is not None:
        return _read_module(json.loads(kept))
    found, _ = _ask({"kind": "read"}, data)
    disk_cache.write(key, json.dumps(found).encode())
    return _read_module(found)


def refined_module(data: bytes, in_types: Sequence[str]) -> bytes:
    """A module with dynamic dimensions, for arguments of fixed types; ValueError if these do not fit."""
    return _ask({"kind": "refine", "types": list(in_types)}, data)[1]


def module_text(data: bytes) -> str:
    """A module in StableHLO's portable bytecode as text."""
    return _ask({"kind": "print"}, data)[1].decode()


def _read_module(found: Any) -> ReadModule:
    return ReadModule(
        tuple((own, text) for own, text in found["functions"]),
        tuple(found["in_types"]),
        tuple(found["out_types"]),
        tuple(KernelCall(*call) for call in found["kernel_calls"]),
    )


@functools.cache
def _rules() -> str:
    """What is asked of a module; a verdict holds for that."""
    with contextlib.suppress(OSError), open(isolated_worker.__file__, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
    return "unknown"


def compiles(text: str, devices: Sequence[Any]) -> bool:
    """Whether a program is to be compiled by `compile_program`: it came from a file, and is for one CPU device."""
    return (
        MARK in text
        and len(devices) == 1
        and devices[0].platform == "cpu"
        and config.isolate_exported_programs
    )


def compile_program(text: str, options: Any, needs_lapack: bool, callbacks: int) -> bytes:
    """The serialized executable of a program; ValueError if it cannot be compiled.

    Args:
        text: the program.
        options: XLA's options, without a device.
        needs_lapack: whether it calls LAPACK.
        callbacks: the number of Python functions that it calls.
    """
    kernels = native.registered(text)
    request = {
        "kind": "compile",
        "options": options.SerializeAsString().hex(),
        "threads": config.cpu_threads,
        "lapack": needs_lapack,
        "library": str(native.FOLDER / "kernels.so") if kernels else None,
        "kernels": kernels,
        "callbacks": callbacks,
    }
    try:
        return _ask(request, text.encode())[1]
    except ValueError as error:
        raise ValueError(f"the exported function cannot be compiled: {error}") from None
