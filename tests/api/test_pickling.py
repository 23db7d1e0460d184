"""Functions, programs and places of arrays go to other processes by pickle, and by cloudpickle from `__main__`."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import textwrap

import cloudpickle
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding


@px.jit
def doubled(x):
    return 2 * x


@px.custom_jvp
def sine(x):
    return jnp.sin(x)


sine.defjvp(lambda primals, tangents: (sine(primals[0]), 7 * tangents[0]))


@px.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, cotangent: (5 * x * cotangent,))


@px.custom_batching.custom_vmap
def cube(x):
    return x**3


@cube.def_vmap
def _cube_of_rows(axis_size, in_batched, x):
    return x**3 + 1, in_batched[0]


class Model:
    @px.jit
    def scaled(self, x):
        return 3 * x


by_name = pytest.mark.parametrize(
    "function", (doubled, sine, square, cube, Model.scaled, px.nn.relu, jnp.sin)
)


@by_name
def test_what_a_module_has_is_pickled_by_name(function, monkeypatch):
    monkeypatch.setitem(sys.modules, doubled.__module__, sys.modules[__name__])
    for library in (pickle, cloudpickle):
        assert pickle.loads(library.dumps(function)) is function
    assert copy.deepcopy(function) is function


def _again(value):
    return pickle.loads(cloudpickle.dumps(value))


OFFSET = 4.0
SQUARES = {
    "jit": lambda: px.jit(lambda x: x * x + OFFSET),
    "static": lambda: px.jit(lambda x, n=2: x**n + OFFSET, static_argnames="n"),
    "device": lambda: px.jit(lambda x: x * x + OFFSET, device=px.devices()[1]),
    "jit of grad": lambda: px.jit(px.grad(lambda x: x**3 / 3 + OFFSET * x)),
    "grad of jit": lambda: px.grad(px.jit(lambda x: x**3 / 3 + OFFSET * x)),
    "vmap": lambda: px.vmap(lambda x: x * x + OFFSET, axis_size=1, in_axes=None, out_axes=None),
    "checkpoint": lambda: px.checkpoint(lambda x: x * x + OFFSET),
    "partial": lambda: px.tree_util.Partial(lambda a, x: x * x + a, OFFSET),
    "lowered": lambda: px.jit(lambda x: x * x + OFFSET).lower(1.0),
    "compiled": lambda: px.jit(lambda x: x * x + OFFSET).lower(1.0).compile(),
    "linear": lambda: px.linearize(lambda x: x**2, OFFSET)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", SQUARES)
def test_functions_go_by_what_they_were_made_of(name):
    made = SQUARES[name]()
    given = _again(made)
    if name == "lowered":
        assert given.as_text() == made.as_text()
        given = given.compile()
    result = given(3.0)
    np.testing.assert_allclose(result, 24.0 if name == "linear" else 13.0)
    if name == "device":
        assert result.devices() == {px.devices()[1]}


def test_used_functions_are_pickled_as_unused_ones():
    made = px.jit(lambda x: x + OFFSET)
    before = cloudpickle.dumps(made)
    made(1.0), px.grad(made)(1.0), made(jnp.ones(3))
    assert cloudpickle.dumps(made) == before


def test_compiled_programs_keep_their_places_and_constants():
    mesh = px.make_mesh((4,), ("rows",))
    rows = NamedSharding(mesh, PartitionSpec("rows"))
    table = jnp.arange(8.0)
    x = px.device_put(jnp.ones(8), rows)
    compiled = _again(px.jit(lambda x: x + table).lower(x).compile())
    assert compiled.input_shardings[0][0].is_equivalent_to(rows, 1)
    np.testing.assert_array_equal(compiled(x), np.arange(8) + 1)
    on_third = _again(px.jit(lambda x: -x).lower(px.device_put(1.0, px.devices()[2])).compile())
    assert on_third(px.device_put(2.0, px.devices()[2])).devices() == {px.devices()[2]}


def test_wrapping_copies_no_internals():
    wrapped = px.grad(px.jit(lambda x: x * x))
    assert not [name for name in vars(wrapped) if name.startswith("_") and not name.endswith("__")]


def test_places():
    for place in (SingleDeviceSharding(px.devices()[1]), px.make_mesh((2, 2), ("a", "b"))):
        assert pickle.loads(pickle.dumps(place)) == place


def _run(script: str, given: bytes = b"", **environment: str) -> bytes:
    import os

    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        input=given, capture_output=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


def test_a_script_hands_its_functions_to_another_process():
    script = """
        import sys, cloudpickle, purax as px, purax.numpy as jnp
        @px.jit
        def f(x): return helper(x) + 1
        @px.custom_vjp
        def helper(x): return x * x
        helper.defvjp(lambda x: (x * x, x), lambda x, c: (5 * x * c,))
        f(1.0)
        sys.stdout.buffer.write(cloudpickle.dumps((f, px.jit(px.grad(f)), helper, f.lower(1.0).compile())))
    """
    read = "import sys, pickle; print([float(f(3.0)) for f in pickle.load(sys.stdin.buffer)])"
    assert _run(read, _run(script)).decode().strip() == "[10.0, 15.0, 9.0, 10.0]"


def test_missing_devices_are_named():
    mesh = pickle.dumps(px.make_mesh((8,), ("rows",)))
    script = """
        import sys, pickle, purax
        try:
            pickle.load(sys.stdin.buffer)
        except ValueError as error:
            print(error)
    """
    said = _run(script, mesh, XLA_FLAGS="", PURAX_PLATFORMS="cpu").decode()
    assert "lies on cpu:1" in said and "PURAX_NUM_CPU_DEVICES=2" in said
