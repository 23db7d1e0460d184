"""Strangers, late processes and large messages do not touch a group, and nobody gets in without its secret."""

from __future__ import annotations

import random
import re
import socket
import threading
import time

import pytest

from purax.distributed import group_secret
from purax.xla.processes import joining, wire
from purax.xla.processes.addresses import free_port, listen, own_addresses
from purax.xla.processes.coordinator import Coordinator, Member
from tests.distributed import strangers
from tests.distributed.groups import run_group
from tests.distributed.strangers import ATTACKS, HOST, MISTAKES, SECRET, Talker, coordinator, form


def test_strangers_do_not_touch_a_group():
    chance = random.Random(0)
    with coordinator(3) as target:
        kept = []
        for attack in ATTACKS:  # while it forms
            kept += attack(target, chance)
        talkers = form(target)
        for attack in ATTACKS + MISTAKES * 3:  # while it works
            kept += attack(target, chance)
            strangers.check_that_it_works(talkers)
        strangers.check_that_it_works(talkers, "x" * (1 << 20))
        for connection in kept:
            connection.close()
        strangers.check_that_it_works(talkers)
        for talker in talkers:
            talker.send(kind="leaving", launched={})
            talker.connection.close()
        assert target.process.wait(10) == 0


def test_a_group_says_that_somebody_did_not_know_its_secret():
    with coordinator(2, initialization=1.0) as target:
        talker = Talker(target, 0)
        with pytest.raises(wire.NotACoordinator, match="another secret"):
            Talker(target, 1, "another secret")
        reason = talker.hear("refused")["reason"]
    assert re.search(r"missing: process 1\. 1 connections did not know the group's secret", reason)


def test_members_and_coordinators_that_die_while_a_group_forms():
    with coordinator(3) as target:
        talkers = [Talker(target, id) for id in (0, 1)]
        talkers[1].connection.close()
        reason = talkers[0].hear("refused")["reason"]
        assert reason == "process 1 (here, process id 1) ended before all others had come"
    with coordinator(3) as target:
        talker = Talker(target, 0)
        target.process.kill()
        with pytest.raises(RuntimeError, match="the coordinator, which process 0 starts, (ended|is gone)"):
            joining._wait_for_all(talker.connection, talker.frames, "place", 0, time.monotonic() + 5)


@pytest.mark.parametrize(
    ("hello", "message"),
    [
        ({"id": 2}, "process_id must be from 0 to 1, got 2"),
        ({"id": -1}, "process_id must be from 0 to 1, got -1"),
        ({"id": "1"}, "process_id must be from 0 to 1, got '1'"),
        ({"id": 0}, "two processes have process_id=0"),
        ({"id": 1, "count": 3}, "disagree on their number"),
        ({"id": 1, "engine": "2"}, "process 0 has jaxlib 1, process 1 has 2"),
    ],
)
def test_ids_are_checked(hello, message):
    group = Coordinator({"count": 2, "secret": SECRET, "initialization": 1.0, "heartbeat": 1.0})
    known = {"count": 2, "engine": "1", "host": "here", "pid": 7}
    first = Member({"id": 0, **known}, None)
    assert group.objection(first) is None
    group.members[0] = first
    assert re.search(message, group.objection(Member({**known, **hello}, None)))
    group.service = "works"
    assert "working already" in group.objection(Member({**known, **hello}, None))


def test_a_member_does_not_talk_to_a_stranger():
    """Whatever listens at the address: a member ends in time, and never proves its secret to the wrong one."""
    chance = random.Random(1)
    nonce = bytes(wire.NONCE_BYTES)
    says = [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        wire.GREETING + nonce,
        wire.GREETING + nonce + wire.frame(b"x" * 100),
        wire.GREETING + nonce + wire.frame(bytes(32) + b'{"kind": "known"}'),
        wire.GREETING + nonce + b"\xff" * 50,
        *(wire.GREETING[: chance.randrange(14)] + chance.randbytes(40) for _ in range(5)),
    ]
    for text in says:
        (listener,) = listen([HOST], 0)

        def serve(listener=listener, text=text):
            with listener:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(text)
                    time.sleep(0.2)

        thread = threading.Thread(target=serve)
        thread.start()
        started = time.monotonic()
        with pytest.raises((wire.NotACoordinator, OSError, ValueError)):
            wire.enter(HOST, listener.getsockname()[1], wire.key_of(SECRET), {}, started + 0.5)
        thread.join()
        assert time.monotonic() - started < 5


def test_messages_arrive_however_they_are_cut():
    chance = random.Random(2)
    messages = [{"kind": "x", "value": "é" * chance.randrange(200)} for _ in range(50)]
    data = b"".join(map(wire.encode, messages))
    for pieces in (1, 7, 4096):
        frames = wire.Frames(4096)
        heard = [m for k in range(0, len(data), pieces) for m in frames.feed(data[k : k + pieces])]
        assert heard == messages
    with pytest.raises(ValueError, match="a message of 5000 bytes, where 4096 are the most"):
        wire.Frames(4096).feed(wire.frame(bytes(5000)))


