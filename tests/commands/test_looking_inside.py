"""`purax explain`, `purax check`, `purax profile`, and the random stream of `purax run --jax`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import purax as px
import purax.numpy as jnp
from purax.commands.main import COMMANDS, main

SCRIPT = """
import sys
import purax as px, purax.numpy as jnp
seen = []

def loss(w, x):
    seen.append(x.shape)
    return jnp.mean(jnp.tanh(x @ w) ** 2)

step = px.jit(lambda w, x: w - 0.1 * px.grad(loss)(w, x))

def main():
    w = jnp.ones((8, 8))
    for i in range(4):
        w = step(w, jnp.ones((4 + i % 2, 8)))
    print("the end", sys.argv[1:])

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scripts")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "jax_train.py").write_text(SCRIPT.replace("purax as px, purax.numpy", "jax as px, jax.numpy"))
    return folder


def purax(folder, *words):
    command = [sys.executable, "-m", "purax", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_explain_stops_where_the_function_is_called(folder):
    done = purax(folder, "explain", "-o", "page.html", "train.py:loss")
    assert done.returncode == 0, done.stderr
    assert "`loss`: 5 operations" in done.stdout and "side effect at train.py:7" in done.stdout
    assert "the end" not in done.stdout
    assert (folder / "page.html").read_text().startswith("<!doctype html>")


def test_check_finds_effects_shapes_and_traces_without_running(folder):
    done = purax(folder, "check", "jax_train.py", "word")
    assert done.returncode == 1, done.stderr
    assert "4 calls, 2 traces" in done.stdout and "traced again: argument x: f32[4,8] -> f32[5,8]" in done.stdout
    assert "(f32[8,8], f32[4,8]) -> f32[8,8]" in done.stdout and "jax_train.py:15" in done.stdout
    assert "1 side effect:" in done.stdout and "seen.append" in done.stdout and "the end ['word']" in done.stdout


def test_profile_writes_a_trace_and_a_page(folder):
    done = purax(folder, "profile", "--interval", "1", "train.py", "word")
    assert done.returncode == 0, done.stderr
    assert "the end ['word']" in done.stdout and "Memory by line" in done.stdout
    events = json.loads((folder / "train.trace.json").read_text())["traceEvents"]
    assert {"M", "X", "C"} <= {event["ph"] for event in events}
    assert any(event["ph"] == "C" and event["args"]["bytes"] > 2**20 for event in events)
    assert any(event.get("pid") == 999_999 and event["ph"] == "M" for event in events)
    page = (folder / "train.profile.html").read_text()
    data = page.partition('id="model">')[2].partition("</script>")[0]
    model = json.loads(data)
    assert model["measured"]["kernels"] and model["measured"]["runs"] >= 2
    names = {kernel["name"] for kernel in model["compiled"]["kernels"]}
    assert set(model["measured"]["kernels"]) & names


def test_an_exported_function_is_explained(folder, capsys):
    exported = px.export.export(px.jit(lambda x: jnp.tanh(x @ x)))(jnp.ones((4, 4)))
    (folder / "exported.bin").write_bytes(exported.serialize())
    (folder / "module.mlir").write_text(exported.mlir_module())
    for name in ("exported.bin", "module.mlir"):
        assert main(["explain", "--text", str(folder / name)]) == 0
        out = capsys.readouterr().out
        assert "4 operations" in out and "FLOP" not in out
    (folder / "damaged.bin").write_bytes(b"nothing")
    assert main(["explain", "--text", str(folder / "damaged.bin")]) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"usage: purax {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, problem",
    [
        (["explain"], "nothing to explain"),
        (["explain", "--colour", "x.py:f"], "--colour is no option"),
        (["explain", "-o"], "-o needs a value"),
        (["explain", "absent.py:f"], "there is no file"),
        (["explain", __file__], "which function?"),
        (["check"], "which script?"),
        (["check", "absent.py"], "there is no file"),
        (["profile"], "nothing to profile"),
        (["profile", "--interval", "0", "x.py"], "is to be positive"),
        (["run", "--jax", "x.py"], "needs a version"),
    ],
)
def test_what_is_wrong_with_a_command_line_is_said(words, problem, capsys):
    assert main(words) == 2
    assert problem in capsys.readouterr().err


def test_the_random_stream_is_that_of_the_version(folder):
    code = "import jax; print(jax.random.normal(jax.random.key(3), (3,)).tolist())"
    newer, older = (purax(folder, "run", *words, "-c", code).stdout for words in (["--jax", "0.10"], ["--jax=0.4.30"]))
    import jax

    with jax.threefry_partitionable(True):
        assert newer.strip() == str(jax.random.normal(jax.random.key(3), (3,)).tolist())
    with jax.threefry_partitionable(False):
        assert older.strip() == str(jax.random.normal(jax.random.key(3), (3,)).tolist())
