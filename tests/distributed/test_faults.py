"""What goes wrong with groups of processes: every rank gets an error that says what, and nobody hangs."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from purax.xla import interruptible_calls
from tests.distributed.groups import (
    ROOT,
    address,
    coordinator_of,
    environment,
    run_group,
    start,
    wait,
    working_group,
)

EXAMPLE = ROOT / "examples" / "train_processes.py"

JOIN = """
import os, time
place, count, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if len(sys.argv) > 4:  # all begin at once, however long each needs to start
    folder, members = sys.argv[4], int(sys.argv[5])
    open(os.path.join(folder, str(os.getpid())), "x").close()
    while len(os.listdir(folder)) < members:
        time.sleep(0.01)
px.distributed.initialize(place, count, number, initialization_timeout=5)
"""

TRAIN = """
px.distributed.initialize()
mesh = px.make_mesh((px.device_count(),), ("data",))
x = px.device_put(np.arange(32, dtype=np.float32).reshape(8, 4), NamedSharding(mesh, P("data")))
w = px.device_put(np.ones(4, np.float32), NamedSharding(mesh, P()))

@px.jit
def step(w, x):
    loss, g = px.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 1e-4 * g, loss

print("working", flush=True)
for k in range(10**6):
    w, loss = step(w, x)
    if k % 7 == 0:
        float(loss)
"""


# -- joining


@pytest.mark.parametrize(
    ("members", "message"),
    {
        "a doubled process id": (
            [(3, 0), (3, 1), (3, 1)],
            r"two processes have process_id=1: .*process id \d+",
        ),
        "process 0 twice": ([(2, 0), (2, 0)], r"two processes have process_id=0"),
        "different counts": (
            [(2, 0), (3, 1)],
            r"disagree on their number: process 1 .* num_processes=3, process 0 num_processes=2",
        ),
        "a missing process": ([(3, 0), (3, 2)], r"of 3 processes only 2 came within 5 s; missing: process 1"),
    }.values(),
    ids=["a doubled process id", "process 0 twice", "different counts", "a missing process"],
)
def test_groups_that_do_not_come_together(members, message, tmp_path):
    place, all_of_them = address(), (tmp_path, len(members))
    for ended in wait([start(JOIN, place, count, number, *all_of_them) for count, number in members], 60):
        assert ended.code == 1
        assert re.search(
            rf"RuntimeError: process \d cannot join the group at {place}: .*{message}", ended.errors
        ), ended.errors


def test_without_a_coordinator():
    (ended,) = wait([start(JOIN.replace("=5", "=1"), address(), 2, 1)], 30)
    assert ended.code == 1
    assert re.search(r"process 1 found no coordinator at 127.0.0.1:\d+ .* Process 0 starts it", ended.errors)


def test_too_late():
    script = """
    px.jit(lambda x: x + 1)(1.0)
    px.distributed.initialize("127.0.0.1:1", 2, 0)
    """
    (ended,) = wait([start(script)], 30)
    assert ended.code == 1
    assert re.search(
        r"initialize\(\) comes too late: this process already uses the devices of platform 'cpu' \(first at .*:\d+",
        ended.errors,
    ), ended.errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "coordinator_address, num_processes, process_id must be given"),
        (("127.0.0.1:8000", 2), "process_id must be given"),
        (("127.0.0.1", 2, 0), "must be 'host:port', such as '10.0.0.1:8476', not '127.0.0.1'"),
        (("127.0.0.1:8000", 2, 2), "process_id must be from 0 to 1 for num_processes=2, got 2"),
        (("127.0.0.1:8000", 0, 0), "num_processes must be at least 1, got 0"),
        (("127.0.0.1:8000", 2, 0, None, "condor"), "cluster_detection_method must be one of .*'slurm'"),
    ],
)
def test_wrong_arguments(arguments, message, monkeypatch):
    from purax.distributed import initialize
    from purax.xla import client

    monkeypatch.setattr(client, "_clients", {})  # as at the start of a program
    with pytest.raises(ValueError, match=message):
        initialize(*arguments)


# -- working


def check_others_name(ended, lost, reason="it was killed"):
    """Every process but the lost one ended with an error that names it."""
    for number, process in enumerate(ended):
        if number != lost:
            assert process.code == 1, process.errors
            assert re.search(rf"process {lost} \(.*\) is lost: .*{reason}", process.errors), process.errors


def test_the_death_of_process_0_ends_the_others():
    with working_group(TRAIN, 4) as group:
        time.sleep(random.uniform(0.0, 2.0))
        group[0].send_signal(signal.SIGKILL)
        ended = wait(group, 30)
    assert ended[0].code == -signal.SIGKILL
    check_others_name(ended, 0)


def test_a_process_that_raises_says_so_to_the_others():
    ended = run_group(
        TRAIN.replace(
            "if k % 7 == 0:",
            "if k == 5 and px.process_index() == 1:\n        raise ValueError('no data')\n    if k % 7 == 0:",
        ),
        2,
    )
    assert ended[1].code == 1 and "ValueError: no data" in ended[1].errors
    check_others_name(ended, 1, "it ended with ValueError: no data")


@pytest.mark.parametrize("pause", [0.0, 1.0], ids=["before it ends", "after it ended"])
def test_a_process_that_ends_early_is_not_waited_for(pause):
    """Neither by one that already waits for it in a program, nor by one that is about to start the program."""
    script = TRAIN.replace("range(10**6)", "range(10 + 10 * (px.process_index() == 0))")
    script = script.replace(
        "    if k % 7", f"    if k == 9 and px.process_index() == 0: time.sleep({pause})\n    if k % 7"
    )
    ended = run_group(script, 2, seconds=40)
    assert ended[0].code == 1
    assert "process 1 has reached the end of its program, and never starts the program" in ended[0].errors
    assert ended[1].code == 0, ended[1].errors


def test_a_process_that_is_silent_is_lost():
    script = TRAIN.replace("initialize()", "initialize(heartbeat_timeout_seconds=3)")
    with working_group(script, 2) as group:
        group[1].send_signal(signal.SIGSTOP)
        (first,) = wait(group[:1], 30)
        group[1].send_signal(signal.SIGCONT)
        (second,) = wait(group[1:], 30)
    check_others_name([first], 1, "there was no sign of life from it for 3 s")
    assert "process 1, this one, was taken for lost by its group: there was no sign of life" in second.errors


def test_a_process_that_waits_inside_the_engine_ends_with_our_message():
    """XLA aborts a process whose coordination service is gone: the coordinator stays until it has ended."""
    script = """
    from purax.xla.processes import group
    px.distributed.initialize(heartbeat_timeout_seconds=2)
    print("working", flush=True)
    group.current.engine.blocking_key_value_get("what nobody says", 60_000)
    """
    with working_group(script, 2) as group:
        group[1].send_signal(signal.SIGSTOP)
        (ended,) = wait(group[:1], 30)
    assert ended.code == 1, ended
    assert re.search(
        r"process 0 ends itself: process 1 \(.*\) is lost: there was no sign of life from it for 2 s",
        ended.errors,
    )


ABORTS = """
import ctypes, threading
px.distributed.initialize()
is_first = px.process_index() == 0
if is_first:
    # As XLA's threads do that talk to a lost member, and before this process has heard of the loss.
    threading.Thread(target=ctypes.CDLL(None).abort, daemon=True).start()
