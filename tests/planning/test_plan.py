"""`px.plan`: what it says of bytes and memory is what XLA reports for eight virtual devices; roles, errors, tables."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.planning import Hardware, hardware
from purax.planning.costs import Communication, Layout
from purax.planning.hardware import find_hardware, read_description
from purax.sharding import NamedSharding
from purax.sharding import PartitionSpec as P

EXAMPLES = Path(__file__).parents[2] / "examples"
S = px.ShapeDtypeStruct


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


transformer = example("train_transformer_parallel")
PARAMETERS = px.tree.map(lambda x: S(x.shape, x.dtype), transformer.initial_parameters())
TEXT = S((16, 17), jnp.int32)
BY_MODEL = {"embedding": P(), "blocks": [transformer.BLOCK] * 2}


def perceptron(parameters, batch):
    def loss(parameters):
        hidden = jnp.tanh(batch["x"] @ parameters["up"])
        return jnp.mean((hidden @ parameters["down"] - batch["y"]) ** 2)

    value, gradient = px.value_and_grad(loss)(parameters)
    return px.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), value


def gathered(parameters, batch):
    """`perceptron` with weights that are gathered where they are used, as FSDP means it."""
    return perceptron_on(lambda w: px.lax.with_sharding_constraint(w, P()), parameters, batch)


def perceptron_on(place, parameters, batch):
    def loss(parameters):
        hidden = jnp.tanh(batch["x"] @ place(parameters["up"]))
        return jnp.mean((hidden @ place(parameters["down"]) - batch["y"]) ** 2)

    value, gradient = px.value_and_grad(loss)(parameters)
    return px.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), value


LAYERS = {"up": S((64, 256), jnp.float32), "down": S((256, 32), jnp.float32)}
BATCH = {"x": S((128, 64), jnp.float32), "y": S((128, 32), jnp.float32)}

# The step, its arguments, how these are cut, and the sizes of ("data", "model").
STEPS = {
    "perceptron, data": (perceptron, (LAYERS, BATCH), ({"up": P(), "down": P()}, P("data")), (8, 1)),
    "perceptron, model": (
        perceptron,
        (LAYERS, BATCH),
        ({"up": P(None, "model"), "down": P("model")}, P("data")),
        (1, 8),
    ),
    "perceptron, both": (
        perceptron,
        (LAYERS, BATCH),
        ({"up": P(None, "model"), "down": P("model")}, P("data")),
        (4, 2),
    ),
    "transformer, both": (transformer.train_step, (PARAMETERS, TEXT), (BY_MODEL, P("data")), (4, 2)),
}


def compiled(step, args, specs, mesh):
    placed = px.tree.map(
        lambda spec, tree: px.tree.map(
            lambda x: S(x.shape, x.dtype, sharding=NamedSharding(mesh, spec)), tree
        ),
        specs,
        args,
        is_leaf=lambda x: isinstance(x, P),
    )
    out = px.tree.map(lambda x: x.sharding, placed[0])
    return px.jit(step, out_shardings=(out, None)).lower(*placed).compile()


def sent_by_kind(collectives):
    sent = Counter()
    for one in collectives:
        sent[one.kind] += one.sent
    return {kind: bytes for kind, bytes in sent.items() if bytes}


@pytest.mark.parametrize("name", STEPS)
def test_bytes_are_those_of_xla_and_memory_nearly(name):
    step, args, specs, sizes = STEPS[name]
    mesh = px.make_mesh(sizes, ("data", "model"))
    program = compiled(step, args, specs, mesh)
    planned = px.plan(px.jit(step), mesh, *args, specs=specs).best
    # XLA joins sums of several arrays into one, and rounds bytes once.
    ours, xlas = sent_by_kind(planned.communications), sent_by_kind(program.collectives())
    assert ours.keys() == xlas.keys()
    for kind, bytes in xlas.items():
        assert abs(ours[kind] - bytes) <= len(planned.communications)
    memory = program.memory_analysis()
    whole = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    assert 2 / 3 * whole < planned.memory < 4 / 3 * whole


def test_weights_that_are_gathered():
    """FSDP: each weight is gathered once, and its gradient comes in parts. XLA for CPUs sums and cuts instead."""
    mesh = px.make_mesh((8,), ("data",))
    specs = ({"up": P("data"), "down": P("data")}, P("data"))
    with px.set_mesh(mesh):
        planned = px.plan(px.jit(perceptron), mesh, LAYERS, BATCH, specs=specs).best
        constrained = px.plan(px.jit(gathered), mesh, LAYERS, BATCH, specs=specs).best
        program = compiled(gathered, (LAYERS, BATCH), specs, mesh)
    ours, xlas = sent_by_kind(planned.communications), sent_by_kind(program.collectives())
    assert ours["all-gather"] == xlas["all-gather"] == sent_by_kind(constrained.communications)["all-gather"]
    weights = 4 * sum(x.size for x in LAYERS.values())
    assert ours["reduce-scatter"] == weights * 7 / 8
    assert abs(xlas["all-reduce"] - 2 * ours["reduce-scatter"]) < 64


def test_finds_the_split_of_a_perceptron():
    """Columns of the first layer and rows of the second: one sum of activations forwards, none in between."""
    wide = {"up": S((8192, 65536), jnp.float32), "down": S((65536, 8192), jnp.float32)}
    batch = {"x": S((64, 8192), jnp.float32), "y": S((64, 8192), jnp.float32)}
    plans = px.plan(perceptron, "8 H200", wide, batch)
    assert plans.best.specs == ({"up": P(None, "model"), "down": P("model")}, {"x": P(), "y": P()})
    assert plans.best.mesh_shape == {"model": 8}
    assert [(one.kind, one.bytes) for one in plans.best.collectives()[:1]] == [("all-reduce", 4 * 64 * 8192)]
    narrow = px.plan(perceptron, "8 H200", LAYERS, {k: S((1 << 20, v.shape[1]), v.dtype) for k, v in BATCH.items()})
    assert narrow.best.specs[1]["x"] == P("data")


def test_scan_counts_iterations_and_checkpoint_saves_memory():
    def step_with(wrap):
        def step(w, x):
            layer = wrap(lambda x, w: jnp.tanh(jnp.tanh(x @ w) @ w.T))

            def loss(w):
                return jnp.sum(px.lax.scan(lambda x, w: (layer(x, w), None), x, w)[0])

            return w - px.grad(loss)(w)

        return step

    w, x = S((16, 256, 1024), jnp.float32), S((8192, 256), jnp.float32)
    specs = (P(None, None, "model"), P("data"))
    mesh = px.sharding.AbstractMesh((4, 2), ("data", "model"))
    plain, saving = (
        px.plan(step_with(wrap), mesh, w, x, specs=specs, device="H100").best
        for wrap in (lambda f: f, px.checkpoint)
    )
    reduced = [one for one in plain.communications if one.axes == ("model",)]
    assert {one.times for one in reduced} == {16}
    assert saving.memory < 0.5 * plain.memory
    assert "test_plan.py" in str(plain.peak_at)
    assert saving.flops > plain.flops


def test_memory_counts_donation():
    def step(p, x):
        return p * 0.9 + jnp.mean(x), jnp.sum(x)

    p, x = S((4096, 4096), jnp.float32), S((64, 4096), jnp.float32)
    kept = px.plan(px.jit(step), "1 H200", p, x).best
    given = px.plan(px.jit(step, donate_argnums=0), "1 H200", p, x).best
    assert kept.memory - given.memory == p.size * 4


def test_shard_map_says_what_it_sends():
    mesh = px.make_mesh((8,), ("data",))
    step = px.shard_map(lambda x: px.lax.psum(jnp.sin(x), "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
    found = px.plan(px.jit(step), mesh, S((8, 128), jnp.float32), specs=(P("data"),), device="A100").best
    assert [one.collective for one in found.collectives()] == [("all-reduce", 512, 8, 1)]


def test_links_of_devices():
    layout = Layout({"data": 8, "model": 8}, hardware["H200"])
    inside = Communication("all-gather", ("model",), 1 << 30, 8, 1, None)
    across = inside._replace(axes=("data",))
    both = inside._replace(axes=("data", "model"), devices=64)
    assert [layout.link_of(one) for one in (inside, across, both)] == ["link", "network", "network"]
    assert layout.seconds(inside) < layout.seconds(both) < layout.seconds(across)
    assert layout.seconds(inside) == pytest.approx((1 << 30) * 7 / 8 / 450e9 + 3 * 5e-6)


def test_names_of_devices():
    assert find_hardware("nvidia h200 141gb hbm3e") is hardware["H200"]
    assert find_hardware("TPU v5 lite") is hardware["TPU v5e"]
    assert read_description("16 x 16 tpu v5p") == (hardware["TPU v5p"], (16, 16))
    own = Hardware("mine", 10**9, {"float32": 1e12}, 1e12, 1e11, 4, 1e10, 1e-6)
    assert find_hardware(own).flops_for(np.dtype("float16")) == 1e12


def test_tables_and_pictures():
    plans = px.plan(perceptron, "2x4 H200", LAYERS, BATCH)
    assert len(plans) == 8 and plans[0] is plans.best
    text = repr(plans)
    assert "8 plans for 8 × H200" in text and "args[1]['x']" in text
    assert "test_plan.py" in repr(plans.best)
    columns = px.plan(perceptron, "2x4 H200", LAYERS, BATCH, specs=(P(None, "model"), P("data"))).best
    assert "┌───┬───┬───┬───┐" in columns.picture()
    mesh = px.make_mesh((2, 4), ("data", "model"))
    assert plans.best.shardings(mesh)[0]["up"].mesh == mesh


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: px.plan(perceptron, "eight H200", LAYERS, BATCH), "describes no devices"),
        (lambda: px.plan(perceptron, "8 H300", LAYERS, BATCH), "no device named 'H300'; known are A100"),
        (lambda: px.plan(perceptron, 8, LAYERS, BATCH), "the mesh must be a text such as"),
        (
            lambda: px.plan(perceptron, px.sharding.AbstractMesh((2,), ("data",)), LAYERS, BATCH),
            "nothing says what the devices",
        ),
        (lambda: px.plan(perceptron, "8 H200", LAYERS, BATCH, batch_argnums=4), "must name some of 2 arguments"),
        (
            lambda: px.plan(perceptron, "8x1 H200", LAYERS, BATCH, specs=(P("rows"), P())),
            "does not fit args\\[0\\]\\['down'\\]",
        ),
        (
            lambda: px.plan(perceptron, "3x1 H200", LAYERS, BATCH, specs=(P("data"), P())),
            "does not divide",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_the_example_plans_a_small_model():
    gpt = example("plan_gpt")
    small = gpt.Model(layers=2, width=512, heads=8, groups=4, hidden=1024, letters=2048, length=256)
    plans = gpt.planned(small, "16 H200", 32)
    assert plans.best.fits and {"data"} <= {name for plan in plans for name in plan.mesh_shape}
