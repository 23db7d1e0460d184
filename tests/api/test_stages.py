"""The stages of ahead-of-time compilation: what each shows, and what a compiled function accepts."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import compiler

HERE = re.escape(__file__)


@pytest.fixture(scope="module")
def lowered():
    return px.jit(lambda x, scale: {"y": jnp.sin(x) * scale}).lower(jnp.ones((2, 3)), scale=2.0)


def test_traced():
    traced = px.jit(lambda x, n: (x, [x * n]), static_argnums=1).trace(jnp.ones(3), 2)
    assert [eqn.primitive.name for eqn in traced.jaxpr.eqns] == ["mul"]
    assert traced.out_info == (
        px.ShapeDtypeStruct((3,), jnp.float32),
        [px.ShapeDtypeStruct((3,), jnp.float32)],
    )
    assert traced.args_info == ((px.ShapeDtypeStruct((3,), jnp.float32),), {})
    assert "mul" in repr(traced)


def test_lowered_is_stablehlo_text(lowered):
    text = lowered.as_text()
    assert "stablehlo.multiply" in text and "tensor<2x3xf32>" in text
    assert lowered.compiler_ir() == text == lowered.as_text("stablehlo")
    assert lowered.as_text("hlo").startswith("HloModule")
    assert lowered.compiler_ir("hlo").as_hlo_text() == lowered.as_text("hlo")
    assert lowered.out_info == {"y": px.ShapeDtypeStruct((2, 3), jnp.float32)}
    with pytest.raises(ValueError, match="dialect"):
        lowered.as_text("no such dialect")


def test_lowering_for_another_platform_needs_no_such_device():
    traced = px.jit(lambda x: jnp.sort(x)).trace(jnp.ones(3))
    assert "stablehlo" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_compiled_shows_what_it_costs(lowered):
    compiled = lowered.compile()
    assert compiled.cost_analysis()["flops"] >= 6
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 28 and memory.output_size_in_bytes == 24
    assert memory.temp_size_in_bytes >= 0 and memory.generated_code_size_in_bytes >= 0
    assert "HloModule" in compiled.as_text()


def test_what_a_lowered_program_costs_is_told_without_compiling_it():
    product = px.jit(lambda x, y: x @ y + 1).lower(jnp.ones((1, 784)), jnp.ones((784, 1024)))
    tangents = px.jit(jnp.tanh).lower(jnp.ones((64, 64)))
    called = px.jit(lambda x: px.pure_callback(lambda x: x, x, x) * 2).lower(jnp.ones(3))
    compiles = compiler.stats.compiles
    assert product.cost_analysis()["flops"] == 2 * 784 * 1024 + 1024  # also where a native kernel multiplies
    assert tangents.cost_analysis()["transcendentals"] == 64 * 64  # also where a polynomial is written
    assert called.cost_analysis()["flops"] >= 2
    assert compiler.stats.compiles == compiles


def test_compiled_runs(lowered):
    compiled = lowered.compile()
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(compiled(x, scale=3.0)["y"], np.sin(x) * 3, rtol=1e-6)
    assert compiled.out_info == lowered.out_info
    assert compiled.input_shardings[0][0].device_set == {px.devices()[0]}
    assert compiled.output_shardings["y"].device_set == {px.devices()[0]}


def test_static_arguments_are_not_passed_again():
    compiled = px.jit(lambda x, n, y: x**n + y, static_argnums=1).lower(jnp.ones(3), 2, 1.0).compile()
    assert compiled(jnp.full(3, 3.0), 1.0).tolist() == [10.0] * 3
    with pytest.raises(TypeError, match="static arguments are not passed again"):
        compiled(jnp.ones(3), 2, 1.0)


def test_compiled_takes_its_own_types_only(lowered):
    compiled = lowered.compile()
    with pytest.raises(TypeError, match=rf"takes f32\[2,3\] as x, got f32\[3,2\][\s\S]*{HERE}:\d+"):
        compiled(jnp.ones((3, 2)), scale=2.0)
    with pytest.raises(TypeError, match=r"takes f32\[\] as scale, got i32\[\]"):
        compiled(jnp.ones((2, 3)), scale=2)
    with pytest.raises(TypeError, match=rf"structure[\s\S]*{HERE}"):
        compiled(jnp.ones((2, 3)))


@pytest.mark.parametrize("transformation", [px.jit, px.grad, px.vmap])
def test_compiled_code_cannot_be_transformed(transformation):
    compiled = px.jit(lambda x: x * 2).lower(1.0).compile()
    argument = jnp.ones(3) if transformation is px.vmap else 1.0
    with pytest.raises(TypeError, match=rf"inside a transformation[\s\S]*{HERE}"):
        transformation(lambda x: compiled(x))(argument)


def test_compiler_options_are_passed_on():
    lowered = px.jit(lambda x: x + 1).lower(1.0)
    assert float(lowered.compile({"xla_backend_optimization_level": 0})(2.0)) == 3.0
    with pytest.raises(px.errors.JaxRuntimeError, match="no_such"):
        lowered.compile({"no_such": 1})


def test_donation_holds_for_compiled_functions():
    compiled = px.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(3)).compile()
    x = jnp.ones(3) + 0
    assert compiled(x).tolist() == [2.0] * 3
    assert x.is_deleted()


def test_captured_arrays_travel_with_the_stages():
    weights = jnp.arange(3.0)
    compiled = px.jit(lambda x: x @ weights).lower(jnp.ones(3)).compile()
    assert float(compiled(jnp.ones(3))) == 3.0


def test_a_compiled_program_names_the_users_lines_and_is_found_again_when_these_move():
    def made(blank_lines):
        names = {"jnp": jnp}
        exec(compile("\n" * blank_lines + "def wave(x):\n  return jnp.cos(x) * 7.25\n", "waves.py", "exec"), names)
        return names["wave"]

    compiled = px.jit(made(2)).lower(jnp.ones(3)).compile()
    assert re.search(r'op_name="\w+" stack_frame_id=|source_file="waves.py" source_line=4', compiled.as_text())
    assert "waves.py" in compiled.as_text()
    moved = px.jit(made(5)).lower(jnp.ones(3))
    assert 'waves.py":7' in moved.as_text(debug_info=True) and "waves.py" not in moved.as_text()
    before = compiler.stats.compiles
    moved.compile()
    assert compiler.stats.compiles == before
