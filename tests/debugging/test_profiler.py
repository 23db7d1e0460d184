"""Profiles: the files that TensorBoard and Perfetto open, with the names of annotations in them."""

from __future__ import annotations

import gzip
import json
import threading
import time
import urllib.request

import jax
import pytest

import purax
import purax.numpy as jnp
from purax import profiler


def events(folder):
    (path,) = folder.glob("plugins/profile/*/perfetto_trace.json.gz")
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


def test_a_trace_holds_programs_and_annotations(tmp_path):
    f = purax.jit(lambda x: jnp.sin(x @ x).sum())
    x = jnp.ones((50, 50))
    f(x).block_until_ready()

    @profiler.annotate_function
    def load():
        return 1

    with profiler.trace(tmp_path, create_perfetto_trace=True):
        for step in range(2):
            with (
                profiler.StepTraceAnnotation("train", step_num=step),
                profiler.TraceAnnotation("mine", size=3),
            ):
                f(x).block_until_ready()
        assert load() == 1
        assert profiler.annotate_function(lambda: 2, name="named")() == 2
    found = {}
    for event in events(tmp_path):
        found.setdefault(event.get("name", ""), []).append(event)
    assert [event["args"]["step_num"] for event in found["train"]] == ["0", "1"]
    assert found["mine"][0]["args"]["size"] == "3" and found["mine"][0]["dur"] > 0
    assert any(name.endswith("load") for name in found) and "named" in found
    assert list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))
    (path,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    planes = [plane.name for plane in profiler.ProfileData.from_file(str(path)).planes]
    assert any("CPU" in name for name in planes)


def test_one_trace_at_a_time(tmp_path):
    with pytest.raises(RuntimeError, match="start_trace"):
        profiler.stop_trace()
    profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="already"):
            profiler.start_trace(tmp_path)
    finally:
        profiler.stop_trace()


def test_the_link_to_perfetto_serves_the_trace(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(profiler, "_PERFETTO_PORT", 0)
    fetched = []

    def run():
        with profiler.trace(tmp_path, create_perfetto_link=True):
            (jnp.ones(3) + 1).block_until_ready()

    thread = threading.Thread(target=run)
    thread.start()
    for _ in range(300):
        out = capsys.readouterr().out
        if "url=" in out:
            with urllib.request.urlopen(out.partition("url=")[2].strip(), timeout=10) as reply:
                assert reply.headers["Access-Control-Allow-Origin"] == "*"
                fetched.append(json.loads(gzip.decompress(reply.read())))
            break
        time.sleep(0.1)
    thread.join(30)
    assert not thread.is_alive() and fetched[0]["traceEvents"]


def test_memory_profiles_and_server(tmp_path):
    keep = jnp.ones((100, 100)) @ jnp.ones((100, 100))
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert gzip.decompress((tmp_path / "memory.prof").read_bytes())
    assert keep.shape == (100, 100)
    profiler.start_server(0)
    try:
        with pytest.raises(ValueError, match="already"):
            profiler.start_server(0)
    finally:
        profiler.stop_server()
    with pytest.raises(ValueError, match="no profiler server"):
        profiler.stop_server()


NAMES = """ProfileData ProfileEvent ProfileOptions ProfilePlane StepTraceAnnotation TraceAnnotation annotate_function
device_memory_profile register_subprocess save_device_memory_profile start_server start_trace stop_server stop_trace
trace"""


def test_names():
    if jax.__version__ == "0.10.2":  # the names are this one's
        assert {name for name in vars(jax.profiler) if not name.startswith("_")} == set(NAMES.split())
    assert [name for name in NAMES.split() if not hasattr(profiler, name)] == []
