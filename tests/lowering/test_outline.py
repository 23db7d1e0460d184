"""Repeated equations become calls or loops, and nothing else changes: results, gradients, effects, donation."""

import random
import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.jaxpr import Literal
from purax.lowering import jaxpr_to_stablehlo
from purax.lowering.cpu.outline import find_stretches, number_equations, outline

WIDTH = 8


def calls(function, *args):
    return px.jit(function).lower(*args).as_text().count("call @repeated")


def loops(function, *args):
    return px.jit(function).lower(*args).as_text().count("stablehlo.while")


@pytest.fixture
def as_written(monkeypatch):
    """Runs a compiled function with its repetitions left as they are."""

    def run(function, *args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(jaxpr_to_stablehlo, "outline", lambda jaxpr, call, loop: jaxpr)
            px.clear_caches()
            results = px.tree.map(np.asarray, px.jit(function, **options)(*args))
        px.clear_caches()
        return results

    return run


def assert_same(got, wanted, **tolerance):
    px.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), got, wanted)
    px.tree.map(lambda a, b: np.testing.assert_equal(np.asarray(a).dtype, b.dtype), got, wanted)


def weights(count, seed=0, width=WIDTH):
    rng = np.random.default_rng(seed)
    return [
        {name: rng.normal(size=(width, width)).astype(np.float32) / width**0.5 for name in "qkvo"}
        for _ in range(count)
    ]


def layer(x, w):
    """A small attention block with a norm."""
    h = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    scores = px.nn.softmax(jnp.where(jnp.tril(jnp.ones((4, 4), bool)), (h @ w["q"]) @ (h @ w["k"]).T, -1e9))
    return x + jnp.tanh(scores @ (h @ w["v"])) @ w["o"]


def network(ws, x):
    for w in ws:
        x = layer(x, w)
    return x


def loss(ws, x):
    return jnp.mean(network(ws, x) ** 2)


X = np.random.default_rng(9).normal(size=(4, WIDTH)).astype(np.float32)


# -- what is found


def test_layers_of_a_loop_are_one_function():
    assert calls(network, weights(6), X) == 6
    text = px.jit(network).lower(weights(6), X).as_text()
    assert text.count("func.func") == 2


@pytest.mark.parametrize("count", [4, 9])
def test_the_backward_pass_is_found_too(count):
    step = px.value_and_grad(loss)
    assert calls(step, weights(count), X) >= 2 * count - 3
    assert len(px.jit(step).lower(weights(12), X).as_text()) < 2 * len(
        px.jit(step).lower(weights(4), X).as_text()
    )


def test_a_chain_that_takes_nothing_new_is_a_loop():
    def chain(x, w):
        for _ in range(200):
            x = jnp.tanh(x @ w)
        return x

    assert loops(chain, X, np.eye(WIDTH, dtype=np.float32)) == 1
    assert calls(chain, X, np.eye(WIDTH, dtype=np.float32)) == 0


def test_indexing_an_array_does_not_hide_the_period(as_written):
    def recurrent(xs, w):
        h = jnp.zeros((2, WIDTH))
        for step in range(30):
            h = jnp.tanh(xs[step, 1:3] @ w + h @ w + xs[-1 - step, :2]) * 2.0 - h
        return h

    xs = np.random.default_rng(2).normal(size=(30, 4, WIDTH)).astype(np.float32)
    w = weights(1)[0]["q"]
    text = px.jit(recurrent).lower(xs, w).as_text()
    assert text.count("call @repeated") >= 9
    assert text.count("stablehlo.slice") + text.count("stablehlo.dynamic_slice") < 20
    assert_same(px.jit(recurrent)(xs, w), as_written(recurrent, xs, w), rtol=1e-4, atol=1e-5)
    gradient = px.grad(lambda xs, w: jnp.sum(recurrent(xs, w)), (0, 1))
    assert_same(px.jit(gradient)(xs, w), as_written(gradient, xs, w), rtol=1e-3, atol=1e-4)


def test_programs_inside_others_are_searched():
    assert calls(lambda ws, x: px.jit(network)(ws, x) + 1, weights(5), X) == 5
    scanned = lambda ws, x: px.lax.scan(lambda c, _: (network(ws, c), None), x, None, length=3)[0]  # noqa: E731
    assert calls(scanned, weights(5), X) == 5


