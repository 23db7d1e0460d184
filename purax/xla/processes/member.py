"""This process as a member of a group: agreeing with the others, and noticing that one of them is lost.

A thread listens to the coordinator. When a process is lost, or the coordinator itself, every wait here ends with a
`ProcessLostError`; a main thread that does not get to see it is interrupted, and where it cannot be, because it waits
inside XLA, the process ends itself with the message. So nobody waits for the dead.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import os
import re
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from purax.core import source
from purax.errors import ProcessLostError, ProgramMismatchError
from purax.xla import interruptible_calls, jaxlib_api
from purax.xla.processes import wire
from purax.xla.processes.group import names

logger = logging.getLogger("purax")

# Seconds after a loss: when the main thread is interrupted; when the process ends itself because the interruption did
# not get through; and when it does although the main thread knows, and has had time to clean up.
INTERRUPT_AFTER = 2.0
END_STUCK_AFTER = 5.0
END_AFTER = 20.0


class Launch:
    """The start of a program in which processes wait for each other.

    Attributes:
        key, count: which processes, and the number of the program among those that they run together.
        loaded: the program.
        where: the user's line.
        began: when, by `time.monotonic`, or when the others were asked why it takes so long.
        token: what is ready when the program is done; None while it is being started.
    """

    __slots__ = ("began", "count", "key", "loaded", "token", "where")

    def __init__(self, key: str, count: int, loaded: Any, where: Any):
        self.key, self.count, self.loaded, self.where = key, count, loaded, where
        self.began = time.monotonic()
        self.token: Any = None

    def name(self) -> str:
        """The name of the program, as its text says it."""
        found = re.match(r"HloModule (?:jit_)?([\w.<>-]+)", self.loaded.get_hlo_text())
        return f"`{found[1]}`" if found else "a program"


def _is_done(token: Any) -> bool:
    """Whether a program has ended, well or badly; asked in another thread, since nobody can leave the wait."""

    def wait() -> None:
        with contextlib.suppress(jaxlib_api.EngineError, ValueError):
            token.block_until_ready()

    waiting = threading.Thread(target=wait, name="purax-wait", daemon=True)
    waiting.start()
    waiting.join(0.5)
    return not waiting.is_alive()


class Member:
    """The membership of this process, made by `joining.join`.

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
        self.own_address: str = connection.getsockname()[
            0
        ]  # the one by which this machine reaches the others
        self.engine: Any = None
        self.lost: str | None = None
        self.lost_ids: list[int] = []
        self.has_coordinator = True
        self.can_wake = False
        self.is_regrouping = False
        self.joined_by: dict[str, Any] = {}
        self.collective_timeout = float("inf")
        self._last: Launch | None = None
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
        self._send_encoded(wire.encode(message))

    def _send_encoded(self, data: bytes) -> None:
        try:
            with self._send_lock:
                self._connection.sendall(data)
        except OSError:
            pass  # the listening thread finds out why

    def listen(self, frames: wire.Frames) -> None:
        """What the thread does: hears messages until the group ends.

        Arguments:
            frames: what was heard before.
        """
        self._connection.settimeout(None)
        threading.Thread(target=self._beat, name="purax-heartbeat", daemon=True).start()
        ready = select.poll()  # has no limit to the number of a file, as `select.select` has
        ready.register(self._connection, select.POLLIN)
        period = min(1.0, self._heartbeat / 4)
        heard = then = time.monotonic()
        how = "its connection closed"
        try:
            while self.has_coordinator and not self._is_closed:
                is_ready = ready.poll(1000 * period)
                now = time.monotonic()
                # If this process itself was stopped, the coordinator was not silent meanwhile.
                heard += now - then - period if now - then > 2 * period else 0.0
                then = now
                if is_ready:
                    data = self._connection.recv(1 << 20)
                    if not data:
                        break
                    heard = now
                    for message in frames.feed(data):
                        self.hear(message)
                elif now - heard > self._heartbeat:
                    self._lose_coordinator(f"there was no sign of life from it for {self._heartbeat:g} s")
        except OSError:
            pass
        except Exception as error:
            how = f"it said what is not understood, {error!r}"
        if self.has_coordinator and not self._is_closed:
            self._lose_coordinator(how)

    def _beat(self) -> None:
        # Also after a loss, while the process ends in its own time: nobody shall take it for the one that was lost.
        while not self._is_closed:
            self.send(kind="beat")
            self._look_for_stuck()
            time.sleep(min(5.0, self._heartbeat / 4, self.collective_timeout / 4))

    def hear(self, message: dict[str, Any]) -> None:
        """Does what a message of the coordinator says."""
        kind = message["kind"]
        if kind in ("gathered", "ended", "too large"):
            with self._news:
                self._answers[message["key"]] = message
                self._news.notify_all()
        elif kind == "leaving":
            self._left[message["id"]] = message["launched"]
            for key, count in list(self._launched.items()):
                self._check_launch(key, count)
        elif kind == "where":
            self._tell_where()
        elif kind == "lost":
            self.lost_ids.append(message["id"])
            self._lose(f"process {message['id']} ({message['where']}) is lost: {message['reason']}")
        elif kind == "expelled":
            self._lose(f"process {self.id}, this one, was taken for lost by its group: {message['reason']}")

    # -- losing a process

    def _lose_coordinator(self, how: str) -> None:
        self.has_coordinator = False
        with self._news:
            self._news.notify_all()
        self._lose(
            f"the coordinator of the group is lost: {how}. It is a process of its own beside process 0, and lives as "
            "long as any process of the group, unless it is killed"
        )
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)  # ends a wait to send to it

    def _lose(self, reason: str) -> None:
        """Notes the loss, and sees to it that this process ends."""
        with self._news:
            if self.lost is not None or self._is_closed:
                return
            self.lost = reason
            self._news.notify_all()
        interruptible_calls.note_loss()
        threading.Thread(target=self._end, name="purax-lost-process", daemon=True).start()

    def _end(self) -> None:
        time.sleep(INTERRUPT_AFTER)
        if not self._seen:
            self._interrupt_main_thread()
        time.sleep(END_STUCK_AFTER - INTERRUPT_AFTER)
        if self._seen:
            time.sleep(END_AFTER - END_STUCK_AFTER)
        if not self._is_closed and not self.is_regrouping:
            # The main thread waits inside XLA for a process that is not there.
            os.write(2, f"purax: process {self.id} ends itself: {self.lost}\n".encode())
            os._exit(1)

    def _interrupt_main_thread(self) -> None:
        """Raises the error in the main thread, when it next runs a line of Python; a wait of Python's ends for it."""
        text = self._loss_text()

        def initialize(error: ProcessLostError) -> None:
            self._seen = True
            ProcessLostError.__init__(error, text)

        names = {"__init__": initialize, "__module__": "purax.errors", "__doc__": ProcessLostError.__doc__}
        failure = type("ProcessLostError", (ProcessLostError,), names)
        main_thread = ctypes.c_ulong(threading.main_thread().ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(main_thread, ctypes.py_object(failure))
        if self.can_wake:
            signal.pthread_kill(main_thread.value, signal.SIGURG)

    def prepare_to_wake(self) -> None:
        """Gives a signal that nobody uses a handler that does nothing, but runs a line of Python.

        A thread in which XLA aborts, because a member is lost in the middle of a collective, waits for the news.
        """
        interruptible_calls.park_aborts()
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGURG"):
            if signal.getsignal(signal.SIGURG) is signal.SIG_DFL:
                signal.signal(signal.SIGURG, _wake)
            self.can_wake = signal.getsignal(signal.SIGURG) is _wake

    def _loss_text(self) -> str:
        return (
            f"{self.lost}. Process {self.id} cannot go on alone; restart the group from its last checkpoint, or form "
            "one of those that are left: `purax.distributed.reinitialize()`."
        )

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

    def wait_for(self, function: Callable[[], Any]) -> Any:
        """The result of a function that waits inside XLA for other processes; if one is lost, the error comes at once.

        It runs in a thread, since nothing can interrupt it.
        """
        results: list[Any] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(function())
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run, name="purax-wait", daemon=True)
        thread.start()
        while thread.is_alive():
            self.check()
            thread.join(0.1)
        if errors:
            self.check()
            raise errors[0]
        return results[0]

    # -- programs

    def count_launch(self, key: str, loaded: Any) -> Launch:
        """Notes that a program over the processes of `key` starts; raises if one of them is not there to take part.

        Who starts it gives the launch its token, when it has one.
        """
        self.check()
        count = self._launched[key] = self._launched.get(key, 0) + 1
        if self._left:
            self._check_launch(key, count)
            self.check()
        launch = self._last = Launch(key, count, loaded, source.user_location())
        return launch

    # -- programs that others do not start

    def _look_for_stuck(self) -> None:
        """Asks where the others are if the last program that this process has started waits for too long."""
        launch = self._last
        if launch is None or time.monotonic() - launch.began < self.collective_timeout:
            return
        if launch.token is not None and _is_done(launch.token):
            self._last = None
            return
        launch.began = time.monotonic()  # it is asked again if that was in vain
        self.send(
            kind="stuck",
            key=launch.key,
            count=launch.count,
            what=f"{launch.name()}, which process {self.id} started at {launch.where}",
            seconds=self.collective_timeout,
        )

    def _tell_where(self) -> None:
        """Says which programs this process has started, and at which line of the user's it is."""
        main_thread = threading.main_thread().ident or 0
        frame = source.user_frame(sys._current_frames().get(main_thread))
        where = "" if frame is None else str(source.location_of(frame))
        launch = self._last
        waits = launch is not None and (launch.token is None or not _is_done(launch.token))
        self.send(kind="here", launched=dict(self._launched), where=where, waits=waits)

    def _check_launch(self, key: str, count: int) -> None:
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

    def differing(self, kind: str, text: str, what: str) -> list[str] | None:
        """The texts of all processes, or None if they are the same; only then are they sent at all."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        if len(set(self.gather(kind, digest, what=what))) == 1:
            return None
        return self.gather(f"{kind} in full", text, what=what)

    def gather(self, kind: str, value: Any, among: Sequence[int] | None = None, what: str = "") -> list[Any]:
        """The values that all processes (or those of `among`) give to the same call, in order of the processes.

        Values are what JSON can say, up to `wire.VALUE_LIMIT` bytes; larger ones are an error on every process.
        """
        among = list(range(self.count)) if among is None else list(among)
        family = f"{kind} {','.join(map(str, among))}"
        number = self._numbers[family] = self._numbers.get(family, 0) + 1
        key = f"{family} #{number}"
        self.check()
        data = wire.encode({"kind": "gather", "key": key, "among": among, "value": value})
        if len(data) > wire.VALUE_LIMIT:
            data = wire.encode({"kind": "gather", "key": key, "among": among, "too large": len(data)})
        self._send_encoded(data)
        answer = self._wait_for(key, what)
        if answer["kind"] == "ended":
            raise ProcessLostError(
                f"process {self.id} is {what or 'waiting'}, but {names(answer['ids'])} reached the end of the program "
                "and will not: all processes must do this together"
            )
        if answer["kind"] == "too large":
            raise ValueError(
                f"what the processes tell each other {what} is too large: {answer['who']} {answer['bytes']} bytes. "
                f"The limit is {wire.VALUE_LIMIT} bytes for one process and {wire.ANSWER_LIMIT} for all; send large "
                "data as arrays"
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

    # -- going on without who is lost

    def regroup(self, offer: dict[str, Any], within: float) -> dict[str, Any]:
        """Who else goes on after a loss, and where the next group meets: where the first of them has offered.

        Arguments:
            offer: a place for the coordinator on the machine of this process.
            within: how long to wait for the others, in seconds; who does not come by then is lost, too.
        """
        self._seen = True  # who asks knows of the loss, and has all the time it needs
        self.is_regrouping = True
        deadline = time.monotonic() + within + 10.0  # of the coordinator's own clock
        self.send(kind="regroup", offer=offer, within=within)
        with self._news:
            while wire.REGROUP not in self._answers:
                if not self.has_coordinator:
                    raise ProcessLostError(
                        f"{self._loss_text()} The coordinator is lost as well, through which the others would be found"
                    )
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the coordinator did not answer within {within:g} s")
                self._news.wait(0.2)
            return self._answers.pop(wire.REGROUP)["values"]

    def abandon(self) -> None:
        """Gives the group up, of which some member is lost, without waiting for anybody."""
        self._is_closed = True  # whatever becomes of the group is no news
        leaving = threading.Thread(target=self._leave_engine, name="purax-leave", daemon=True)
        leaving.start()
        leaving.join(5.0)
        self._connection.close()

    def _leave_engine(self) -> None:
        with contextlib.suppress(jaxlib_api.EngineError):
            self.engine.shutdown()

    # -- leaving

    def leave(self, failure: str | None = None) -> None:
        """Ends the membership: waits for the others first, unless this process failed or another one is lost."""
        if self._is_closed:
            return
        if failure is not None and self.lost is None:
            self._is_closed = True  # that the group then takes this process for lost is no news
            self.send(kind="failed", reason=failure)
        else:
            waits = self.lost is None
            self.send(kind="leaving", launched=self._launched, waits=waits)
            if waits:
                self._wait_for_the_others()
        if self.engine is not None:
            try:
                self.engine.shutdown()
            except jaxlib_api.EngineError as error:
                logger.debug("XLA's part of the group did not end in order: %s", error)
        self._is_closed = self._is_closed or self.lost is None

    def _wait_for_the_others(self) -> None:
        try:
            self._wait_for(wire.EXIT, "to end", self.shutdown_timeout)
        except TimeoutError as error:
            logger.warning("process %d ends although %s", self.id, error)
        except ProcessLostError as error:
            logger.warning("at the end of process %d: %s", self.id, error)

    def close(self) -> None:
        """Gives up the connection; at the end of the process the system does it, when all threads have stopped."""
        self._is_closed = True
        self._connection.close()


def _wake(number: int, frame: FrameType | None) -> None:
    pass


def _mismatch(processes: Sequence[int], told: Sequence[Any]) -> str:
    """How the programs of processes differ."""
    by_name: dict[Any, list[int]] = {}
    for process, (name, _, _) in zip(processes, told, strict=True):
        by_name.setdefault(name, []).append(process)
    if len(by_name) > 1:
        each = "; ".join(f"{names(ids)}: {name}" for name, ids in by_name.items())
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
        each = "; ".join(f"{names(ids)}: {types}" for types, ids in by_types.items())
        return (
            f"the processes run {name} with different arguments: {each}. Shapes, dtypes and meshes must agree on all "
            "of them"
        )
    same = "; ".join(names(ids) for ids in by_text.values())
    return (
        f"the processes run different programs for {name}: it does not come out the same on {same}. Something in "
        "it depends on the process, such as process_index() in an `if`, a random number of the host, or a mesh"
    )
