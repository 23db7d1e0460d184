"""`autotune` takes the fastest configuration, and keeps it for later processes."""

from __future__ import annotations

import json

import numpy as np
import pytest

import purax
from purax import numpy as jnp
from purax import pallas as pl
from purax.pallas import tuning


@pytest.fixture
def timed(monkeypatch):
    """The configurations that were timed; times are the sizes of the blocks."""
    seen = []

    def time(function, tree, avals):
        seen.append(function.keywords["block"])
        purax.jit(function)(*[jnp.zeros(a.shape, a.dtype) for a in avals])
        return function.keywords["block"]

    monkeypatch.setattr(tuning, "_time", time)
    return seen


def make(directory, blocks=(32, 8, 16)):
    @pl.autotune([{"block": block} for block in blocks], directory=directory)
    def double(x, block):
        if x.size % block:
            raise ValueError(f"{block} does not divide {x.size}")
        spec = pl.BlockSpec((block,), lambda i: i)
        shape = purax.ShapeDtypeStruct(x.shape, x.dtype)
        call = pl.pallas_call(
            lambda x_ref, o_ref: o_ref.set(x_ref[...] * 2),
            shape,
            grid=(x.size // block,),
            in_specs=[spec],
            out_specs=spec,
        )
        return call(x)

    return double


def test_the_fastest_is_taken_and_kept(timed, tmp_path):
    double = make(tmp_path)
    np.testing.assert_array_equal(double(jnp.ones(64)), 2 * np.ones(64))
    assert timed == [32, 8, 16]
    assert double.best(jnp.ones(64)) == {"block": 8}
    purax.jit(double)(jnp.ones(64))
    make(tmp_path)(jnp.ones(64))
    assert len(timed) == 3
    double(jnp.ones(128))
    assert len(timed) == 6
    kept = [json.loads(file.read_text()) for file in tmp_path.iterdir()]
    assert kept == [{"best": 1}, {"best": 1}]


def test_files_that_cannot_be_read_are_made_again(timed, tmp_path):
    make(tmp_path)(jnp.ones(64))
    (file,) = tmp_path.iterdir()
    for text in ("", "{}", '{"best": 9}', '{"best": "1"}', "[]"):
        file.write_text(text)
        make(tmp_path)(jnp.ones(64))
        assert json.loads(file.read_text()) == {"best": 1}
    assert len(timed) == 18


def test_configurations_that_raise_are_left_out(timed, tmp_path):
    assert make(tmp_path).best(jnp.ones(48)) == {"block": 8}
    with pytest.raises(
        ValueError, match="raises with all 3 configurations; with the first: 32 does not divide 5"
    ):
        make(tmp_path)(jnp.ones(5))


def test_real_times(tmp_path):
    double = make(tmp_path, (1, 4096))
    np.testing.assert_array_equal(double(jnp.ones(4096)), 2 * np.ones(4096))
    assert double.best(jnp.ones(4096)) in ({"block": 1}, {"block": 4096})


def test_bad_configurations():
    with pytest.raises(ValueError, match="a configuration at least"):
        pl.autotune([])
    with pytest.raises(TypeError, match="dicts of keyword arguments, got 3"):
        pl.autotune([{}, 3])
