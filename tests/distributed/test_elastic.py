"""Groups that go on after a loss: in the same processes, with new devices, from the last checkpoint."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import purax as px
from purax.xla import client
from tests.distributed.groups import run_group

SURVIVE = """
import signal
px.distributed.initialize(collective_timeout_seconds=1.5)
number = px.process_index()
kept, key = jnp.arange(3.0) + 1, px.random.key(7)

TABLE = np.arange(48.0, dtype=np.float32).reshape(12, 4)

def batch(k):
    return np.random.default_rng(k).normal(size=(12, 4)).astype(np.float32)

@px.jit
def step(w, x):
    loss, g = px.value_and_grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w)
    return w - 0.1 * g, loss

def misfortune(k):
    if number == 1 and k == 7:
        time.sleep(1000)  # stuck here
    if number == 0 and k == 17:
        os.kill(os.getpid(), signal.SIGKILL)

folder, said, losses = sys.argv[1], [], {}
while True:
    mesh = px.make_mesh((px.device_count(),), ("data",))
    rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    try:
        if os.path.exists(folder):
            place = {"k": None, "table": rows, "w": whole}
            saved = px.checkpoints.load(folder, shardings=place)
            k, w, table = saved["k"], saved["w"], saved["table"]
            (part,) = table.addressable_shards
            assert table.sharding == rows and np.array_equal(part.data, TABLE[part.index])
        else:
            k, w, table = 0, px.device_put(np.zeros(4, np.float32), whole), px.device_put(TABLE, rows)
        while k < 24:
            misfortune(k)
            w, loss = step(w, px.device_put(batch(k), rows))
            losses[k] = float(loss)
            k += 1
            if k % 5 == 0:
                px.checkpoints.save(folder, {"k": k, "w": w, "table": table})
        break
    except px.errors.ProcessLostError as error:
        live = len(px.distributed.live_devices())
        before = px.distributed.reinitialize(30)
        gone = [fails(np.asarray, w), fails(lambda: w + 1), fails(px.device_put, batch(0), rows)]
        said.append([str(error), live, before, gone, px.process_index(), px.device_count()])
print(json.dumps({"said": said, "losses": losses, "kept": kept.tolist(), "key": px.random.bits(key).item()}))
"""


def test_two_losses_one_after_the_other(tmp_path):
    ended = run_group(SURVIVE, 4, tmp_path / "checkpoint", seconds=120)
    assert ended[0].code == -9
    # The stuck one is told, and ends itself, since it does nothing about it.
    assert "this one, was taken for lost by its group: it did not start the program" in ended[1].errors
    for number in (2, 3):
        assert ended[number].code == 0, ended[number].errors
        found = json.loads(ended[number].output.splitlines()[-1])
        (stuck, live, first, gone, _, count), (killed, _, second, _, now, left) = found["said"]
        assert re.search(
            r"process 1 .* is lost: it did not start the program `\w+`, which process \d started at .*, number \d+ of "
            r"those that they run together, within 1.5 s; it is at <string>:\d+ \(misfortune\)",
            stuck,
        ), stuck
        assert (live, first, count) == (3, [0, 2, 3], 3)
        assert re.search(r"process 0 .* is lost: its connection closed", killed)
        assert (second, now, left) == ([1, 2], number - 2, 2)
        for text in gone:
            assert re.match(r"ProcessLostError: .* belonged to a group of processes that lost a member", text), text
        assert found["kept"] == [1.0, 2.0, 3.0]
        assert found["key"] == px.random.bits(px.random.key(7)).item()
        assert sorted(map(int, found["losses"])) == list(range(24))
        assert found["losses"] == pytest.approx(undisturbed(), rel=1e-5)


def undisturbed() -> dict[str, float]:
    """The losses of one device."""
    w, losses = np.zeros(4), {}
    for k in range(24):
        x = np.random.default_rng(k).normal(size=(12, 4)).astype(np.float32)
        difference = x @ w - 1
        losses[str(k)] = float(np.mean(difference**2))
        w = w - 0.1 * 2 / 12 * x.T @ difference
    return losses


def test_alone(monkeypatch):
    with pytest.raises(RuntimeError, match="this process is in no group; .*initialize"):
        px.distributed.reinitialize()
    assert px.distributed.live_devices() == px.devices()
    monkeypatch.setattr(client, "_clients", {})  # as at the start of a program
    with pytest.raises(ValueError, match="collective_timeout_seconds must be positive, not 0"):
        px.distributed.initialize("127.0.0.1:9", 2, 0, collective_timeout_seconds=0)
