"""What lies between products of matrices runs as programs of a native kernel, with the results of compiled code."""

import os
import subprocess
import sys

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.config import config
from purax.core.jaxpr import ClosedJaxpr
from purax.execution import compiled_program
from purax.lowering.cpu import row_clusters
from purax.lowering.cpu.row_clusters import with_row_programs
from purax.lowering.cpu.row_program import OPERATIONS
from purax.xla import native

pytestmark = pytest.mark.sampled(2)

needs_library = pytest.mark.skipif(native.build() is None, reason="the native kernels were not built")
GENERATOR = np.random.default_rng(11)
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 88.7, 89.5, -87.0, -104.0, 1e-3, 9.0, 9.5, 1e9]


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """Calls for small arrays too, for which compiled code would be faster."""
    monkeypatch.setattr(row_clusters, "_LEAST_WORK", 0)


def numbers(*shape, special=False):
    x = GENERATOR.normal(size=shape).astype(np.float32)
    if special:
        x.reshape(-1)[:: max(1, x.size // len(SPECIAL))][: len(SPECIAL)] = SPECIAL[: x.size]
    return x


def programs_in(jaxpr):
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "row_program"]


def check(function, *arguments, calls=None, rtol=2e-6, atol=1e-6):
    """`function` gives the same compiled and as row programs, which it becomes as a whole; returns them."""
    closed = px.make_jaxpr(function)(*arguments)
    rewritten = with_row_programs(closed.jaxpr)
    found = programs_in(rewritten)
    assert found, closed
    assert calls is None or len(found) == calls
    operands = px.tree.leaves(arguments)
    expected = compiled_program.run(closed, operands)
    given = compiled_program.run(ClosedJaxpr(rewritten), operands)
    for a, b in zip(given, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)
    return found


UNARY = {
    "neg": lambda x: -x,
    "abs": abs,
    "sqrt": jnp.sqrt,
    "rsqrt": lax.rsqrt,
    "exp": jnp.exp,
    "engine_exp": lambda x: px.nn.softmax(x, axis=-1),
    "tanh": jnp.tanh,
    "logistic": px.nn.sigmoid,
    "log": jnp.log,
    "powers": lambda x: x**2 + x**3 - x**4 + lax.integer_pow(x, -1),
    "constants": lambda x: jnp.where(x > 0.5, 2.0 - x, x / 3.0) + jnp.maximum(x, -0.25) * jnp.minimum(1.5, x),
    "truth": lambda x: jnp.where((x > 0) & ~(x >= 1) | (x < -1), x, 1.0),
}
BINARY = {
    "arithmetic": lambda x, y: [x + y, x - y, x * y, y / x],
    "extrema": lambda x, y: jnp.maximum(x, y) - jnp.minimum(y, x),
    "comparisons": lambda x, y: [x < y, x <= y, x > y, x >= y, x == y, x != y],
    "choice": lambda x, y: jnp.where(x < y, x, y),
}


@needs_library
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    def twice(x, y):
        return UNARY[name](x), UNARY[name](y)

    x, y = numbers(7, 33, special=name != "engine_exp"), numbers(1, 5)
    check(twice, x, y)
    if name != "engine_exp":  # of whole vectors and of what is left over
        assert len(SPECIAL) < x.size


@needs_library
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name):
    for shape in ((3, 67), (64,), (2, 3, 1, 5)):
        x, y = numbers(*shape, special=True), numbers(*shape, special=True)
        check(BINARY[name], x, y.reshape(-1)[::-1].reshape(shape).copy(), atol=0)


def normalized(x, scale, shift):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    return centred / jnp.sqrt(variance + 1e-5) * scale + shift