print("working", flush=True)
if is_first:
    PAUSE
else:
    time.sleep(60)
px.experimental.multihost_utils.sync_global_devices("after the loss")
"""


@pytest.mark.skipif(interruptible_calls.parking is None, reason="needs the extension in C")
@pytest.mark.parametrize("pause", ["pass", "time.sleep(30)"], ids=["in a wait of ours", "elsewhere"])
def test_a_thread_of_the_engine_that_aborts_waits_for_news_of_a_loss(pause):
    with working_group(ABORTS.replace("PAUSE", pause), 2) as group:
        group[1].send_signal(signal.SIGKILL)
        ended = wait(group, 30)
    check_others_name(ended, 1)


@pytest.mark.skipif(interruptible_calls.parking is None, reason="needs the extension in C")
def test_an_abort_without_a_loss_ends_the_process():
    with working_group(ABORTS.replace("PAUSE", "time.sleep(60)"), 2) as group:
        (ended,) = wait(group[:1], 30)
        assert ended.code == -signal.SIGABRT


MEET = """
px.distributed.initialize(heartbeat_timeout_seconds=4, initialization_timeout=20)
from purax.experimental import multihost_utils
print("working", flush=True)
for k in range(10**9):
    multihost_utils.sync_global_devices(f"step {k}")
    if k % 20 == 0:
        print(k, flush=True)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for the coordinator in /proc")
