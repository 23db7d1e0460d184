"""What a notebook shows of arrays, programs, shardings and compiled functions: well-formed HTML that never fails."""

from __future__ import annotations

import binascii
import re
import struct
import zlib
from html.parser import HTMLParser

import ml_dtypes
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core import display
from purax.sharding import Mesh, NamedSharding, PartitionSpec


class _Checker(HTMLParser):
    """Raises if an element is not closed in its place."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(html: str) -> str:
    checker = _Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return html


ARRAYS = {
    "scalar": np.float32(3),
    "empty": np.zeros((0, 3), np.float32),
    "one": np.ones(1),
    "constant": np.ones((4, 4), np.float32),
    "bools": np.array([True, False, True]),
    "integers": np.arange(100),
    "unsigned": np.array([0, 2**63], np.uint64),
    "complex": np.array([1j, 2]),
    "all NaN": np.full((9, 9), np.nan, np.float32),
    "infinite": np.array([[np.inf, -np.inf] * 8] * 16, np.float32),
    "huge": np.array([-3.0e38, 3.0e38], np.float32),
    "subnormal": np.array([1e-42, 2e-42], np.float32),
    "bfloat16": np.linspace(0, 1, 64).astype(ml_dtypes.bfloat16).reshape(8, 8),
    "float8": np.linspace(0, 1, 64).astype(ml_dtypes.float8_e4m3fn).reshape(8, 8),
    "int4": np.arange(8).astype(ml_dtypes.int4),
    "picture": np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3),
    "with alpha": np.random.default_rng(0).random((20, 20, 4), np.float32),
    "long": np.zeros((8, 500), np.float32),
    "five axes": np.zeros((2, 2, 2, 2, 2), np.float32),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_every_array_is_shown(name):
    x = jnp.asarray(ARRAYS[name], dtype=ARRAYS[name].dtype)
    html = checked(x._repr_html_())
    assert x.aval.str_short() in html and "<script" not in html


def test_a_picture_is_a_picture_and_a_tensor_has_a_histogram():
    picture = jnp.asarray(ARRAYS["picture"])._repr_html_()
    data = binascii.a2b_base64(re.search(r"base64,([^\"]*)", picture)[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (10, 12)
    at = data.index(b"IDAT")
    (length,) = struct.unpack(">I", data[at - 4 : at])
    rows = np.frombuffer(zlib.decompress(data[at + 4 : at + 4 + length]), np.uint8).reshape(12, 31)
    np.testing.assert_array_equal(rows[:, 1:].reshape(12, 10, 3), ARRAYS["picture"])
    tensor = jnp.asarray(np.random.default_rng(0).normal(size=1000))._repr_html_()
    assert tensor.count("<rect") > 10 and "mean" in tensor and "<img" not in tensor
    assert "9 NaN" in jnp.full((3, 3), jnp.nan)._repr_html_()


def test_what_cannot_be_shown_is_left_to_the_text():
    gone = jnp.ones(3)
    gone.delete()
    assert gone._repr_html_() is None
    assert px.random.key(0)._repr_html_() is None

    class Broken(type(jnp.ones(1))):
        def host_value(self):
            raise RuntimeError("no")

    assert Broken(jnp.ones(2).aval, np.ones(2))._repr_html_() is None
    shown = []
    px.jit(lambda x: shown.append(getattr(x, "_repr_html_", lambda: None)()) or x)(1.0)
    assert shown == [None]


def test_a_large_array_is_shown_in_part():
    x = jnp.zeros((16, 1 << 20), jnp.int8)
    html = checked(x._repr_html_())
    assert "every 4th element" in html and len(html) < 20_000


def test_a_sharded_array_says_where_it_lies():
    mesh = Mesh(px.devices()[:1], ("data",))
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    assert "NamedSharding" in checked(px.device_put(jnp.ones(4), sharding)._repr_html_())
    assert "cut along" in checked(sharding._repr_html_()) and "data" in sharding._repr_html_()


def test_programs_are_in_colour():
    closed = px.make_jaxpr(lambda x: px.lax.scan(lambda c, y: (c * y, jnp.sin(c)), 1.0, x))(jnp.ones(3))
    html = checked(closed._repr_html_())
    assert re.sub(r"<[^>]*>", "", html) == display.escaped(str(closed))
    assert html.count("<span") > 8 and html == closed.jaxpr._repr_html_()


def test_stages_and_analyses_are_tables():
    traced = px.jit(lambda x: jnp.tanh(x @ x)).trace(jnp.ones((4, 4)))
    lowered = traced.lower()
    compiled = lowered.compile()
    for stage, text in ((traced, "dot_general"), (lowered, "stablehlo.tanh"), (compiled, "HloModule")):
        assert text in checked(stage._repr_html_())
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    assert memory.argument_size_in_bytes == 64 and "argument" in checked(memory._repr_html_())
    assert cost["flops"] > 0 and isinstance(cost, dict) and "flops" in checked(cost._repr_html_())
    with pytest.raises(AttributeError):
        memory.no_such_field  # noqa: B018


def test_in_ipython():
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(jnp.arange(12.0))
    assert data["text/html"].startswith("<div") and data["text/plain"].startswith("Array(")
    assert "text/html" not in DisplayFormatter().format(px.random.key(1))[0]
