"""Ray, Dask and joblib, as they are: functions travel to their workers, and a group of actors outlives one of them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from tests.distributed.groups import ROOT, environment

ray = pytest.importorskip("ray")


@px.custom_vjp
def clipped(x):
    return jnp.sin(x)


clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.clip(g * jnp.cos(x), -0.1, 0.1),))


def functions():
    """What is sent, and what it gives for an array."""
    scale = jnp.arange(3.0)
    x = px.ShapeDtypeStruct((3,), jnp.float32)
    return {
        "jit": px.jit(lambda x: jnp.tanh(x) * scale),
        "grad of custom_vjp": px.jit(px.grad(lambda x: clipped(x).sum())),
        "vmap": px.vmap(lambda x: x**2),
        "compiled": px.jit(lambda x: x * 2).lower(x).compile(),
    }


X = np.array([0.5, 1.0, 2.0], np.float32)


@pytest.fixture(scope="module")
def cluster():
    os.environ["PURAX_PLATFORMS"] = "cpu"
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.parametrize("name", functions())
def test_ray_tasks(name, cluster):
    function = functions()[name]
    there = ray.remote(lambda f, x: np.asarray(f(x)))
    assert np.array_equal(ray.get(there.remote(function, X)), np.asarray(function(X)))


@pytest.mark.parametrize("name", functions())
def test_joblib(name):
    joblib = pytest.importorskip("joblib")
    function = functions()[name]
    (found,) = joblib.Parallel(n_jobs=2)([joblib.delayed(lambda x: np.asarray(function(x)))(X)])
    assert np.array_equal(found, np.asarray(function(X)))


@pytest.mark.parametrize("name", functions())
def test_dask(name):
    pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    function = functions()[name]
    later = dask.delayed(lambda x: np.asarray(function(x)))(X)
    found = later.compute(scheduler="processes", num_workers=1)
    assert np.array_equal(found, np.asarray(function(X)))


def test_a_group_of_actors_goes_on_without_one(tmp_path):
    done = subprocess.run(
        [
            *(sys.executable, str(ROOT / "examples" / "train_ray.py")),
            *("--actors", "3", "--folder", str(tmp_path / "c"), "--lose", "1"),
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "a group of 3 ended" in done.stdout, done.stderr[-3000:]
    assert "15 steps of the last group, loss 0.5451" in done.stdout, done.stderr[-3000:]