def test_what_is_better_fused_or_too_short_stays():
    def elementwise(x):
        for _ in range(30):
            x = jnp.sin(x) * 2 + jnp.cos(x)
        return x

    assert calls(elementwise, X) == 0 == loops(elementwise, X)
    assert calls(network, weights(2), X) == 0


def test_convolutions_are_not_put_into_functions():
    """They are several times slower there: XLA lays out their operands badly."""

    def convolve(x, w):
        h = px.lax.conv_general_dilated(x, w, (1, 1), "SAME") * 2 + 1
        return jnp.tanh(h) + jnp.sin(h) * jnp.cos(h) - (h @ h) / (1 + h * h)

    def stack(block):
        def apply(x, ws):
            for w in ws:
                x = block(x, w)
            return x

        return apply

    x, ws = np.ones((1, 2, 4, 4), np.float32), [np.ones((2, 2, 3, 3), np.float32)] * 5
    assert calls(stack(convolve), x, ws) == 0
    kept = 'inlineable = "false"'
    assert kept not in px.jit(stack(px.jit(convolve))).lower(x, ws).as_text()
    square = px.jit(lambda x: x @ x)
    assert kept in px.jit(lambda x: square(square(x))).lower(x).as_text()


def test_other_constants_and_types_are_other_equations():
    def scaled(ws, x):
        for i, w in enumerate(ws):
            x = layer(x, w) * (1.0 + i)
        return x

    x = np.float32(X)
    assert calls(scaled, weights(4), x) in (0, 4)  # the products may stay outside, never inside
    np.testing.assert_allclose(px.jit(scaled)(weights(4), x), scaled(weights(4), x), rtol=2e-5, atol=2e-5)


def test_stretches_have_their_period():
    rng = random.Random(3)
    for _ in range(200):
        block = [rng.randrange(6) for _ in range(rng.randrange(9, 30))]
        repeats = rng.randrange(3, 6)
        noise = [[rng.randrange(100, 900) for _ in range(rng.randrange(20))] for _ in range(2)]
        sequence = [*noise[0], *block * repeats, *noise[1]]
        stretches = find_stretches(sequence)
        covered = 0
        end = 0
        for start, stop, period in stretches:
            assert end <= start and stop - start >= 3 * period
            assert sequence[start : stop - period] == sequence[start + period : stop]
            covered, end = covered + stop - start, stop
        assert covered >= len(block) * repeats - 8
    assert find_stretches(list(range(1000))) == []


# -- nothing changes


@pytest.mark.parametrize("transform", ["forward", "gradient", "vmap", "per example", "second order"])
def test_results_are_those_of_the_program_as_written(transform, as_written):
    ws = weights(4, seed=1)
    function, args = {
        "forward": (network, (ws, X)),
        "gradient": (px.value_and_grad(loss, (0, 1)), (ws, X)),
        "vmap": (px.vmap(network, (None, 0)), (ws, np.stack([X, -X]))),
        "per example": (px.vmap(px.grad(loss), (None, 0)), (ws, np.stack([X, -X]))),
        "second order": (
            lambda ws, x: px.jvp(lambda x: px.grad(loss, 1)(ws, x), (x,), (x,)),
            (ws, X),
        ),
    }[transform]
    assert calls(function, *args) >= 3
    assert_same(px.jit(function)(*args), as_written(function, *args), rtol=2e-4, atol=2e-6)


def test_gradients_of_a_loop(as_written):
    def chain(w, x):
        for _ in range(40):
            x = jnp.tanh(x @ w) + x * 0.5
        return jnp.sum(x)

    w = weights(1)[0]["q"]
    assert_same(px.jit(chain)(w, X), as_written(chain, w, X), rtol=1e-4)
    function = px.grad(chain, (0, 1))
    assert calls(function, w, X) + loops(function, w, X) > 0
    assert_same(px.jit(function)(w, X), as_written(function, w, X), rtol=1e-3, atol=1e-5)


