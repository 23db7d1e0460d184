"""`purax launch`: starts a group of processes, on this machine or on several by ssh, and looks after it.

Every process gets the environment from which `purax.distributed.initialize()` knows its place, and a secret by which
they know each other. Their output comes line by line with the number of the process before it. When one process fails,
the others have some seconds to end by themselves, which they do with an error that names it, and are then ended.
Signals go to all of them. Of several machines the first has the coordinator, and chooses its port.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shlex
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
       purax launch (--hosts HOST[:SLOTS],... | --hostfile FILE) [-n COUNT] [--ssh COMMAND] [...] SCRIPT [...]
       purax launch -n COUNT [...] -m MODULE [ARGUMENT ...]

Starts COUNT processes of a Python program on this machine, or on several by ssh. In them
purax.distributed.initialize() needs no arguments.
  -n, --processes COUNT  the number of processes
  --hosts A:4,B:2        the machines, with how many processes each has; without, they are divided evenly
  --hostfile FILE        the same, a line per machine such as "A slots=4"
  --ssh COMMAND          what starts a shell on a machine ("ssh -o BatchMode=yes")
  --devices D            the number of CPU devices of each process
  --grace SECONDS        how long the others may go on when one has failed (25)
  --elastic              the others go on when one has failed, if they can (purax.distributed.reinitialize)
  --no-prefix            leave the output as it is, without the number of the process
Returns the exit code of the process that failed first, 128 + the number of the signal if one ended it; else 0.
With --elastic it is 0 if any process ended well."""


