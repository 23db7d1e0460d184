"""Attributes for the compiler: they stand in programs, follow derivatives, and change no value."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.jaxpr_hash import fingerprint
from purax.experimental.compute_on import compute_on, compute_on2
from purax.experimental.control_deps import control_dep, schedule
from purax.experimental.fused import fused
from purax.experimental.layout import Layout, with_layout_constraint
from purax.experimental.scheduling_groups import scheduling_group
from purax.experimental.shard_alike import shard_alike
from purax.experimental.xla_metadata import (
    fuse_limit,
    must_fuse_call,
    set_xla_metadata,
    xla_metadata_call,
    xla_metadata_call2,
)

X = np.linspace(0.1, 1.0, 6, dtype=np.float32).reshape(2, 3)
SPACE = px.memory.Space.Device


def plain(x):
    return jnp.sin(x) * x


WRAPPED = {
    "metadata": xla_metadata_call(plain, tag="a"),
    "scheduling": scheduling_group("a")(plain),
    "must fuse": must_fuse_call("a")(plain),
    "host": compute_on2(plain, compute_type="device_host", out_memory_spaces=SPACE),
    "fused": fused(out_spaces=(SPACE,))(plain),
    "value": lambda x: set_xla_metadata(plain(x), tag="a"),
    "layout": lambda x: with_layout_constraint(plain(x), Layout(tuple(reversed(range(x.ndim))))),
    "alike": lambda x: shard_alike(plain(x), x)[0],
}


@pytest.mark.parametrize("name", WRAPPED)
def test_values_and_derivatives_stay(name):
    function = WRAPPED[name]
    for transform in (
        lambda f: f,
        px.jit,
        px.vmap,
        lambda f: px.grad(lambda x: f(x).sum()),
        lambda f: px.jit(px.vmap(px.grad(lambda x: f(x).sum()))),
        lambda f: lambda x: px.jvp(f, (x,), (x,))[1],
        lambda f: px.grad(lambda x: px.grad(lambda x: f(x).sum())(x).sum()),
    ):
        mine, wanted = transform(function)(jnp.asarray(X)), transform(plain)(jnp.asarray(X))
        np.testing.assert_allclose(mine, wanted, rtol=2e-6, atol=1e-6)


def test_a_block_gives_its_operations_attributes_and_no_others():
    def function(x):
        with set_xla_metadata(a=1, b="t/u", c=True), px.named_scope("outer"):
            y = jnp.sin(x)
            with set_xla_metadata(a=2):
                y = jnp.cos(y)
        return y + 1

    text = px.jit(function).lower(1.0).as_text()
    lines = {
        word: line for line in text.splitlines() for word in ("sine", "cosine", "add") if f".{word}" in line
    }
    assert 'a = "1", b = "t/u", c = "true"' in lines["sine"]
    assert '"outer/sin"' in px.jit(function).lower(1.0).as_text(debug_info=True)
    assert 'a = "2"' in lines["cosine"] and 'b = "t/u"' in lines["cosine"]
    assert "frontend_attributes" not in lines["add"]
    assert float(px.jit(function)(1.0)) == pytest.approx(float(jnp.cos(jnp.sin(1.0)) + 1))
    with pytest.raises(TypeError, match="must be a string, a number or a bool"):
        set_xla_metadata(a=[1])


def test_programs_that_differ_in_attributes_are_not_one():
    def recorded(value):
        def function(x):
            with set_xla_metadata(a=value):
                return jnp.sin(x)

        return fingerprint(px.make_jaxpr(function)(1.0))

    assert recorded(1) == recorded(1) != recorded(2)


def test_what_autodiff_derives_has_the_attributes_asked_for():
    def text(**options):
        function = xla_metadata_call2(plain, {"tag": "forward"}, **options)
        return px.jit(px.grad(function)).lower(1.0).as_text()

    assert text().count('tag = "forward"') == 2
    assert text(ad_metadata="drop").count('tag = "forward"') == 1
    assert 'tag = "back"' in text(ad_metadata={"tag": "back"})
    with pytest.raises(ValueError, match="'same', 'drop' or a dict"):
        xla_metadata_call2(plain, {}, ad_metadata="other")


def test_contexts_and_what_is_refused():
    with fuse_limit():
        assert float(jnp.sin(0.0)) == 0
    with pytest.raises(ValueError, match="Invalid compute type 'foo'"):
        compute_on("foo")
    with pytest.raises(NotImplementedError, match="results stay in the device's memory"):
        fused(out_spaces=(px.memory.Space.Host,))
    with pytest.raises(ValueError, match="leaves shapes of `x` and `y` should match"):
        shard_alike(jnp.ones(2), jnp.ones(3))
    with pytest.raises(ValueError, match="orders 1 axes, the array has 2"):
        with_layout_constraint(X, Layout((0,)))


def test_control_dependencies_keep_the_values():
    def function(x):
        a, b, c = jnp.sin(x), jnp.cos(x), jnp.tan(x)
        assert control_dep(a, b) == ()
        schedule([a, b, c])
        return a + b + c

    assert float(px.jit(function)(0.5)) == pytest.approx(float(function(0.5)), rel=1e-6)
    assert "dce_sink" in str(px.make_jaxpr(function)(0.5))
