"""Programs of small arrays are compiled quickly unless a user chose otherwise; large views are not copied."""

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.errors import JaxRuntimeError
from purax.lowering import effort
from purax.lowering.effort import FEW
from purax.xla import jaxlib_api

SHORT = {"xla_backend_optimization_level", "xla_cpu_use_fusion_emitters"}


def names(function, *arguments, platform="cpu"):
    return {name for name, _ in effort.of_program(purax.make_jaxpr(function)(*arguments).jaxpr, platform)}


@pytest.fixture(autouse=True)
def no_flags(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(effort, "_refused", set())


def test_the_largest_value_decides_also_inside_of_loops():
    def loop(x):
        return purax.lax.scan(lambda c, _: (c + jnp.sum(jnp.outer(x, x)), None), 0.0, None, length=3)[0]

    assert names(loop, np.ones(8, np.float32)) >= SHORT
    assert names(loop, np.ones(512, np.float32)) == set()
    assert names(jnp.sin, np.ones(8, np.float32), platform="gpu") == set()


def test_long_loops_are_worth_the_effort():
    def counts(length):
        def step(carry, i):
            return carry.at[i].add(1.0), None

        return lambda x: purax.lax.scan(step, x, jnp.zeros((length, 500), int))[0]

    x = np.ones(500, np.float32)
    assert names(counts(3), x) >= SHORT
    assert names(counts(100), x) == set()

    def until(x):
        return purax.lax.while_loop(lambda x: x[0] > 1, lambda x: x * 0.9 - x.sum(), x)

    assert names(until, np.ones(FEW, np.float32)) >= SHORT
    assert names(until, np.ones(1000, np.float32)) == set()


@pytest.mark.parametrize("bits", (2, 4))
def test_integers_of_a_few_bits_are_left_to_the_newer_emitters(bits):
    """With the older ones, the process ends."""
    x = jnp.arange(4).astype(f"uint{bits}")
    assert names(lambda x: x + x, x) == set()
    assert names(lambda x: x.astype("int32") + x.astype("int32"), x) == set()
    np.testing.assert_array_equal(purax.jit(lambda x: jnp.sort(x) + 1)(x).astype(int)[:3], [1, 2, 3])
    assert (x + x).astype(int).tolist() == (np.arange(4) * 2 % 2**bits).tolist()


def test_long_chains_are_left_to_emitters_that_do_not_call_themselves():
    def chain(x):
        for step in range(1000):
            x = jnp.sin(x) + step % 7
        return x

    traced = purax.make_jaxpr(chain)(np.ones(8, np.float32)).jaxpr
    assert effort.of_program(traced, "cpu") == ()
    calls = purax.make_jaxpr(lambda x: purax.jit(chain)(purax.jit(chain)(x)))(np.ones(8, np.float32)).jaxpr
    assert effort.of_program(calls, "cpu") == ()
    assert (
        effort.of_program(purax.make_jaxpr(jnp.sin)(np.ones(8, np.float32)).jaxpr, "cpu", lines=10_000) == ()
    )
    x = np.ones(8, np.float32)
    expected = x
    for step in range(1000):
        expected = np.sin(expected, dtype=np.float32) + np.float32(step % 7)
    np.testing.assert_allclose(purax.jit(chain)(x), expected, rtol=1e-2)


def test_what_a_user_chose_stays(monkeypatch):
    sizes = lambda: effort.of_sizes([4], "cpu")  # noqa: E731
    given = effort.compiled(lambda options: options, (("xla_backend_optimization_level", 3),), sizes)
    assert given[0] == ("xla_backend_optimization_level", 3)
    assert [name for name, _ in given].count("xla_backend_optimization_level") == 1
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert "xla_backend_optimization_level" not in dict(sizes())


@pytest.mark.parametrize("kind", [JaxRuntimeError, jaxlib_api.EngineError, ValueError])
def test_an_option_that_the_compiler_does_not_have_is_left_out_from_then_on(kind):
    tried = []

    def compile_with(options):
        tried.append({name for name, _ in options})
        if "xla_cpu_use_fusion_emitters" in tried[-1]:
            raise kind("INVALID_ARGUMENT: No such compile option: 'xla_cpu_use_fusion_emitters'")
        return options

    sizes = lambda: effort.of_sizes([4], "cpu")  # noqa: E731
    effort.compiled(compile_with, (), sizes)
    assert len(tried) == 2 and tried[0] - tried[1] == {"xla_cpu_use_fusion_emitters"}
    assert "xla_cpu_use_fusion_emitters" not in dict(sizes())

    def fails(options):
        raise JaxRuntimeError("INTERNAL: something else")

    with pytest.raises(JaxRuntimeError, match="something else"):
        effort.compiled(fails, (), sizes)


@pytest.mark.parametrize("rows", [4, 300])
def test_both_ways_give_the_same(rows):
    x = np.random.default_rng(0).standard_normal((rows, 70)).astype(np.float32)

    def step(x):
        h = jnp.tanh(x @ x.T) @ x
        h = jnp.where(h > 0, h, 0.1 * h)[:, ::-1]
        return purax.nn.softmax(h - jnp.mean(h, 0), axis=-1), jnp.cumsum(h, 1), h.at[1].set(2.0)

    short = purax.jit(step)(x)
    lowered = purax.jit(step).lower(x)
    options = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
    try:
        long = lowered.compile(options)(x)
    except JaxRuntimeError as error:  # newer compilers have no other way
        assert "No such compile option: 'xla_cpu_use_fusion_emitters'" in str(error)
        long = lowered.compile({"xla_backend_optimization_level": 3})(x)
    for a, b in zip(short, long, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "index",
    [
        np.s_[1:-1, 1:-1],
        np.s_[::-1],
        np.s_[:, ::-1],
        np.s_[None, 0],
        np.s_[:, :1],
    ],
)
def test_large_views_are_read_in_place(index):
    value = np.random.default_rng(1).standard_normal((3000, 2500)).astype(np.float32)
    x = jnp.asarray(value)
    view = x[index]
    result = view * 2.0 - (view if index != np.s_[:, :1] else x)
    np.testing.assert_array_equal(
        np.asarray(result), value[index] * np.float32(2) - (value[index] if index != np.s_[:, :1] else value)
    )