def test_a_pause_is_no_loss_and_a_killed_coordinator_is_named():
    with working_group(MEET, 2) as group:
        coordinator = coordinator_of(group[0])
        for paused in (coordinator, group[0].pid, group[1].pid):
            os.kill(paused, signal.SIGSTOP)
            time.sleep(1.5)
            os.kill(paused, signal.SIGCONT)
        for process in group:  # all go on
            steps = [int(process.stdout.readline()) for _ in range(3)]
            assert steps == sorted(steps)
        os.kill(coordinator, signal.SIGKILL)
        started = time.monotonic()
        for number, ended in enumerate(wait(group, 30)):
            assert ended.code == 1
            last = ended.errors.splitlines()[-1]
            assert last.startswith("purax.errors.ProcessLostError: the coordinator of the group is lost"), (
                ended
            )
            assert f"Process {number} cannot go on alone" in last
            assert "stack trace" not in ended.errors
        assert time.monotonic() - started < 15


def test_a_copy_of_a_process_is_no_member():
    """A process that was forked may end, and does not hide the death of the one that it was copied from."""
    script = MEET.replace(
        'print("working", flush=True)',
        """
import warnings
warnings.simplefilter("ignore")
if os.fork() == 0:
    sys.exit(0)  # with all that is done at the end of a program
if os.fork() == 0:
    os.closerange(0, 3)
    time.sleep(25)
    os._exit(0)
os.wait()
print("working", flush=True)
""",
    ).replace("heartbeat_timeout_seconds=4", "heartbeat_timeout_seconds=20")
    with working_group(script, 2) as group:
        assert [group[0].stdout.readline() for _ in range(2)] == ["0\n", "20\n"]
        started = time.monotonic()
        group[1].send_signal(signal.SIGKILL)
        (ended,) = wait(group[:1], 30)
        assert time.monotonic() - started < 15  # sooner than by silence, and than the copy ends
    check_others_name([ended], 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for the coordinator in /proc")
def test_a_coordinator_that_is_silent_is_lost():
    """Process 0 waits for the other, which sleeps: both get an exception."""
    script = MEET.replace("for k in", "if px.process_index(): time.sleep(60)\nfor k in")
    with working_group(script, 2) as group:
        coordinator = coordinator_of(group[0])
        os.kill(coordinator, signal.SIGSTOP)
        for ended in wait(group, 30):
            assert ended.code == 1
            assert re.search(
                r"ProcessLostError: the coordinator of the group is lost: there was no sign of life from it for 4 s",
                ended.errors.splitlines()[-1],
            ), ended.errors
        os.kill(coordinator, signal.SIGCONT)


# -- restarting


def launch_example(folder, steps) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "purax", "launch", "-n", "4", str(EXAMPLE)]
    process = subprocess.Popen(
        [*command, "--folder", str(folder), "--steps", str(steps), "--every", "5"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    limit = threading.Timer(200, process.terminate)  # the launcher ends its group
    limit.daemon = True
    limit.start()
    return process


def losses(output: str) -> dict[int, str]:
    return {int(step): loss for step, loss in re.findall(r"\[0\] step (\d+) loss (\S+)", output)}


def test_a_restart_continues_with_exactly_the_same_losses(tmp_path):
    steps = 60
    undisturbed = launch_example(tmp_path / "undisturbed", steps)
    output, _ = undisturbed.communicate(timeout=200)
    assert undisturbed.returncode == 0, output
    expected = losses(output)
    assert sorted(expected) == list(range(steps))

    # A long run, of which a process is killed at a random moment after the first checkpoint.
    disturbed = launch_example(tmp_path / "disturbed", 10**6)
    seen, ids = "", {}
    victim, moment = random.randrange(4), random.randrange(6, steps - 10)
    for line in disturbed.stdout:
        seen += line
        place = re.match(r"\[(\d)\] process \d of 4, process id (\d+)", line)
        if place:
            ids[int(place[1])] = int(place[2])
        if line.startswith(f"[0] step {moment} "):
            os.kill(ids[victim], signal.SIGKILL)
            break
    started = time.monotonic()
    rest, _ = disturbed.communicate(timeout=100)
    seen += rest
    assert time.monotonic() - started < 60
    assert disturbed.returncode == 128 + signal.SIGKILL, seen
    assert f"purax launch: process {victim} was ended by SIGKILL" in seen
    for number in range(4):
        if number != victim:
            assert re.search(rf"\[{number}\] .*process {victim} \(.*\) is lost", seen), seen

    last = max(losses(seen))
    again = launch_example(tmp_path / "disturbed", max(steps, last + 10))
    output, _ = again.communicate(timeout=200)
    assert again.returncode == 0, output
    continued = losses(output)
    assert 0 < min(continued) <= last + 1
    assert {step: loss for step, loss in (losses(seen) | continued).items() if step < steps} == expected
    both = set(losses(seen)) & set(continued)
    assert all(losses(seen)[step] == continued[step] for step in both)
