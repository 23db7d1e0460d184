"""The benchmark still runs: every row once at a tiny size, by every peer that is installed, and all peers agree.

The rows run in fresh processes, as they do for users, so that peers and thread pools stay out of the test process.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import page
from bench.measure import Options, Runner, disagreement, time_row
from bench.report import geometric_mean, summary, verdict_text, write_json, write_plot
from bench.resident import RESET_PEAK
from bench.row import Group, Outcome, Row, bar
from bench.rows import GROUPS, select
from bench.rows.memory import measure_row

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = (
    "memory",
    "gpu",
)  # the rows of other groups again: a process for each, and a device that is not here
# torch's import takes seconds and has no bar in the startup rows.
PEERS = {"startup": ["--peers=purax,jax,numpy,autograd"]}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in GROUPS if name not in ELSEWHERE])
def test_every_row_runs_and_no_peer_fails_and_all_agree(name, tmp_path):
    """purax may lack a function that is not built yet; a wrong result or an error is a defect, of whichever peer."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT), XLA_FLAGS="--xla_backend_optimization_level=0")
    written = tmp_path / "rows.json"
    command = [sys.executable, "-m", "bench", "--smoke", f"--json={written}", f"--group={name}"]
    done = subprocess.run(
        command + PEERS.get(name, []), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    smoke_rows = json.loads(written.read_text(encoding="utf-8"))["rows"]
    measured = {(row["group"], row["name"].split(":")[0]) for row in smoke_rows}
    for row in GROUPS[name].rows:
        assert getattr(row, "heavy", False) or (name, row.name.split(":")[0]) in measured
    notes = [
        f"{row['group']} / {row['name']}: {label} {note}"
        for row in smoke_rows
        for label, note in row["notes"].items()
        if not (label == "purax" and note.startswith("missing"))
    ]
    assert notes == []
    for row in smoke_rows:
        assert row["costs"].get("purax", 0) > 0 or "purax" in row["notes"], row


def test_names_are_unique_and_selectable():
    for name, group in GROUPS.items():
        names = [row.name for row in group.rows]
        assert len(names) == len(set(names)) and names
        for row in group.rows:
            assert row in select([name], row.name)[0][1]
    with pytest.raises(ValueError, match="no group 'kernel'; the groups are startup"):
        select(["kernel"])


@pytest.mark.skipif(not RESET_PEAK.exists(), reason="the peak of a process can only be reset on Linux")
def test_peak_memory_of_a_row_is_that_of_its_arrays():
    """Sixteen megabytes come in and sixteen go out; the imports and the compiler are not counted."""
    row = next(row for row in GROUPS["memory"].rows if row.name == "sqrt 4M")
    outcome = measure_row(row, Options(peers=("purax",)))
    assert outcome.unit == "B" and outcome.notes == {}
    assert 30e6 <= outcome.costs["purax"] <= 80e6  # of which two, freed before, may have been there


def test_rows_of_a_gpu_are_rows_of_the_other_groups_at_their_own_size():
    larger = {row.name: row for row in GROUPS["gpu"].rows}
    assert larger["matmul f32 4096"].size == 4096 and "numpy" not in larger["matmul f32 4096"].builders
    assert len(larger) > 30


def constant(value):
    return lambda space, size: lambda: value


def test_wrong_result_is_reported_and_not_timed():
    row = Row("eager", "planted", {"purax": constant(1.5), "numpy": constant(1.0)})
    outcome = time_row(row, Options(smoke=True, repeat=1))
    assert outcome.notes["purax"].startswith("differs from numpy: result 0 differs")
    assert set(outcome.costs) == {"numpy"}
    assert verdict_text(outcome) == "differs"


def test_missing_function_is_not_an_error():
    def absent(space, size):
        raise AttributeError("module 'purax' has no attribute 'zeta'")

    row = Row("eager", "planted", {"purax": absent, "numpy": constant(1.0)}, bars=(bar(0.5, "numpy"),))
    outcome = time_row(row, Options(smoke=True, repeat=1))
    assert outcome.notes["purax"] == "missing: AttributeError: module 'purax' has no attribute 'zeta'"
    assert verdict_text(outcome) == "missing"


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        ([[1, 2]], "1 results instead of 2"),
        ([[1, 2], 1.0], "result 1 has shape"),
        ([[1, 2], [1.0, 2.1]], "result 1"),
    ],
)
def test_disagreement_names_the_result(result, complaint):
    import numpy as np

    expected = [np.array([1, 2]), np.array([1.0, 2.0])]
    actual = [np.array(each) for each in result]
    assert disagreement(Row("g", "r", {}), expected, expected, exact_dtype=True) is None
    assert disagreement(Row("g", "r", {}), expected, actual, exact_dtype=True).startswith(complaint)


def test_inner_loop_is_long_enough_for_the_clock():
    runner = Runner(Row("eager", "planted", {"numpy": constant(1.0)}), "numpy", smoke=True)
    count = runner.calibrate(0.002)
    assert count > 100
    assert max(runner.sample(count) for _ in range(5)) > 0.001


def test_bars_and_means(tmp_path):
    group = Group(
        "planted",
        "",
        None,
        bars=(bar(0.5, "jax"), bar(0.4, "jax", mean=True), bar(2.0, "numpy torch", mean=True)),
    )
    outcomes = [
        Outcome(
            "planted", "fast", {"purax": 1.0, "jax": 4.0, "torch": 2.0, "numpy": 0.5}, bars=group.row_bars()
        ),
        Outcome("planted", "slow", {"purax": 1.0, "jax": 1.0, "torch": 0.5}, bars=group.row_bars()),
        Outcome("planted", "absent", {"jax": 1.0}, {"purax": "missing: zeta"}, bars=group.row_bars()),
    ]
    assert [verdict_text(outcome) for outcome in outcomes] == ["pass", "miss ≤ 0.5 jax (×1.00)", "missing"]
    (found,) = summary([group], outcomes)
    assert found["means"]["jax"] == {"mean": pytest.approx(0.5), "rows": 2}
    assert [each["met"] for each in found["mean_bars"]] == [False, True]
    assert [miss["row"] for miss in found["misses"]] == ["slow"]
    assert list(found["absent"]) == ["absent"]
    write_json(tmp_path / "out.json", outcomes, [found])
    stored = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [row["bars"][0]["met"] for row in stored["rows"]] == [True, False, False]
    if write_plot(tmp_path / "out.png", outcomes):
        assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert math.isclose(geometric_mean([1.0, 4.0]), 2.0)


def test_the_page_gets_the_table_of_the_last_run_and_keeps_its_text(tmp_path):
    for number, cost in enumerate((2.0, 1.0)):
        write_json(tmp_path / f"{number}.json", [Outcome("planted", "row", {"purax": cost, "jax": 4.0})], [])
    documents = [json.loads((tmp_path / f"{number}.json").read_text(encoding="utf-8")) for number in (0, 1)]
    path = tmp_path / "page.md"
    path.write_text(f"above\n{page.BEGIN}\nold\n{page.END}\nbelow\n", encoding="utf-8")
    page.write_page(documents, path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("above\n") and text.endswith("\nbelow\n") and "old" not in text
    assert "### planted" in text and "| row | 1.00 s | 4.00 s (0.25) |" in text
