"""`purax launch`: starts a group of processes on this machine and looks after it.

Every process gets the environment from which `purax.distributed.initialize()` knows its place, and a secret by which
they know each other. Their output comes line
by line with the number of the process before it. When one process fails, the others have some seconds to end by
themselves, which they do with an error that names it, and are then ended. Signals go to all of them.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import IO, Any

from purax.xla.processes.addresses import free_port
from purax.xla.processes.coordinator import never_came, stand_in, tell_of_death

GRACE_SECONDS = 25.0
KILL_SECONDS = 5.0
_NOISE = (b"[Gloo] Rank ",)

USAGE = """usage: purax launch -n COUNT [--devices D] [--grace SECONDS] [--elastic] [--no-prefix] SCRIPT [ARGUMENT ...]
       purax launch -n COUNT [...] -m MODULE [ARGUMENT ...]

Starts COUNT processes of a Python program on this machine, in which purax.distributed.initialize() needs no arguments.
  -n, --processes COUNT  the number of processes
  --devices D            the number of CPU devices of each process
  --grace SECONDS        how long the others may go on when one has failed (25)
  --elastic              the others go on when one has failed, if they can (purax.distributed.reinitialize)
  --no-prefix            leave the output as it is, without the number of the process
Returns the exit code of the process that failed first, 128 + the number of the signal if one ended it; else 0.
With --elastic it is 0 if any process ended well."""


class Launcher:
    """A group of processes on this machine.

    Args:
        command: the command that each process runs.
        count: the number of processes.
        environment: the environment variables to start from.
        grace: how many seconds the others may go on when one has failed.
        prefix: whether the number of the process stands before each line of output.
        elastic: whether the others may go on for as long as they like, and one that ends well is enough.
    """

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        environment: Mapping[str, str],
        grace: float = GRACE_SECONDS,
        prefix: bool = True,
        elastic: bool = False,
    ):
        self.command = list(command)
        self.count = count
        self.environment = dict(environment)
        self.grace = grace
        self.prefix = prefix
        self.elastic = elastic
        self.processes: list[subprocess.Popen[bytes]] = []
        self._output = threading.Lock()
        self._changed = threading.Event()
        self._signal: int | None = None

    def run(self) -> int:
        """Starts the group and returns its exit code when the last process has ended."""
        self._port = free_port("127.0.0.1")
        self._secret = self.environment.get("PURAX_GROUP_SECRET") or secrets.token_hex(32)
        handled = {n: signal.signal(n, self._forward) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        threads = []
        try:
            for number in range(self.count):
                environment = {
                    **self.environment,
                    "PURAX_COORDINATOR_ADDRESS": f"127.0.0.1:{self._port}",
                    "PURAX_GROUP_SECRET": self._secret,
                    "PURAX_NUM_PROCESSES": str(self.count),
                    "PURAX_PROCESS_ID": str(number),
                    "PYTHONUNBUFFERED": "1",
                }
                process = subprocess.Popen(
                    self.command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C reaches it through us, once
                    preexec_fn=_end_with_the_launcher(),  # noqa: PLW1509 (no thread of ours runs yet)
                )
                self.processes.append(process)
            for number, process in enumerate(self.processes):
                for stream, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                    thread = threading.Thread(
                        target=self._copy, args=(number, stream, target.buffer), daemon=True
                    )
                    thread.start()
                    threads.append(thread)
                threading.Thread(target=self._wait, args=(number, process), daemon=True).start()
            code = self._look_after()
            for thread in threads:
                thread.join(2.0)  # a grandchild may hold the other end
            return code
        finally:
            self._end_all(signal.SIGKILL)
            for number, handler in handled.items():
                signal.signal(number, handler)

    def _wait(self, number: int, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._changed.set()
        # The others may wait for it to join, or for process 0 to start the coordinator.
        how = _how(process.returncode)
        if not tell_of_death("127.0.0.1", self._port, self._secret, number, how):
            stand_in("127.0.0.1", self._port, self._secret, self.count, never_came(number, how))

    def _copy(self, number: int, stream: IO[bytes], target: Any) -> None:
        """Copies lines of one process to our own output, whole."""
        width = len(str(self.count - 1))
        prefix = f"[{number:>{width}}] ".encode() if self.prefix else b""
        for line in stream:
            if line.startswith(_NOISE):
                continue
            with self._output:
                try:
                    target.write(prefix + line if line.endswith(b"\n") else prefix + line + b"\n")
                    target.flush()
                except OSError:  # nobody reads any more, as after `| head`
                    os.dup2(os.open(os.devnull, os.O_WRONLY), target.fileno())
                    if self._signal is None:
                        self._signal = signal.SIGPIPE
                        self._end_all(signal.SIGTERM)

    def _look_after(self) -> int:
        first: int | None = None
        deadline = None
        stop = signal.SIGTERM
        while True:
            running = [p for p in self.processes if p.poll() is None]
            if first is None:
                failed = [i for i, p in enumerate(self.processes) if p.poll() not in (None, 0)]
                if failed:
                    # Of those that died together, the one that a signal ended is the cause.
                    cause = next((i for i in failed if self.processes[i].returncode < 0), failed[0])
                    first = self.processes[cause].returncode
                    if self._signal is None:
                        self._say(
                            f"process {cause} {_how(first)}" + (self._what_follows() if running else "")
                        )
                    if not self.elastic:
                        deadline = time.monotonic() + self.grace
            if not running:
                break
            self._changed.wait(None if deadline is None else max(deadline - time.monotonic(), 0.0))
            self._changed.clear()
            if deadline is not None and time.monotonic() >= deadline:
                still = [i for i, p in enumerate(self.processes) if p.poll() is None]
                if still:
                    self._say(f"ending process {', '.join(map(str, still))}")
                    self._end_all(stop)
                    stop, deadline = signal.SIGKILL, time.monotonic() + KILL_SECONDS
        if self._signal is not None:
            return 128 + self._signal
        if self.elastic and any(p.returncode == 0 for p in self.processes):
            return 0
        return 0 if first is None else first if first > 0 else 128 - first

    def _what_follows(self) -> str:
        return "; the others may go on" if self.elastic else "; the others follow"

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self._end_all(number)

    def _end_all(self, number: int) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def _say(self, text: str) -> None:
        with self._output:
            sys.stderr.write(f"purax launch: {text}\n")
            sys.stderr.flush()


def _end_with_the_launcher() -> Callable[[], object] | None:
    """What a new process does first on Linux: it asks to be ended when its launcher dies, of a SIGKILL too."""
    if not sys.platform.startswith("linux"):
        return None
    prctl, end_with_parent = ctypes.CDLL(None).prctl, 1
    return lambda: prctl(end_with_parent, int(signal.SIGTERM))


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def launch(words: Sequence[str]) -> int:
    """The command `purax launch`; returns the exit status.

    Args:
        words: the words after `launch`.
    """
    words = list(words)
    count, devices, grace, prefix, elastic = None, None, GRACE_SECONDS, True, False
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
        option = words.pop(0)
        name, equals, value = option.partition("=")
        if name in ("-h", "--help"):
            print(USAGE)
            return 0
        if name in ("--no-prefix", "--elastic"):
            prefix, elastic = prefix and name != "--no-prefix", elastic or name == "--elastic"
            continue
        if name.startswith("-n") and name[2:].isdecimal():
            name, value = "-n", name[2:]
        elif not equals:
            value = words.pop(0) if words else ""
        if name not in ("-n", "--processes", "--devices", "--grace"):
            return _misused(f"unknown option {option!r}")
        if not value.isdecimal() or (int(value) < 1 and name != "--grace"):
            return _misused(f"{name} needs a number, not {value!r}")
        if name in ("-n", "--processes"):
            count = int(value)
        elif name == "--devices":
            devices = int(value)
        else:
            grace = float(value)
    if count is None:
        return _misused("-n says how many processes to start")
    if not words or (words[0] in ("-m", "-c") and len(words) < 2):
        return _misused("nothing to launch")
    if words[0] not in ("-m", "-c") and not os.path.exists(words[0]):
        return _misused(f"there is no file {words[0]!r}")
    environment = dict(os.environ)
    if devices is not None:
        environment["PURAX_NUM_CPU_DEVICES"] = str(devices)
    python = sys.executable or shutil.which("python3") or "python"
    return Launcher([python, *words], count, environment, grace, prefix, elastic).run()


def _misused(problem: str) -> int:
    print(f"purax launch: {problem}\n{USAGE}", file=sys.stderr)
    return 2