def hosts_of(hosts: str | None, file: str | None, count: int | None) -> list[str]:
    """The machine of each process.

    >>> hosts_of("a:2,b", None, None), hosts_of("a,b", None, 4)
    (['a', 'a', 'b'], ['a', 'a', 'b', 'b'])
    """
    if file is not None:
        with open(file) as lines:
            found = [line.split("#")[0].split() for line in lines]
        pairs = []
        for parts in found:
            if parts:
                slots = [part.partition("=")[2] for part in parts[1:] if part.startswith("slots=")]
                pairs.append((parts[0], slots[0] if slots else ""))
    else:
        pairs = [(name, slots) for name, _, slots in (one.partition(":") for one in (hosts or "").split(",") if one)]
    if not pairs or any(slots and not slots.isdecimal() for _, slots in pairs):
        raise ValueError("--hosts needs machines such as 'node1:4,node2:4', a --hostfile lines such as 'node1 slots=4'")
    if count is not None and not any(slots for _, slots in pairs):
        if count % len(pairs):
            raise ValueError(
                f"{count} processes do not divide over {len(pairs)} machines; say how many each has: a:2,b:1"
            )
        pairs = [(name, str(count // len(pairs))) for name, _ in pairs]
    places = [name for name, slots in pairs for _ in range(int(slots or 1))]
    if count is not None and count > len(places):
        raise ValueError(f"-n asks for {count} processes, and the machines have {len(places)} slots")
    return places[:count]


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
        self.host, self.port, self.is_local = "127.0.0.1", 0, True  # of the coordinator
        self.secret = self.environment.get("PURAX_GROUP_SECRET") or secrets.token_hex(32)
        self._output = threading.Lock()
        self._changed = threading.Event()
        self._signal: int | None = None

    def run(self) -> int:
        """Starts the group and returns its exit code when the last process has ended."""
        if self.is_local:
            self.port = free_port(self.host)
        handled = {n: signal.signal(n, self._forward) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        threads = []
        try:
            for number in range(self.count):
                self.processes.append(self.start(number))
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

    def start(self, number: int) -> subprocess.Popen[bytes]:
        """Starts one process."""
        return subprocess.Popen(
            self.command,
            env={**self.environment, **self.place(number)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches it through us, once
            preexec_fn=_end_with_the_launcher(),  # noqa: PLW1509 (no thread of ours runs yet)
        )

    def place(self, number: int) -> dict[str, str]:
        """What a process is told of its place in the group."""
        return {
            "PURAX_COORDINATOR_ADDRESS": f"{self.host}:{self.port}",
            "PURAX_GROUP_SECRET": self.secret,
            "PURAX_NUM_PROCESSES": str(self.count),
            "PURAX_PROCESS_ID": str(number),
            "PYTHONUNBUFFERED": "1",
        }

    def label(self, number: int) -> str:
        """What stands before the lines of a process."""
        return f"{number:>{len(str(self.count - 1))}}"

    def name(self, number: int) -> str:
        """How messages call a process."""
        return f"process {number}"

    def signal(self, number: int, what: int) -> None:
        """Sends a signal to a process that runs."""
        self.processes[number].send_signal(what)

    def _wait(self, number: int, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._changed.set()
        # The others may wait for it to join, or for process 0 to start the coordinator.
        how = _how(process.returncode)
        if not tell_of_death(self.host, self.port, self.secret, number, how) and self.is_local:
            stand_in(self.host, self.port, self.secret, self.count, never_came(number, how))

    def _copy(self, number: int, stream: IO[bytes], target: Any) -> None:
        """Copies lines of one process to our own output, whole."""
        prefix = f"[{self.label(number)}] ".encode() if self.prefix else b""
        for line in stream:
            if line.startswith(_NOISE) or (not self.is_local and line == f"port {self.port}\n".encode()):
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
                            f"{self.name(cause)} {_how(first)}" + (self._what_follows() if running else "")
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
        for i, process in enumerate(self.processes):
            if process.poll() is None:
                self.signal(i, number)

    def _say(self, text: str) -> None:
        with self._output:
            sys.stderr.write(f"purax launch: {text}\n")
            sys.stderr.flush()


# What runs on another machine: it reads from standard input what to run, and which signals to pass on; when that ends,
# because the launcher or the connection did, so does the program.
_REMOTE = """
import json, os, signal, socket, subprocess, sys, threading
told = json.loads(sys.stdin.readline())
os.environ.update(told["environment"])
if told["port"]:
    print("port", told["port"], flush=True)
else:
    with socket.socket() as probe:
        probe.bind(("", 0))
        told["port"] = probe.getsockname()[1]
    print("port", told["port"], flush=True)
os.environ["PURAX_COORDINATOR_ADDRESS"] = told["host"] + ":" + str(told["port"])
child = subprocess.Popen(told["command"], stdin=subprocess.DEVNULL, start_new_session=True)
def listen():
    for line in sys.stdin:
        child.send_signal(int(line))
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
threading.Thread(target=listen, daemon=True).start()
code = child.wait()
sys.stdout.flush()
os._exit(code if code >= 0 else 128 - code)
"""


class RemoteLauncher(Launcher):
    """A group of processes on several machines, each started by a shell there.

    Args:
        command: the command that each process runs.
        places: the machine of each.
        shell: the command to which a machine, and what to run there, are added.
        environment: the environment variables of this machine, of which those of purax and JAX are handed on.
        grace, prefix, elastic: as of `Launcher`.
    """

    def __init__(
        self,
        command: Sequence[str],
        places: Sequence[str],
        shell: Sequence[str],
        environment: Mapping[str, str],
        grace: float = GRACE_SECONDS,
        prefix: bool = True,
        elastic: bool = False,
    ):
        super().__init__(command, len(places), environment, grace, prefix, elastic)
        self.places, self.shell = list(places), list(shell)
        self.host, self.is_local = self.places[0], False

    def start(self, number: int) -> subprocess.Popen[bytes]:
        handed = {k: v for k, v in self.environment.items() if k.startswith(("PURAX_", "JAX_", "XLA_"))}
        there = " ".join(map(shlex.quote, (self.command[0], "-c", _REMOTE)))
        process = subprocess.Popen(
            [*self.shell, self.places[number], f"cd {shlex.quote(os.getcwd())} && exec {there}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        own_environment = {**handed, **self.place(number)}
        told = {"environment": own_environment, "command": self.command, "host": self.host, "port": self.port}
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(told).encode() + b"\n")
            process.stdin.flush()
        except OSError:
            return process  # it has ended, which is noticed
        # The first machine chooses a port for the coordinator, before any other process starts.
        answer = process.stdout.readline() if number == 0 else b""
        if number == 0:
            self.port = int(answer.split()[1]) if answer.startswith(b"port ") else 0
        return process

    def label(self, number: int) -> str:
        width = max(map(len, self.places))
        return f"{super().label(number)} {self.places[number]:<{width}}"

    def name(self, number: int) -> str:
        return f"process {number} on {self.places[number]}"

    def signal(self, number: int, what: int) -> None:
        process = self.processes[number]
        assert process.stdin is not None
        try:
            process.stdin.write(f"{int(what)}\n".encode())
            process.stdin.flush()
        except (OSError, ValueError):
            process.send_signal(what)
        if what == signal.SIGKILL:
            process.kill()


def _end_with_the_launcher() -> Callable[[], object] | None:
    """What a new process does first on Linux: it asks to be ended when its launcher dies, of a SIGKILL too."""
    if not sys.platform.startswith("linux"):
        return None
    prctl, end_with_parent = ctypes.CDLL(None).prctl, 1
    return lambda: prctl(end_with_parent, int(signal.SIGTERM))


def _how(code: int) -> str:
    if 128 < code < 160:  # as shells say it
        code = 128 - code
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
    given: dict[str, str] = {}
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
        if name in ("--hosts", "--hostfile", "--ssh") and value:
            given[name] = value
            continue
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
    places: list[str] = []
    try:
        if "--hosts" in given or "--hostfile" in given:
            places = hosts_of(given.get("--hosts"), given.get("--hostfile"), count)
            count = len(places)
    except (ValueError, OSError) as error:
        return _misused(str(error))
    if count is None:
        return _misused("-n says how many processes to start")
    if not words or (words[0] in ("-m", "-c") and len(words) < 2):
        return _misused("nothing to launch")
    if not places and words[0] not in ("-m", "-c") and not os.path.exists(words[0]):
        return _misused(f"there is no file {words[0]!r}")
    environment = dict(os.environ)
    if devices is not None:
        environment["PURAX_NUM_CPU_DEVICES"] = str(devices)
    python = sys.executable or shutil.which("python3") or "python"
    if places:
        shell = shlex.split(given.get("--ssh", "ssh -o BatchMode=yes"))
        return RemoteLauncher([python, *words], places, shell, environment, grace, prefix, elastic).run()
    return Launcher([python, *words], count, environment, grace, prefix, elastic).run()


def _misused(problem: str) -> int:
    print(f"purax launch: {problem}\n{USAGE}", file=sys.stderr)
    return 2
