"""Running whole programs: cut down, compiled once per structure and device, results forwarded."""

from __future__ import annotations

import pytest

import purax as px
import purax.numpy as jnp
from purax.execution import compiled_program
from purax.execution.compiled_program import Prepared
from purax.xla import compiler


def prepared(f, *args, donated=(), **options):
    closed = px.make_jaxpr(f)(*args)
    assert not closed.consts
    flags = [i in donated for i in range(len(args))]
    return Prepared(closed, flags, options.get("keep_unused", False))


def test_dead_code_and_unused_arguments_go():
    cut = prepared(lambda x, y, z: (x * 2, jnp.sin(y))[0], 1.0, 2.0, 3.0)
    assert [eqn.primitive.name for eqn in cut.closed.eqns] == ["mul"]
    assert cut.kept == [0] and len(cut.in_avals) == 3
    assert prepared(lambda x, y: x * 2, 1.0, 2.0, keep_unused=True).kept == [0, 1]


def test_results_are_forwarded_computed_once_or_literal():
    cut = prepared(lambda x, y: (x, (s := x + y), s, y, 2.0), 1.0, 2.0)
    assert cut.outputs[:4] == [-1, 0, 0, -2]
    assert float(cut.outputs[4].val) == 2.0
    assert len(cut.closed.out_avals) == 1


def test_a_donated_argument_that_is_a_result_goes_through_the_engine():
    cut = prepared(lambda x: x, jnp.ones(3), donated=(0,))
    assert cut.outputs == [0] and cut.donated == (0,)


def test_programs_of_equal_structure_share_an_executable():
    def run(f):
        closed = px.make_jaxpr(f)(jnp.ones(5))
        return compiled_program.runner(closed, px.devices()[0]).executable

    first = run(lambda x: jnp.sin(x) * 3)
    second = run(lambda other_name: jnp.sin(other_name) * 3)
    different = run(lambda x: jnp.sin(x) * 4)
    assert first is second and first is not different


def test_running_a_program_needs_the_arguments_types():
    closed = px.make_jaxpr(lambda x: x + 1)(jnp.ones(3))
    (result,) = compiled_program.run(closed, [jnp.ones(3)])
    assert result.tolist() == [2.0] * 3


def test_clearing_forgets_executables():
    f = px.jit(lambda x: x * 123.25)
    f(1.0)
    px.clear_caches()
    before = compiler.stats.compiles + compiler.stats.disk_hits
    f(1.0)
    assert compiler.stats.compiles + compiler.stats.disk_hits == before + 1


@pytest.mark.parametrize("count", [1, 40])
def test_many_donated_arguments_pair_with_results_of_their_type(count):
    tree = {f"w{i}": jnp.ones(i % 3 + 1) + i for i in range(count)}
    step = px.jit(lambda t: {name: x * 2 for name, x in t.items()}, donate_argnums=0)
    result = step(tree)
    assert all(x.is_deleted() for x in tree.values())
    assert [float(result[f"w{i}"][0]) for i in range(count)] == [2.0 * (1 + i) for i in range(count)]
