"""The data of the explorer: what it says of a program is what the program does."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.explorer import compiled
from purax.explorer.folding import FEW, MOST, Group, Item, fold, numbers_in
from purax.explorer.memory import Memory
from purax.explorer.model import ModelMaker
from purax.explorer.tables import Tables


def layer(w, x):
    with px.named_scope("dense"):
        return jnp.tanh(x @ w)


def network(ws, x):
    for w in ws:
        x = layer(w, x)
    x, _ = px.lax.scan(lambda c, s: (jnp.sin(c) * s, None), x, jnp.arange(4.0))
    x = px.lax.cond(x.sum() > 0, jnp.cos, jnp.tanh, x)
    return jnp.sum(x**2)


@pytest.fixture(scope="module")
def arguments():
    return [jnp.full((8, 8), 0.1)] * 3, jnp.ones((4, 8))


@pytest.fixture(scope="module")
def explanation(arguments):
    return px.explain(network)(*arguments)


def test_the_model_is_plain_data_with_every_equation(explanation, arguments):
    model = json.loads(json.dumps(explanation.model))
    assert model == json.loads(json.dumps(model, allow_nan=False))
    closed = px.make_jaxpr(network)(*arguments)
    first = model["programs"][0]
    names = model["tables"]["operations"]
    assert [names[i] for i in first["equations"]["op"]] == [eqn.primitive.name for eqn in closed.eqns]
    assert {len(column) for column in first["equations"].values()} == {len(closed.eqns)}
    assert [model["tables"]["types"][first["values"][v]][0] for v in first["inputs"]] == [
        aval.str_short() for aval in closed.in_avals
    ]
    assert first["arguments"] == ["ws[0]", "ws[1]", "ws[2]", "x"]


def test_operations_name_the_users_lines(explanation):
    tables = explanation.model["tables"]
    (file,) = [file for file in tables["files"] if file["name"].endswith("test_model.py")]
    lines = {first + n: text for first, texts in file["parts"] for n, text in enumerate(texts)}
    equations = explanation.model["programs"][0]["equations"]
    for op, place in zip(equations["op"], equations["place"], strict=True):
        if tables["operations"][op] == "dot_general":
            assert "jnp.tanh(x @ w)" in lines[tables["places"][place][1]]


def test_programs_inside_run_as_often_as_their_callers_say(explanation):
    programs = {program["name"]: program for program in explanation.model["programs"]}
    assert programs["<lambda>"]["times"] == 4 and not programs["<lambda>"]["open"]
    assert programs["tanh"]["times"] == 1 and programs["tanh"]["open"]


def test_costs_of_lines_are_those_of_the_roofline_model():
    def f(w, x):
        return jnp.tanh(x @ w)

    w, x = jnp.ones((16, 32)), jnp.ones((8, 16))
    rows = px.explain(f, compile=False)(w, x).lines()
    (row,) = rows
    _, counts = px.experimental.roofline.roofline(f)(w, x)
    assert row["flops"] == counts.unfused_flops and row["operations"] == 2
    assert row["bytes"] == counts.unfused_hbm_bytes


def test_a_loop_costs_all_its_turns():
    def f(x):
        return px.lax.scan(lambda c, _: (c * 2, None), x, length=5)[0]

    ((_, flops, moved),) = [
        (row["place"], row["flops"], row["bytes"]) for row in px.explain(f, compile=False)(jnp.ones(10)).lines()
    ]
    assert flops == 50 and moved == 5 * (2 * 40 + 4)


# -- folding


def depth_first(children):
    return [number for child in children for number in numbers_in(child)]


@pytest.mark.parametrize("seed", range(8))
def test_folding_keeps_the_order_and_bounds_the_children(seed):
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 3000))
    scopes = [(), ("a",), ("a", "b"), ("c",)]
    items = [
        Item(
            scopes[random.integers(len(scopes))] if seed % 2 else (),
            "f.py",
            int(random.integers(1, 20)),
            "fg"[random.integers(2)],
            bool(random.random() < 0.01),
            int(random.integers(3)),
        )
        for _ in range(count)
    ]
    folded = fold(items)
    assert depth_first(folded) == list(range(count))

    def check(children):
        assert len(children) <= MOST
        for child in children:
            if isinstance(child, Group):
                assert child.children and child.label
                check(child.children)

    check(folded)


def test_repeated_layers_are_told_apart():
    items = [Item(("dense",), key=name) for _ in range(3) for name in ("dot", "tanh")]
    assert [group.label for group in fold(items)] == ["dense (1 of 3)", "dense (2 of 3)", "dense (3 of 3)"]


def test_an_unrolled_loop_is_folded_by_its_turns():
    items = [Item((), "f.py", line, "f", key=n % 3) for n in range(3 * FEW) for line in (3, 4)]
    (first, *_), *rest = [child.children for child in fold(items)], None
    assert rest == [None] and depth_first(fold(items)) == list(range(len(items))) and first


# -- memory


def test_memory_is_that_of_what_is_still_needed():
    def f(x):  # 400 bytes each
        a = x * 2
        b = a + 1
        return b * b

    usage = Memory().usage(px.make_jaxpr(f)(jnp.ones(100)).jaxpr)
    assert usage.around == 400
    assert usage.timeline == [800, 1200, 1200]
    assert usage.peak == 1


def test_memory_follows_calls_and_adds_the_peak_of_loops():
    inner = px.jit(lambda x: jnp.sum(jnp.outer(x, x)))
    usage = Memory().usage(px.make_jaxpr(lambda x: inner(x) + inner(2 * x))(jnp.ones(100)).jaxpr)
    assert max(usage.timeline) == 400 + 2 * 400 + 40_000 + 4 or max(usage.timeline) < 82_000
    assert usage.alive[0][0].aval.shape == (100, 100)

    def loop(x):
        return px.lax.fori_loop(0, 3, lambda i, c: c + jnp.sum(jnp.outer(c, c)), x)

    assert max(Memory().usage(px.make_jaxpr(loop)(jnp.ones(100)).jaxpr).timeline) > 40_000


def test_a_deep_chain_of_shared_calls_is_found_at_once():
    def doubled(f):
        return px.jit(lambda x: f(x) + f(x))

    f = jnp.sin
    for _ in range(8):
        f = doubled(f)
    model = ModelMaker().model(px.make_jaxpr(f)(1.0), "deep")
    assert len(model["programs"]) <= 10 and max(p["times"] for p in model["programs"]) == 2**7


# -- what was compiled


def test_kernels_name_lines_and_what_they_compute(explanation):
    found = explanation.model["compiled"]["kernels"]
    assert found and {kernel["kind"] for kernel in found} <= {
        *("fused", "native", "library", "callback", "collective", "loop", "call", "branches", "reduced", "copy"),
        "alone",
    }
    tables = explanation.model["tables"]
    named = {tables["places"][place][1] for kernel in found for place, _ in kernel["places"]}
    places = explanation.model["programs"][0]["equations"]["place"]
    used = {tables["places"][place][1] for place in places if place >= 0}
    assert used & named
    assert any(name == "tanh" for kernel in found for name, _ in kernel["made of"])
    assert explanation.model["compiled"]["memory"]["argument"] >= 4 * 8 * 4


def test_collectives_are_kernels_with_bytes():
    text = """HloModule f, num_partitions=4

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %r = f32[8]{0} all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%add
}
"""
    (kernel,) = compiled.kernels(text, Tables())
    assert (kernel["kind"], kernel["bytes"], kernel["sent"], kernel["devices"]) == ("collective", 32, 48, 4)


def test_lines_of_hlo_are_found_through_stack_frames():
    text = """HloModule f

