"""This process as a member of a group: joining it, agreeing with the others, and noticing that one of them is lost.

A thread listens to the coordinator. When a process is lost, every wait here ends with a `ProcessLostError`; a main
thread that does not get to see it is interrupted, and where it cannot be, because it waits inside the engine, the
process ends itself with the message. So nobody waits for the dead.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from purax.errors import ProcessLostError, ProgramMismatchError
from purax.xla import coordinator, door, execute, group

logger = logging.getLogger("purax")

# Seconds after a loss: when the main thread is interrupted; when the process ends itself because the interruption did
# not get through; and when it does although the main thread knows, and has had time to clean up.
INTERRUPT_AFTER = 2.0
END_STUCK_AFTER = 5.0
END_AFTER = 20.0


class Member:
    """The membership of this process, made by `join`.

    Arguments:
        connection: to the coordinator.
        id: the number of this process.
        count: how many there are.
        shutdown_timeout: how long to wait for the others at the end, in seconds.
        heartbeat: how long the coordinator may be silent, in seconds.
    """

    def __init__(
        self, connection: socket.socket, id: int, count: int, shutdown_timeout: float, heartbeat: float
    ):
        self.id = id
        self.count = count
        self.shutdown_timeout = shutdown_timeout
        self.engine: Any = None
        self.lost: str | None = None
        self._seen = False
        self._connection = connection
        self._heartbeat = heartbeat
        self._send_lock = threading.Lock()
        self._news = threading.Condition()
        self._answers: dict[str, dict[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        self._launched: dict[str, int] = {}
        self._left: dict[int, dict[str, int]] = {}
        self._agreed: set[bytes] = set()
        self._is_closed = False

    # -- talking

    def send(self, **message: Any) -> None:
        try:
            with self._send_lock:
                self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the listening thread finds out why

    def listen(self, reader: Any) -> None:
        """What the thread does: hears messages until the group ends."""
        self._connection.settimeout(None)
        threading.Thread(target=self._beat, name="purax-heartbeat", daemon=True).start()
        try:
            for line in reader:
                self._hear(json.loads(line))
                if self.lost is not None:
                    break
        except (OSError, ValueError):
            pass
        if self.lost is None and not self._is_closed:
            self._lose(
                "the coordinator of the group is lost: its connection closed. It is a process of its own beside "
                "process 0, and lives as long as any process of the group, unless it is killed"
            )

    def _beat(self) -> None:
        # Also after a loss, until the process has ended: the coordinator must not take it for dead and go, since the
        # engine aborts processes that wait in it when its service is gone.
        while not self._is_closed:
            self.send(kind="beat")
            time.sleep(min(5.0, self._heartbeat / 4))

    def _hear(self, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind in ("gathered", "ended"):
            with self._news:
                self._answers[message["key"]] = message
                self._news.notify_all()
        elif kind == "leaving":
            self._left[message["id"]] = message["launched"]
            for key, count in list(self._launched.items()):
                self._check_launch(key, count, wait=True)
        elif kind == "lost":
            self._lose(f"process {message['id']} ({message['where']}) is lost: {message['reason']}")

    # -- losing a process

    def _lose(self, reason: str) -> None:
        """Notes the loss, and sees to it that this process ends."""
        with self._news:
            if self.lost is not None or self._is_closed:
                return
            self.lost = reason
            self._news.notify_all()
        threading.Thread(target=self._end, name="purax-lost-process", daemon=True).start()

    def _end(self) -> None:
        time.sleep(INTERRUPT_AFTER)
        if not self._seen:
            self._interrupt_main_thread()
        time.sleep(END_STUCK_AFTER - INTERRUPT_AFTER)
        if self._seen:
            time.sleep(END_AFTER - END_STUCK_AFTER)
        if not self._is_closed:
            # The main thread waits inside the engine for a process that is not there.
            os.write(2, f"purax: process {self.id} ends itself: {self.lost}\n".encode())
            os._exit(1)

    def _interrupt_main_thread(self) -> None:
        """Raises the error in the main thread, when it next runs a line of Python."""
        text = self._loss_text()

        def initialize(error: ProcessLostError) -> None:
            self._seen = True
            ProcessLostError.__init__(error, text)

        names = {"__init__": initialize, "__module__": "purax.errors", "__doc__": ProcessLostError.__doc__}
        failure = type("ProcessLostError", (ProcessLostError,), names)
        main_thread = ctypes.c_ulong(threading.main_thread().ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(main_thread, ctypes.py_object(failure))

    def _loss_text(self) -> str:
        return f"{self.lost}. Process {self.id} cannot go on without it; restart the group from its last checkpoint."

    def loss(self) -> ProcessLostError:
        """The error that says who is lost."""
        self._seen = True
        return ProcessLostError(self._loss_text())

    def check(self) -> None:
        """Raises if a process is lost."""
        if self.lost is not None:
            raise self.loss()

    def wait_for_loss(self, seconds: float) -> bool:
        """Waits for the news that a process is lost."""
        with self._news:
            return self._news.wait_for(lambda: self.lost is not None, seconds)

    # -- programs

    def count_launch(self, key: str) -> None:
        """Notes that a program over the processes of `key` starts; raises if one of them is not there to take part."""
        self.check()
        count = self._launched[key] = self._launched.get(key, 0) + 1
        if self._left:
            self._check_launch(key, count)
            self.check()

    def _check_launch(self, key: str, count: int, wait: bool = False) -> None:
        for i, launched in self._left.items():
            if str(i) in key.split(",") and count > launched.get(key, 0):
                self._lose(
                    f"process {i} has reached the end of its program, and never starts the program that process "
                    f"{self.id} runs together with it: number {count}, of process {i} there were only "
                    f"{launched.get(key, 0)}. All processes must run the same programs equally often"
                )

    def agree(self, name: str, text: str, processes: Sequence[int]) -> None:
        """Raises, on every process, unless all that take part are about to run the same program."""
        digest = hashlib.sha256(text.encode()).digest()
        if digest in self._agreed:
            return
        signature = re.search(r"@main\((.*)", text)
        types = " ".join(re.findall(r"tensor<[^>]*>", signature[1]))[:600] if signature else ""
        told = self.gather("program", [name, digest.hex(), types], processes, f"to run {name}")
        if len({value[1] for value in told}) > 1:
            raise ProgramMismatchError(_mismatch(processes, told))
        self._agreed.add(digest)

    def gather(self, kind: str, value: Any, among: Sequence[int] | None = None, what: str = "") -> list[Any]:
        """The values that all processes (or those of `among`) give to the same call, in order of the processes."""
        among = list(range(self.count)) if among is None else list(among)
        family = f"{kind} {','.join(map(str, among))}"
        number = self._numbers[family] = self._numbers.get(family, 0) + 1
        key = f"{family} #{number}"
        self.check()
        self.send(kind="gather", key=key, among=among, value=value)
        answer = self._wait_for(key, what)
        if answer["kind"] == "ended":
            ended = coordinator.names(answer["ids"])
            raise ProcessLostError(
                f"process {self.id} is {what or 'waiting'}, but {ended} reached the end of the program and will "
                "not: all processes must do this together"
            )
        return answer["values"]

    def _wait_for(self, key: str, what: str, timeout: float | None = None) -> dict[str, Any]:
        start = time.monotonic()
        warned = False
        with self._news:
            while key not in self._answers:
                if self.lost is not None:
                    raise self.loss()
                # Short waits, so that Ctrl-C gets through.
                self._news.wait(0.2)
                waited = time.monotonic() - start
                if timeout is not None and waited > timeout:
                    raise TimeoutError(f"the other processes did not come within {timeout:g} s")
                if waited > 30 and not warned and timeout is None:
                    warned = True
                    logger.warning("process %d has waited 30 s for the other processes %s", self.id, what)
            return self._answers.pop(key)

    # -- leaving

    def leave(self, failure: str | None = None) -> None:
        """Ends the membership: waits for the others first, unless this process failed or another one is lost."""
        if self._is_closed:
            return
        if failure is not None and self.lost is None:
            self.send(kind="failed", reason=failure)
        else:
            self.send(kind="leaving", launched=self._launched)
        if failure is None and self.lost is None:
            among = list(range(self.count))
            self.send(kind="gather", key="exit", among=among, value=None)
            try:
                self._wait_for("exit", "to end", self.shutdown_timeout)
            except TimeoutError as error:
                logger.warning("process %d ends although %s", self.id, error)
            except ProcessLostError as error:
                logger.warning("at the end of process %d: %s", self.id, error)
        if self.engine is not None:
            try:
                # Before the coordinator may go: the engine ends processes that miss it.
                self.engine.shutdown()
            except door.EngineError as error:
                logger.debug("the engine's part of the group did not end in order: %s", error)
        self._is_closed = self.lost is None

    def close(self) -> None:
        """Gives up the connection; at the end of the process the system does it, when all threads have stopped."""
        self._is_closed = True
        self._connection.close()


def _mismatch(processes: Sequence[int], told: Sequence[Any]) -> str:
    """How the programs of processes differ."""
    by_name: dict[Any, list[int]] = {}
    for process, (name, _, _) in zip(processes, told, strict=True):
        by_name.setdefault(name, []).append(process)
    if len(by_name) > 1:
        each = "; ".join(f"{coordinator.names(ids)}: {name}" for name, ids in by_name.items())
        return (
            f"the processes are about to run different programs together: {each}. All must run the same, in the same "
            "order"
        )
    name = told[0][0]
    by_types: dict[Any, list[int]] = {}
    by_text: dict[Any, list[int]] = {}
    for process, (_, digest, types) in zip(processes, told, strict=True):
        by_types.setdefault(types, []).append(process)
        by_text.setdefault(digest, []).append(process)
    if len(by_types) > 1:
        each = "; ".join(f"{coordinator.names(ids)}: {types}" for types, ids in by_types.items())
        return (
            f"the processes run {name} with different arguments: {each}. Shapes, dtypes and meshes must agree on all "
            "of them"
        )
    same = "; ".join(coordinator.names(ids) for ids in by_text.values())
    return (
        f"the processes run different programs for {name}: it does not come out the same on {same}. Something in "
        "it depends on the process, such as process_index() in an `if`, a random number of the host, or a mesh"
    )


def join(
    host: str,
    port: int,
    count: int,
    id: int,
    *,
    bind: str | None,
    initialization: float,
    heartbeat: float,
    shutdown: float,
) -> Member:
    """Makes this process number `id` of `count`; returns when all are there.

    Arguments:
        host, port: where the coordinator is, which process 0 starts.
        bind: the address that it listens at.
        initialization, heartbeat, shutdown: timeouts in seconds.
    """
    deadline = time.monotonic() + initialization
    if id == 0:
        _start_coordinator(
            bind or ("127.0.0.1" if is_loopback(host) else "::"), port, count, initialization, heartbeat
        )
    connection = _connect(host, port, deadline, id)
    coordinator.keep_alive(connection, heartbeat)
    member = Member(connection, id, count, shutdown, heartbeat)
    member.send(
        kind="hello", id=id, count=count, engine=door.version, host=socket.gethostname(), pid=os.getpid()
    )
    # The coordinator keeps the time; it is a little more patient than we would be.
    connection.settimeout(max(deadline - time.monotonic(), 0) + 10)
    reader = connection.makefile("rb")
    try:
        answer = json.loads(
            reader.readline()
            or b'{"kind": "refused", "reason": "the coordinator, which process 0 starts, ended"}'
        )
    except TimeoutError:
        answer = {"kind": "refused", "reason": "the coordinator does not answer"}
    except OSError as error:
        answer = {
            "kind": "refused",
            "reason": f"the coordinator, which process 0 starts, is gone: {error.strerror}",
        }
    if answer["kind"] == "refused":
        connection.close()
        raise RuntimeError(f"process {id} cannot join the group at {host}:{port}: {answer['reason']}")
    # First the ears: a process may die while we wait for it in the engine.
    threading.Thread(target=member.listen, args=(reader,), name="purax-group", daemon=True).start()
    try:
        left = max(int(deadline - time.monotonic()), 5)
        address = f"{coordinator.bracketed(host)}:{answer['port']}"
        member.engine = door.connect_to_service(address, id, coordinator.engine_heartbeat(heartbeat), left)
    except door.EngineError as error:
        raise RuntimeError(f"process {id} cannot reach the engine's service: {error}") from None
    group.current = member
    atexit.register(_leave_at_exit)
    return member


def _start_coordinator(host: str, port: int, count: int, initialization: float, heartbeat: float) -> None:
    settings = {
        "host": host,
        "port": port,
        "count": count,
        "initialization": initialization,
        "heartbeat": heartbeat,
    }
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", "from purax.xla.coordinator import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it may outlive this process, and must not hold on to its output
        text=True,
        env=environment,
    )
    assert process.stdin is not None and process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline().strip()
    process.returncode = 0  # it outlives this object, on purpose
    if "in use" in answer:
        return  # another process 0 has one; it will tell both
    if answer != "ready":
        raise RuntimeError(
            f"the coordinator at {host}:{port} could not start: {answer or 'it ended at once'}"
        )


def _connect(host: str, port: int, deadline: float, id: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection((host, port), timeout=max(deadline - time.monotonic(), 0.1))
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"process {id} found no coordinator at {host}:{port} ({error}). Process 0 starts it: is it "
                    "running, with the same coordinator_address, and is that an address of its machine?"
                ) from None
            time.sleep(0.05)


def is_loopback(host: str) -> bool:
    """Whether an address reaches this machine only."""
    return host == "localhost" or host.startswith("127.") or host == "::1"


def _leave_at_exit() -> None:
    member = group.current
    if member is None:
        return
    error = getattr(sys, "last_value", None)
    if error is None:
        execute.wait_for_programs()
    member.leave(None if error is None else f"{type(error).__name__}: {error}"[:2000])
