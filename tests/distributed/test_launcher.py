"""`purax launch` and `purax devices`; the scripts need no purax, so that the tests are quick."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from purax.distributed import launcher
from tests.distributed.groups import environment


def start_launch(*words: object, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "purax", "launch", *map(str, words)],
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def launch(*words: object, **more: str) -> tuple[int, str, str]:
    process = start_launch(*words, **more)
    try:
        output, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, output, errors


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "script.py"
        path.write_text("import os, sys, time, signal\nme = int(os.environ['PURAX_PROCESS_ID'])\n" + text)
        return path

    return write


def test_output_comes_with_the_number_of_the_process(script):
    path = script(
        "print('out', os.environ['PURAX_NUM_PROCESSES'], sys.argv[1:])\nprint('err', file=sys.stderr)\n"
        "print('[Gloo] Rank 0 is connected')\nsys.stdout.write('no end of line')\n"
    )
    code, output, errors = launch("-n", 2, path, "-n", "--x")
    assert code == 0
    assert sorted(output.splitlines()) == sorted(
        f"[{i}] {line}" for i in (0, 1) for line in ("out 2 ['-n', '--x']", "no end of line")
    )
    assert sorted(errors.splitlines()) == ["[0] err", "[1] err"]
    code, output, _ = launch("-n2", "--no-prefix", "-c", "print('bare')")
    assert (code, output) == (0, "bare\nbare\n")


def test_the_group_ends_with_the_one_that_fails(script):
    path = script("if me == 1: sys.exit(7)\ntime.sleep(60)")
    started = time.monotonic()
    code, _, errors = launch("-n", 3, "--grace", 1, path)
    assert code == 7 and time.monotonic() - started < 20
    assert "process 1 ended with exit code 7; the others follow" in errors
    assert "ending process 0, 2" in errors
    stubborn = script(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif me == 0: os.kill(os.getpid(), 9)\ntime.sleep(60)"
    )
    code, _, errors = launch("-n", 2, "--grace", 1, stubborn)
    assert code == 137 and "process 0 was ended by SIGKILL" in errors


def test_signals_reach_all_processes(script):
    path = script(
        "def stop(*_):\n    print('stopped', flush=True)\n    sys.exit(3)\nsignal.signal(signal.SIGTERM, stop)\n"
        "print('started', flush=True)\ntime.sleep(60)"
    )
    process = start_launch("-n", 2, path)
    try:
        assert {process.stdout.readline(), process.stdout.readline()} == {"[0] started\n", "[1] started\n"}
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert sorted(output.splitlines()) == ["[0] stopped", "[1] stopped"]
    assert process.returncode == 128 + signal.SIGTERM


def test_the_group_ends_when_nobody_reads_its_output(script):
    path = script("while True: print('x' * 1000)")
    with start_launch("-n", 2, path) as process:
        process.stdout.readline()
        process.stdout.close()
        try:
            assert process.wait(timeout=20) == 128 + signal.SIGPIPE
        finally:
            process.kill()
        assert process.stderr.read() == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell a process of it")
def test_the_group_ends_with_its_launcher(script):
    path = script("print(os.getpid(), flush=True)\ntime.sleep(60)")
    with start_launch("-n", 2, path) as process:
        members = [int(process.stdout.readline().split()[1]) for _ in range(2)]
        process.kill()
    deadline = time.monotonic() + 20
    while any(map(is_running, members)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, members))


def is_running(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_mistakes_on_the_command_line(capsys):
    from purax.commands.main import main

    for words, message in {
        (): "-n says how many processes to start",
        ("-n", "2"): "nothing to launch",
        ("-n", "two", "x.py"): "-n needs a number, not 'two'",
        ("-n", "0", "x.py"): "-n needs a number, not '0'",
        ("--many", "2"): "unknown option '--many'",
        ("-n", "2", "nowhere.py"): "there is no file 'nowhere.py'",
    }.items():
        assert main(["launch", *words]) == 2
        assert message in capsys.readouterr().err
    assert main(["launch", "--help"]) == 0 and "--devices" in capsys.readouterr().out


def test_devices(capsys):
    from purax.commands.main import main
    from purax.xla import client

    assert main(["devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(client.devices()) and lines[0].startswith("cpu:0 ") and "(default)" in lines[0]


@pytest.mark.parametrize(
    ("who", "end", "how"),
    [
        (1, "sys.exit(3)", "ended with exit code 3"),
        (0, "os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
        (2, "sys.exit(0)", "ended with exit code 0"),
    ],
)
def test_a_process_that_ends_before_it_joins_is_noticed_at_once(script, who, end, how):
    path = script(f"if me == {who}: {end}\nimport purax\npurax.distributed.initialize()\n")
    started = time.monotonic()
    code, _, errors = launch("-n", 3, path, PURAX_PLATFORMS="cpu")
    assert time.monotonic() - started < 20
    assert code in (3, 128 + signal.SIGKILL, 1)
    for number in {0, 1, 2} - {who}:
        assert f"[{number}] RuntimeError: process {number} cannot join the group" in errors
    assert errors.count(f": process {who} {how} before it had joined") == 2


# -- several machines


@pytest.fixture
def shell(tmp_path):
    """What stands for ssh: it runs the command here, with none of our variables."""
    path = tmp_path / "shell"
    path.write_text(
        f"#!/bin/sh\n[ $1 = -o ] && shift 2\nhost=$1; shift\necho $host >> {tmp_path}/asked\n"
        'exec env -i PATH="$PATH" HOME="$HOME" sh -c "$*"\n'
    )
    path.chmod(0o755)
    return path


def test_several_machines(shell, script, tmp_path):
    path = script(
        "told = os.environ\n"
        "print(told['PURAX_COORDINATOR_ADDRESS'].partition(':')[0], told['PURAX_NUM_PROCESSES'], os.getcwd())\n"
        "print(len(told['PURAX_GROUP_SECRET']), told.get('PURAX_NUM_CPU_DEVICES'), 'EDITOR' in told)\n"
    )
    words = ("--ssh", f"{shell} -o X", "--hosts", "127.0.0.1:1,localhost:2", "--devices", 3)
    code, output, errors = launch(*words, path, EDITOR="vi")
    assert (code, errors) == (0, "")
    names = ["0 127.0.0.1", "1 localhost", "2 localhost"]
    assert sorted(output.splitlines()) == sorted(
        f"[{name}] {line}" for name in names for line in (f"127.0.0.1 3 {os.getcwd()}", "64 3 False")
    )
    assert (tmp_path / "asked").read_text().split() == ["127.0.0.1", "localhost", "localhost"]


def test_who_failed_first_is_named_with_its_machine(shell, script, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("# two\n127.0.0.1 slots=2\nlocalhost\n")
    path = script("if me == 2: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(60)")
    began = time.monotonic()
    code, _, errors = launch("--ssh", shell, "--hostfile", hosts, "--grace", 0, path)
    assert code == 137 and time.monotonic() - began < 50
    assert "process 2 on localhost was ended by SIGKILL; the others follow" in errors
    assert "ending process 0, 1" in errors


def test_a_machine_that_does_not_answer(tmp_path, script):
    path = tmp_path / "shell"
    path.write_text("#!/bin/sh\necho no route to $1 >&2\nexit 255\n")
    path.chmod(0o755)
    code, _, errors = launch("--ssh", path, "--hosts", "a,b", "-n", 2, script(""))
    assert code == 255 and "[0 a] no route to a" in errors and "process 0 on a ended with exit code 255" in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--hosts", "a,b", "-n", 3, "x.py"), "3 processes do not divide over 2 machines"),
        (("--hosts", "a:2,b", "-n", 4, "x.py"), "-n asks for 4 processes, and the machines have 3 slots"),
        (("--hosts", "a:x", "x.py"), "--hosts needs machines such as 'node1:4,node2:4'"),
        (("--hostfile", "/nowhere", "x.py"), "No such file or directory: '/nowhere'"),
    ],
)
def test_wrong_machines(words, message, capsys):
    assert launcher.launch([str(word) for word in words]) == 2
    assert message in capsys.readouterr().err