def test_random_programs(as_written):
    """Blocks of random operations with random connections to earlier layers, some of whose values are results."""
    for seed in range(6):
        rng = random.Random(seed)
        recipe = [(rng.choice("mmasctr"), rng.randrange(4), rng.randrange(4)) for _ in range(14)]
        reaches, kept = rng.randrange(1, 4), rng.random()

        def block(values, w, recipe=recipe):
            values = list(values)
            for kind, i, j in recipe:
                a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
                made = {
                    "m": lambda a, b: jnp.tanh(a @ w),
                    "a": lambda a, b: a + b * 0.5,
                    "s": lambda a, b: jnp.sin(a),
                    "c": lambda a, b: jnp.where(a > b, a, 0.1),
                    "t": lambda a, b: (a - b) / (1 + a * a),
                    "r": lambda a, b: a - jnp.sum(b, axis=0, keepdims=True) / 4,
                }[kind](a, b)
                values.append(made)
            return values[-1], values[-3]

        def program(ws, x, block=block, reaches=reaches, kept=kept):
            history, out = [x, x * 2], []
            choose = random.Random(7)
            for w in ws:
                history += block(history[-reaches:], w["q"])
                if choose.random() < kept:
                    out.append(history[-1])
            return history[-2], out

        ws = weights(6, seed)
        both = lambda ws, x: (program(ws, x), px.grad(lambda ws: jnp.sum(program(ws, x)[0]))(ws))  # noqa: E731
        assert_same(px.jit(both)(ws, X), as_written(both, ws, X), rtol=2e-3, atol=2e-5)


def test_donation_stays():
    def step(ws, x):
        return px.tree.map(lambda w, g: w - 0.1 * g, ws, px.grad(loss)(ws, x))

    ws = px.tree.map(jnp.asarray, weights(5))
    wanted = px.tree.map(np.asarray, px.jit(step)(ws, X))
    got = px.jit(step, donate_argnums=0)(ws, X)
    assert all(w.is_deleted() for w in px.tree.leaves(ws))
    assert_same(got, wanted, rtol=1e-6, atol=1e-7)


def test_effects_keep_their_order_and_number():
    seen = []

    def printing(ws, x):
        for i, w in enumerate(ws):
            x = layer(x, w)
            px.debug.callback(lambda v, i=i: seen.append((i, float(v))), x[0, 0], ordered=True)
        return x

    def same_callback(ws, x):
        for w in ws:
            x = layer(x, w)
            px.debug.callback(report, x[0, 0], ordered=True)
        return x

    def report(v):
        seen.append(float(v))

    ws = weights(5)
    px.jit(printing)(ws, X)
    px.effects_barrier()
    assert [i for i, _ in seen] == list(range(5))
    values = [v for _, v in seen]
    seen.clear()
    px.jit(same_callback)(ws, X)
    px.effects_barrier()
    assert seen == pytest.approx(values, rel=1e-5) and len(set(seen)) == 5


def test_typed_keys(as_written):
    def dropout(ws, x, key):
        for w in ws:
            key, this = px.random.split(key)
            x = layer(x, w) * px.random.bernoulli(this, 0.8, x.shape)
        return x, key

    ws, key = weights(5), px.random.key(3)
    x, after = px.jit(dropout)(ws, X, key)
    eager, eager_after = dropout(ws, jnp.asarray(X), key)
    np.testing.assert_allclose(x, eager, rtol=1e-4, atol=1e-6)
    assert np.array_equal(px.random.key_data(after), px.random.key_data(eager_after))
    assert calls(dropout, ws, X, key) >= 3


def test_an_outlined_program_defines_what_it_uses():
    closed = px.make_jaxpr(px.value_and_grad(loss))(weights(6), X)
    made = outline(closed.jaxpr, jaxpr_to_stablehlo._repeated_p, jaxpr_to_stablehlo._repeated_loop_p)
    assert len(made.eqns) < len(closed.eqns) / 2
    known = {*made.constvars, *made.invars}
    for eqn in made.eqns:
        assert all(type(v) is Literal or v in known for v in eqn.invars)
        if eqn.primitive is jaxpr_to_stablehlo._repeated_p:
            assert [v.aval for v in eqn.invars] == eqn.params["jaxpr"].in_avals
            assert [v.aval for v in eqn.outvars] == eqn.params["jaxpr"].out_avals
        known.update(eqn.outvars)
    assert all(type(v) is Literal or v in known for v in made.outvars)
    assert len(set(number_equations(closed.eqns))) < len(closed.eqns) / 2


# -- what crosses from call to call