def test_large_values():
    """Many names, and values above the limit: right, or the same error on every process."""
    script = """
    px.distributed.initialize()
    from purax.experimental import multihost_utils
    from purax.xla.processes import group, wire
    names = {f"a parameter with a name that is long {k}": np.float32(k + px.process_index()) for k in range(5000)}
    told = multihost_utils.broadcast_one_to_all(names)
    assert all(float(told[name]) == k for k, name in enumerate(names))
    wire.VALUE_LIMIT = 10_000
    print(fails(group.current.gather, "large", "x" * 20_000 * px.process_index()))
    print(fails(multihost_utils.assert_equal, names))
    wire.VALUE_LIMIT = 16 << 20
    print(fails(multihost_utils.assert_equal, names))
    multihost_utils.sync_global_devices("end" * 100_000)
    print(fails(multihost_utils.sync_global_devices, "same" * 100_000 + "end" * px.process_index()))
    """
    for ended in run_group(script, 2):
        assert ended.code == 0, ended.errors
        lines = [line for line in ended.output.splitlines() if "Error" in line]
        assert re.search(
            r"^ValueError: .* too large: process 1 has 20\d\d\d bytes. The limit is 10000 bytes", lines[0]
        ), lines
        assert re.search(r"^ValueError: .* to call assert_equal is too large: process \d has", lines[1]), (
            lines
        )
        assert re.search(r"^AssertionError: .*name that is long 0'\] = 0\.0 .* = 1\.0 ", lines[2]), lines
        assert "at different points" in lines[3] and len(lines[3]) < 2000


def join(host: str, port: int, id: int, secret: str = SECRET) -> None:
    joining.join(
        host, port, 2, id, bind=None, secret=secret, initialization=300.0, heartbeat=100.0, shutdown=300.0
    )


def test_a_taken_port_says_so_at_once(monkeypatch):
    monkeypatch.setattr(joining, "GREETING_SECONDS", 0.5)
    with socket.create_server((HOST, 0)) as other:  # says nothing, as most servers do
        port = other.getsockname()[1]
        expected = f"process 0 cannot listen at {HOST}:{port}: the port is taken by another program"
        with pytest.raises(RuntimeError, match=expected):
            join(HOST, port, 0)
    with coordinator(2) as target:
        with pytest.raises(RuntimeError, match="taken by a coordinator with another secret"):
            join(HOST, target.port, 0, "another")
        expected = "there is a coordinator with another secret. Of a group, all processes need the same one"
        with pytest.raises(RuntimeError, match=f"process 1 cannot join the group at .*: {expected}"):
            join(HOST, target.port, 1, "another")


def test_an_address_of_another_machine():
    expected = r"198\.51\.100\.77 is no address of this machine.*coordinator_bind_address="
    with pytest.raises(RuntimeError, match=expected):
        join("198.51.100.77", 4000, 0)


# -- addresses and keys


def test_a_name_of_this_machine_stands_for_its_addresses():
    assert own_addresses("127.0.0.1") == ["127.0.0.1"]
    assert set(own_addresses("localhost")) <= {"127.0.0.1", "::1"}
    port = free_port("127.0.0.1")
    listeners = listen(["127.0.0.1", "198.51.100.77"], port)
    with listeners[0]:
        assert [one.getsockname()[0] for one in listeners] == ["127.0.0.1"]
        with pytest.raises(OSError, match="in use"):
            listen(["127.0.0.1"], port)
    with pytest.raises(OSError, match="assign"):
        listen(["198.51.100.77"], port)


def test_a_machine_that_knows_its_name_as_loopback_listens_where_others_reach_it(monkeypatch):
    from purax.xla.processes import addresses

    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 0))]
    monkeypatch.setattr(addresses.socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(addresses, "_outgoing_address", lambda: ["10.0.0.7"])
    assert own_addresses("node7") == ["10.0.0.7", "127.0.1.1"]
    assert own_addresses("localhost") == ["127.0.1.1"]


def test_the_key_of_the_user(tmp_path):
    place = {"XDG_CONFIG_HOME": str(tmp_path)}
    find = group_secret.find_secret
    assert find("given", "shared", place | {"PURAX_GROUP_SECRET": "set"}) == "given"
    assert find(None, "shared", place | {"PURAX_GROUP_SECRET": "set"}) == "set"
    assert find(None, "shared", place) == "shared"
    assert not list(tmp_path.iterdir())
    keys: list[str] = []
    threads = [threading.Thread(target=lambda: keys.append(find(None, None, place))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    path = tmp_path / "purax" / "signing.key"
    assert len(keys) == 8 and len(set(keys)) == 1 and len(keys[0]) == 64
    assert path.stat().st_mode & 0o777 == 0o600 and list(path.parent.iterdir()) == [path]
    with pytest.raises(ValueError, match="secret must be a string that is not empty"):
        find("", None, place)


def test_a_key_that_others_may_know_is_not_used(tmp_path, monkeypatch):
    folder = tmp_path / "purax"
    monkeypatch.setattr(group_secret, "key_folders", lambda _: [str(folder)])
    known = group_secret.find_secret(None, None, {})
    (folder / "signing.key").chmod(0o644)
    assert group_secret.find_secret(None, None, {}) not in ("", known)
    folder.chmod(0o777)
    with pytest.raises(RuntimeError, match=r"can be written by other users.* Set PURAX_GROUP_SECRET"):
        group_secret.find_secret(None, None, {})
