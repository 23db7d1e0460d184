"""Random faults of groups of processes: strangers at the coordinator, and processes that are killed or stopped.

Each try is one group. Strangers must not change what its members see. When a member or the coordinator is killed, or
stopped for good, at any moment from its start on, every other process must end in time, with an exception that names
it; when it is stopped for less than the heartbeat, all must finish.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator

from tests.distributed import strangers
from tests.distributed.groups import Ended, address, coordinator_of, start

HEARTBEAT, INITIALIZATION = 4, 20
# To start an interpreter, to join, to notice a silence, to clean up; and something for a machine that is busy.
LIMIT_SECONDS = 10 + INITIALIZATION + 5 + HEARTBEAT + 20 + 20

SCRIPT = f"""
from purax.experimental import multihost_utils
px.distributed.initialize(heartbeat_timeout_seconds={HEARTBEAT}, initialization_timeout={INITIALIZATION})
print("working", flush=True)
mesh = px.make_mesh((px.device_count(),), ("data",))
x = px.device_put(np.arange(12.0), NamedSharding(mesh, P("data")))
end = time.monotonic() + float(sys.argv[1])
while multihost_utils.broadcast_one_to_all(time.monotonic()) < multihost_utils.broadcast_one_to_all(end):
    px.jit(lambda x: jnp.sum(x * x))(x).block_until_ready()
    multihost_utils.sync_global_devices("step" * 5000)
print("done", flush=True)
"""


def run(seed: int) -> Iterator[str | None]:
    """Tries groups forever."""
    chance = random.Random(seed)
    while True:
        number = chance.randrange(10**9)
        if chance.random() < 0.4:
            yield try_strangers(number)
        else:
            yield try_fault(number)


def try_strangers(number: int) -> str | None:
    """A group that only talks, with strangers that follow from a number."""
    chance = random.Random(number)
    done: list[str] = []
    try:
        with strangers.coordinator(chance.randrange(1, 5)) as target:
            kept = []
            for _ in range(chance.randrange(8)):
                attack = chance.choice(strangers.ATTACKS)
                done.append(attack.__name__)
                kept += attack(target, chance)
            talkers = strangers.form(target)
            done.append("(complete)")
            for _ in range(chance.randrange(1, 25)):
                attack = chance.choice(strangers.ATTACKS + strangers.MISTAKES)
                done.append(attack.__name__)
                kept += attack(target, chance)
                strangers.check_that_it_works(talkers, "x" * chance.choice([0, 10, 70_000, 2_000_000]))
                if chance.random() < 0.3:
                    chance.shuffle(kept)
                    for connection in kept[: len(kept) // 2]:
                        connection.close()
                    del kept[: len(kept) // 2]
            for connection in kept:
                connection.close()
            strangers.check_that_it_works(talkers)
    except Exception as error:
        return f"# {type(error).__name__}: {error}\n# {', '.join(done)}\n{_again('try_strangers', number)}"
    return None


def try_fault(number: int) -> str | None:
    """A group of which one process, or the coordinator, is killed or stopped, as follows from a number."""
    chance = random.Random(number)
    count = chance.randrange(2, 4)
    victim = chance.randrange(-1, count)  # -1 is the coordinator
    fault = chance.choice(["kill", "stop", "pause"])
    at_work = chance.random() < 0.5
    delay, pause = chance.uniform(0, 1.5 if at_work else 4), chance.uniform(0.1, HEARTBEAT - 2)
    place = address()
    group = []
    for id in range(count):
        where = {"PURAX_COORDINATOR_ADDRESS": place, "PURAX_NUM_PROCESSES": str(count)}
        group.append(start(SCRIPT, 5 if fault == "pause" else 1000, **where, PURAX_PROCESS_ID=str(id)))
    target = 0
    try:
        if at_work:
            for process in group:
                process.stdout.readline()
        time.sleep(delay)
        target = _find_coordinator(group[0]) if victim < 0 else group[victim].pid
        os.kill(target, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
        if fault == "pause":
            time.sleep(pause)
            os.kill(target, signal.SIGCONT)
        spared = [] if fault == "pause" or victim < 0 else [victim]
        problem = _judge(group, spared, victim, fault)
    finally:
        for process in group:
            process.kill()
            process.communicate()
        if target and fault == "stop":
            try:
                os.kill(target, signal.SIGCONT)
            except OSError:
                pass
    if problem is None:
        return None
    who = "the coordinator" if victim < 0 else f"process {victim}"
    when = f"{delay:.2f} s after {'all worked' if at_work else 'the start'}"
    return f"# {fault} of {who} of {count} {when}: {problem}\n{_again('try_fault', number)}"


def _again(name: str, number: int) -> str:
    return f"from tests.fuzz.group_faults import {name}\nprint({name}({number}))"


def _find_coordinator(process: subprocess.Popen[str]) -> int:
    end = time.monotonic() + 30
    while True:
        try:
            return coordinator_of(process)
        except AssertionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def _judge(group: list[subprocess.Popen[str]], spared: list[int], victim: int, fault: str) -> str | None:
    """What is wrong with how the processes ended, if something is."""
    end = time.monotonic() + LIMIT_SECONDS
    for id, process in enumerate(group):
        if id in spared:
            continue
        try:
            output, errors = process.communicate(timeout=max(end - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            return f"process {id} hangs"
        ended = Ended(process.returncode, output, errors)
        if fault == "pause" and (ended.code != 0 or not output.endswith("done\n")):
            return f"process {id} did not finish: {ended}"
        if fault != "pause" and (ended.code != 1 or not _is_named(errors, victim)):
            return f"process {id} ended otherwise than by naming who was lost: {ended}"
    return None


def _is_named(errors: str, victim: int) -> bool:
    """Whether the last line is an error that says who was lost."""
    last = (errors.splitlines() or [""])[-1]
    if not re.match(r"purax\.errors\.ProcessLostError|RuntimeError|purax: process \d ends itself", last):
        return False
    named = r"coordinator" if victim < 0 else rf"process {victim}\b"
    return re.search(named, last, re.IGNORECASE) is not None