def results_of(text, name):
    """The bytes that a function of a module returns."""
    line = next(line for line in text.splitlines() if f"func private @{name}(" in line)
    shapes = re.findall(r"tensor<([0-9x]*)xf32>", line.rpartition("->")[2])
    return sum(4 * int(np.prod([int(n) for n in shape.split("x")])) for shape in shapes)


def wide_layer(x, w):
    """A layer whose derivative needs many values that follow from few."""
    h = x @ w["q"]
    h = jnp.tanh(h) * 0.5 + h / (1.0 + h * h) + jnp.where(h > 0, h, 0.1 * h)
    return 0.5 * x + (h * 0.3) @ w["o"]


def wide_loss(ws, x):
    for w in ws:
        x = wide_layer(x, w)
    return jnp.mean(x**2)


def test_cheap_residuals_are_computed_again(as_written, monkeypatch):
    step, args = px.value_and_grad(wide_loss), (weights(6), X)
    text = px.jit(step).lower(*args).as_text()
    assert results_of(text, "repeated") <= 3 * X.nbytes  # the product, its tanh, and the sum
    with monkeypatch.context() as patch:
        patch.setattr(jaxpr_to_stablehlo, "trim_residuals", lambda jaxpr, is_call: jaxpr)
        assert results_of(px.jit(lambda *args: step(*args)).lower(*args).as_text(), "repeated") > 5 * X.nbytes
    assert_same(px.jit(step)(*args), as_written(step, *args), rtol=1e-4, atol=1e-6)


def test_slices_of_an_argument_are_taken_again_and_not_handed_over(as_written):
    sequence = np.random.default_rng(2).normal(size=(24, 3, WIDTH)).astype(np.float32)

    def step(ws, sequence):
        def loss(ws):
            h = jnp.zeros((3, WIDTH))
            for i in range(len(sequence)):
                h = jnp.tanh(sequence[i] @ ws["q"] + h @ ws["k"])
            return jnp.mean(h**2)

        return px.value_and_grad(loss)(ws)

    text = px.jit(step).lower(weights(1)[0], sequence).as_text()
    assert "call @repeated_0" in text
    functions = [line for line in text.splitlines() if line.lstrip().startswith("func.func private")]
    assert functions
    assert not any(f"tensor<1x3x{WIDTH}xf32>" in line for line in functions)
    assert all(f"tensor<24x3x{WIDTH}xf32>" in line for line in functions)  # both take the whole sequence
    assert_same(
        px.jit(step)(weights(1)[0], sequence), as_written(step, weights(1)[0], sequence), rtol=2e-5, atol=1e-6
    )


def test_a_function_gives_the_same_text_each_time_it_is_traced():
    """Programs are found on disk by their text, which must not depend on where objects lie in memory."""
    texts, objects = set(), []
    for i in range(4):
        px.clear_caches()
        objects.append([object() for _ in range(1000 * i + 7)])
        texts.add(px.jit(lambda ws, x: px.grad(loss)(ws, x)).lower(weights(6), X).as_text())
    assert len(texts) == 1


def test_calls_inside_one_program_keep_no_more_memory_than_the_program_as_written(monkeypatch):
    step, args = px.value_and_grad(loss, (0, 1)), (weights(8, width=32), np.ones((4, 32), np.float32))

    def bytes_needed():
        px.clear_caches()
        return px.jit(step).lower(*args).compile().memory_analysis().temp_size_in_bytes

    outlined = bytes_needed()
    with monkeypatch.context() as patch:
        patch.setattr(jaxpr_to_stablehlo, "outline", lambda jaxpr, call, loop: jaxpr)
        inlined = bytes_needed()
    px.clear_caches()
    assert outlined <= 1.05 * inlined


def test_the_first_layer_is_a_call_too():
    """It lacks what the derivative with respect to the data would need."""
    step = px.value_and_grad(loss)
    text = px.jit(step).lower(weights(12), X).as_text()
    assert text.count("call @repeated") == 24
    main = text[: text.index("func private")]
    assert "dot_general" not in main
    both = px.jit(px.value_and_grad(loss, (0, 1)))
    got, wanted = px.jit(step)(weights(12), X), both(weights(12), X)
    assert_same(got, px.tree.map(np.asarray, (wanted[0], wanted[1][0])), rtol=1e-5, atol=1e-7)