FileNames
1 "train.py"

FunctionNames
1 "tanh"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %t = f32[8]{0} tanh(%x), metadata={op_name="layer/tanh" stack_frame_id=1}
}
"""
    tables = Tables()
    (kernel,) = compiled.kernels(text, tables)
    assert kernel["made of"] == [["tanh", 1]]
    assert tables.places.values == [(0, 7)] and tables.files.values == ["train.py"]


# -- runs


def test_measured_time_is_shared_by_lines(arguments):
    explanation = px.explain(network, measure=True)(*arguments)
    measured = explanation.model["measured"]
    assert measured["seconds"] > 0 and measured["kernels"]
    assert sum(row["seconds"] for row in explanation.lines()) > 0
    assert "measured" in repr(explanation)


def test_measuring_leaves_donated_arrays_alone():
    x = jnp.arange(8.0)
    px.explain(px.jit(lambda x: x + 1, donate_argnums=0), measure=True)(x)
    assert not x.is_deleted() and float(x[7]) == 7


def test_ranges_of_values():
    @px.jit
    def f(x):
        y = jnp.log(x)
        return jnp.exp(-y), x * 1e-38

    explanation = px.explain(f, numbers=True, compile=False)(jnp.array([-1.0, 0.0, 1.0, 2.0]))
    model = explanation.model
    names = model["tables"]["operations"]
    rows = {}
    for number, found in model["numerics"]["rows"].items():
        for i, row in found.items():
            rows[names[model["programs"][int(number)]["equations"]["op"][int(i)]]] = dict(
                zip(model["numerics"]["fields"], row, strict=True)
            )
    assert rows["log"]["nan"] == 1 and rows["log"]["inf"] == 1 and rows["log"]["size"] == 4
    assert math.isclose(rows["log"]["greatest"], math.log(2), rel_tol=1e-6)
    assert rows["mul"]["subnormal"] == 2


# -- notes


def test_it_says_why_a_function_was_traced_again():
    f = px.jit(lambda x: x + 1)
    f(jnp.ones(3))
    traces = px.explain(f, compile=False)(jnp.ones(4)).model["traces"]
    assert [trace["types"] for trace in traces] == [["f32[3]"], ["f32[4]"]]
    assert traces[0]["because"] == [] and traces[1]["because"] == ["argument x: f32[3] -> f32[4]"]


def test_side_effects_are_found_with_their_lines():
    seen = []

    def f(x):
        seen.append(1)
        return x + 1

    explanation = px.explain(f, compile=False)(1.0)
    (finding,) = explanation.model["findings"]
    file, line = explanation.model["tables"]["places"][finding["place"]]
    assert finding["kind"] == "mutation" and "seen" in finding["text"] and len(seen) == 1
    assert explanation.model["tables"]["files"][file]["name"].endswith("test_model.py") and line > 0


def test_the_backward_pass_is_marked(arguments):
    program = px.explain(px.grad(network), compile=False)(*arguments).model["programs"][0]
    assert 0 < len(program["backward"]) < len(program["equations"]["op"])
    assert [child[:2] for child in program["fold"]][:2] == [["pass", "forward pass"], ["pass", "backward pass"]]


# -- what can be explained


def test_programs_and_exported_functions_open_too(arguments):
    closed = px.make_jaxpr(network)(*arguments)
    traced = px.jit(network).trace(*arguments)
    first = px.explain(closed)().model
    assert first["compiled"]["kernels"]
    assert px.explain(traced)().model["programs"][0]["equations"]["op"] == first["programs"][0]["equations"]["op"]
    assert px.explain(traced.lower())().model["name"] == "network"
    exported = px.export.export(px.jit(network))(*arguments)
    model = px.explain(px.export.deserialize(exported.serialize()))().model
    assert "dot_general" in model["tables"]["operations"] and len(model["programs"]) > 1
    json.dumps(model, allow_nan=False)
    for program in model["programs"]:
        assert depth_first_of_data(program["fold"]) == list(range(len(program["equations"]["op"])))


def depth_first_of_data(children):
    return [n for child in children for n in (depth_first_of_data(child[2]) if isinstance(child, list) else [child])]


def test_static_arguments_and_symbolic_shapes():
    f = px.jit(lambda x, n: x * n, static_argnums=1)
    assert px.explain(f)(jnp.ones(3), 4).model["tables"]["operations"] == ["mul"]
    (shape,) = px.export.symbolic_args_specs([jnp.ones((4,))], "b")
    assert px.explain(lambda x: x + 1, compile=False)(shape).lines()[0]["operations"] == 1


def test_wrong_uses_say_what_to_do(arguments):
    with pytest.raises(TypeError, match="needs 4 arrays, got 0"):
        px.explain(px.make_jaxpr(network)(*arguments), measure=True)()
    with pytest.raises(TypeError, match="explain"):
        px.explain(3)


def test_the_page_needs_nothing_else(explanation, tmp_path):
    explanation.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == explanation.html and not re.search(r"<(script|link|img|iframe)\b[^>]*\b(src|href)=", page)
    frame = explanation._repr_html_()
    assert frame.startswith("<iframe srcdoc=") and "<!doctype" not in frame


def test_what_a_program_says_cannot_leave_its_place(tmp_path):
    def f(x):
        with px.named_scope("</script><script>alert(1)</script>"):
            return x + 1

    html = px.explain(f, compile=False)(1.0).html
    assert "<script>alert" not in html and "</script><script>alert" not in html