@needs_library
@pytest.mark.parametrize("shape", [(2, 32, 64), (5, 3), (2, 17), (3, 4096), (700, 2)])
def test_a_normalisation_is_one_call_forwards_and_backwards(shape):
    x, scale, shift = numbers(*shape), numbers(shape[-1]), numbers(shape[-1])
    check(normalized, x, scale, shift, calls=1, atol=1e-5)

    def gradient(x, scale, shift, cotangent):
        return px.vjp(normalized, x, scale, shift)[1](cotangent)

    # What is summed of the cotangent alone does not wait for the rest.
    check(gradient, x, scale, shift, numbers(*shape), calls=2, rtol=1e-5, atol=1e-4)


@needs_library
@pytest.mark.parametrize("shape", [(2, 4, 32, 32), (1, 2, 5, 7), (3, 1, 1, 40)])
def test_a_softmax_with_a_mask_is_one_call(shape):
    mask = GENERATOR.integers(0, 2, shape[-2:]).astype(bool)

    def attend(scores, mask):
        return px.nn.softmax(jnp.where(mask, scores / 3.0, -1e9), axis=-1)

    check(attend, 5 * numbers(*shape), mask, calls=1)
    check(
        lambda s, m, c: px.vjp(lambda s: attend(s, m), s)[1](c),
        numbers(*shape),
        mask,
        numbers(*shape),
        calls=1,
    )


@needs_library
def test_one_row_alone():
    check(normalized, numbers(1, 17), numbers(17), numbers(17), atol=1e-5)
    check(lambda x, y: jnp.max(x * y, axis=-1, keepdims=True) - x, numbers(1, 1, 9), numbers(1, 1, 9))


@needs_library
def test_arrays_that_are_repeated_along_some_axes():
    def function(x, row, column, middle, first, number):
        return x * row + x * column[..., None] - (x + middle) * first[:, None, None, None] + number * x

    shape = (2, 3, 5, 6)
    operands = [numbers(*s) for s in (shape, (6,), (2, 3, 5), (3, 1, 6), (2,), ())]
    check(function, *operands, calls=1, atol=1e-5)


@needs_library
def test_sums_over_rows_are_right_for_many_rows():
    x, y = numbers(100_003, 3), numbers(100_003, 3)
    found = check(lambda x, y: (jnp.sum(x * y, axis=0), jnp.sum(x, axis=0), x + y), x, y, atol=5e-4)
    assert sum(len(eqn.outvars) for eqn in found) == 3


@needs_library
def test_updates_with_the_same_formula_are_one_call():
    def update(weights, gradients):
        return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]

    shapes = [(3, 5), (7,), (20, 30), (50_000,)]
    found = check(update, [numbers(*s) for s in shapes], [numbers(*s) for s in shapes], calls=1)
    assert found[0].params["rows"] == (15, 7, 600, 50_000)


@needs_library
def test_products_stand_between_programs_which_do_cheap_work_again():
    def function(x, w, s):
        h = x * s - 1.0
        return jnp.tanh((h * h) @ w) * h

    # x s − 1 is rounded twice, or once where XLA contracts it; the product sums 8 such differences.
    found = check(function, numbers(6, 8), numbers(8, 8), numbers(8), calls=2, atol=1e-5)
    assert [len(eqn.outvars) for eqn in found] == [1, 1]  # and not h
    assert len(found[1].invars) == 3


@needs_library
@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.sin(x) * 2,
        lambda x: x.astype(jnp.float16) * 2,
        lambda x: jnp.cumsum(x, axis=1) + x,
    ],
    ids=["an operation that is missing", "another dtype", "along rows"],
)
def test_what_the_engine_should_fuse_is_left_to_it(function):
    jaxpr = px.make_jaxpr(function)(numbers(4, 8)).jaxpr
    assert with_row_programs(jaxpr) is jaxpr


@needs_library
def test_little_work_is_left_to_the_engine(monkeypatch):
    monkeypatch.undo()

    def function(x, y, w):
        return jnp.tanh(((x - jnp.mean(x, axis=1, keepdims=True)) * y) @ w) * 2, y

    few, many = numbers(3, 8), numbers(300, 8)
    jaxpr = px.make_jaxpr(function)(few, few, numbers(8, 8)).jaxpr
    assert with_row_programs(jaxpr) is jaxpr
    check(function, many, many, numbers(8, 8), calls=2)