def test_ends_that_would_cost_much_stay(as_written):
    """The first of few layers of one product each would do a third more work as a call of the others."""

    def shallow(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w["q"]) * 0.5 + x / (1 + x * x)
        return jnp.sum(x**2)

    step = px.grad(shallow)
    text = px.jit(step).lower(weights(4), X).as_text()
    assert text.count("stablehlo.dot_general") + 3 * text.count("call @") >= 4 + 3
    assert_same(px.jit(step)(weights(4), X), as_written(step, weights(4), X), rtol=1e-4, atol=1e-6)


def test_what_the_ends_of_a_row_of_calls_give_is_computed_in_the_caller(as_written):
    def recurrent(w, u, xs):
        h = jnp.zeros((2, WIDTH))
        for step in range(20):
            h = jnp.tanh(xs[step] @ w + h @ u)
        return jnp.mean(h**2)

    xs = np.random.default_rng(4).normal(size=(20, 2, WIDTH)).astype(np.float32)
    w, u = weights(1)[0]["q"], weights(1)[0]["k"]
    step = px.value_and_grad(recurrent, (0, 1, 2))
    text = px.jit(step).lower(w, u, xs).as_text()
    assert text.count("call @") >= 10
    assert_same(px.jit(step)(w, u, xs), as_written(step, w, u, xs), rtol=1e-4, atol=1e-6)


def test_results_that_are_asked_for_stay():
    """Values of the layers that are results of the program, too."""

    def loss_and_all(ws, x):
        kept = []
        for w in ws:
            x = wide_layer(x, w)
            kept.append(x * 2)
        return jnp.mean(x**2), kept

    (value, kept), gradient = px.jit(px.value_and_grad(loss_and_all, has_aux=True))(weights(6), X)
    (value_again, kept_again), gradient_again = px.value_and_grad(loss_and_all, has_aux=True)(weights(6), X)
    np.testing.assert_allclose(value, value_again, rtol=1e-5)
    assert_same(kept, px.tree.map(np.asarray, kept_again), rtol=1e-4, atol=1e-5)
    assert_same(gradient, px.tree.map(np.asarray, gradient_again), rtol=1e-4, atol=1e-5)


def test_blocks_under_jit_hand_over_as_little(as_written):
    block = px.jit(wide_layer)

    def blocks(ws, x):
        for w in ws:
            x = block(x, w)
        return jnp.mean(x**2)

    step, args = px.value_and_grad(blocks, (0, 1)), (weights(5), X)
    text = px.jit(step).lower(*args).as_text()
    names = re.findall(r"func private @(\w+)\(", text)
    assert len(names) == 2 and min(results_of(text, name) for name in names) <= 3 * X.nbytes
    assert_same(px.jit(step)(*args), as_written(step, *args), rtol=1e-4, atol=1e-6)


# --- what is tested for equality is computed once

# Of numbers whose smallest ones lie far apart, and whose largest ones are all 1 but for rounding.
CHOOSING = {
    "min": lambda y: y - jnp.min(y, -1, keepdims=True) * 0.5,
    "max over rows": lambda y: y + jnp.max(-y, 0),
    "largest magnitude": lambda y: y / (1 + jnp.max(jnp.abs(2 - y), -1, keepdims=True)),
    "user's equality": lambda y: y * jnp.where(y == jnp.min(y, -1, keepdims=True), 3.0, 1.0),
    "scatter_max": lambda y: y + jnp.full(64, -2.0).at[jnp.arange(64) % 8].max(-y[0]) * jnp.ones((64, 1)),
}


@pytest.mark.parametrize("choosing", CHOOSING)
def test_a_derivative_finds_the_extreme_element_in_repeated_layers(choosing):
    """Layers hand less to their derivatives, which compute the rest again, rounded otherwise."""
    random = np.random.default_rng(3)
    weights = [jnp.asarray(random.normal(size=(64, 64)) / 8, np.float32) for _ in range(3)]
    x = jnp.asarray(random.normal(size=(64, 64)), np.float32)

    def loss(weights, x):
        for w in weights:
            y = x @ w
            x = CHOOSING[choosing](px.lax.rsqrt(y * y + 1)) + x * 0.5
        return (x * x).mean()

    gradient = px.grad(loss, (0, 1))
    both = (px.jit(gradient)(weights, x), gradient(weights, x))
    for found, wanted in zip(*map(px.tree.leaves, both), strict=True):
        assert float(abs(found - wanted).max()) < 1e-4 * float(abs(wanted).max())