@needs_library
def test_empty_arrays():
    check(lambda x, y: jnp.sum(x + y, axis=0), numbers(3, 2), numbers(3, 2))
    jaxpr = px.make_jaxpr(lambda x: jnp.sum(x * 2, axis=0))(numbers(0, 4)).jaxpr
    assert with_row_programs(jaxpr) is jaxpr


# --- in programs


def network(layers, x):
    for layer in layers:
        h = normalized(x, layer["scale"], layer["shift"])
        x = x + px.nn.gelu(h @ layer["up"]) @ layer["down"]
    return x


def training_step(layers, x):
    value, gradients = px.value_and_grad(lambda layers: jnp.mean(network(layers, x) ** 2))(layers)
    return px.tree.map(lambda w, g: w - 0.1 * g, layers, gradients), value


def layers(count, width=8):
    return [
        {
            "scale": 1 + 0.1 * numbers(width),
            "shift": numbers(width),
            "up": 0.3 * numbers(width, 2 * width),
            "down": 0.3 * numbers(2 * width, width),
        }
        for _ in range(count)
    ]


def leaves(tree):
    return [np.asarray(x) for x in px.tree.leaves(tree)]


@needs_library
@pytest.mark.parametrize("donated", [(), (0,)], ids=["kept", "donated"])
def test_a_training_step_has_the_results_of_one_without_native_kernels(donated):
    weights, x = layers(5), numbers(4, 6, 8)
    compiled = px.jit(training_step, donate_argnums=donated).lower(weights, x)
    text = compiled.as_text()
    assert (
        text.count("purax_row_program") == 3 + 4 + 5
    )  # in a layer and its derivative, and updates of each layer
    assert not donated or text.count("output_operand_alias<") == 4 * 5
    program_ = compiled.compile()
    entry = program_.as_text()
    entry = entry[entry.index("ENTRY") :]
    assert " copy(" not in entry
    old = config.native_kernels
    config.update("native_kernels", False)
    try:
        expected = leaves(px.jit(training_step)(weights, x))
    finally:
        config.update("native_kernels", old)
    state = px.tree.map(jnp.array, weights)
    for a, b in zip(leaves(program_(state, x)), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@needs_library
def test_every_form_of_the_loops():
    """The processor's instructions are chosen once in a process."""
    code = (
        "import numpy as np, purax as px, purax.numpy as jnp\n"
        "from purax.core.jaxpr import ClosedJaxpr\n"
        "from purax.execution import compiled_program\n"
        "from purax.lowering.cpu.row_clusters import with_row_programs\n"
        "x = np.random.default_rng(0).normal(size=(9, 37)).astype(np.float32)\n"
        "def f(x):\n"
        "    y = jnp.tanh(x) + jnp.exp(-x * x) + jnp.log(x * x + 1)\n"
        "    return px.nn.softmax(y, axis=-1), jnp.sum(y, axis=0), jnp.where(x > 0, y, px.nn.sigmoid(x))\n"
        "closed = px.make_jaxpr(f)(x)\n"
        "new = with_row_programs(closed.jaxpr)\n"
        "assert any(e.primitive.name == 'row_program' for e in new.eqns)\n"
        "found = compiled_program.run(ClosedJaxpr(new), [x])\n"
        "for a, b in zip(found, compiled_program.run(closed, [x]), strict=True):\n"
        "    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=3e-6, atol=1e-6)\n"
    )
    for instructions in ("portable", "avx2"):
        environment = os.environ | {"PURAX_INSTRUCTIONS": instructions}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=300)


def test_the_operations_are_those_of_the_kernel():
    source = (native.FOLDER / "row_program.h").read_text()
    names = source.split("enum class RowOp : int64_t {")[1].split("}")[0].replace("\n", " ").split(",")
    names = [name.strip()[1:].lower() for name in names if name.strip()]
    assert names[:-1] == [name.replace("_", "") for name in OPERATIONS] and names[-1] == "count"
