"""Every public function says what it does, what its arguments are, and shows an example, which runs as a doctest.

Aliases name the function they are another name of, and functions may refer to one with the same arguments.
"""

from __future__ import annotations

import doctest
import inspect
import operator

import pytest

import purax
import purax.numpy as jnp
from tests.numpy.test_names import MODULES, NAMES

FUNCTIONS = [
    f"{module}.{name}".removeprefix("numpy.")
    for module in MODULES
    for name, signature in NAMES[module].items()
    if signature.startswith("(")
]
NUMPYS_OWN = {
    "array_str",
    "get_printoptions",
    "iterable",
    "printoptions",
    "save",
    "savez",
    "set_printoptions",
}
UNNAMED = {"out_sharding", "_dot_general"}  # accepted for jax's sake


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented(name):
    function = operator.attrgetter(name)(jnp)
    text = inspect.getdoc(function)
    assert text, f"{name} has no docstring"
    if name in NUMPYS_OWN:
        return
    summary = text.splitlines()[0]
    assert 1 < len(summary) <= 120 and not summary.startswith(">>>"), summary
    examples = doctest.DocTestParser().get_examples(text)
    assert examples, f"{name} has no example"
    short = name.split(".")[-1]
    assert any(short in example.source for example in examples), f"the example of {name} does not call it"
    if "another name of" in text or "rguments as" in text or "See `" in text:
        return
    documented = text.partition("Args:")[2]
    for p in inspect.signature(function).parameters:
        if p not in UNNAMED:
            assert f"{p}:" in documented or f"{p}," in documented or f", {p}" in documented, f"{name}: {p}"


def test_array_methods_and_updates_are_documented():
    for name in NAMES["Array.at"]:
        assert ">>>" in (getattr(type(jnp.ones(1).at[0]), name).__doc__ or ""), name
    for name in (
        "view",
        "byteswap",
        "to_device",
        "block_until_ready",
        "item",
        "tolist",
        "copy_to_host_async",
    ):
        assert getattr(type(jnp.ones(1)), name).__doc__, name


def test_differences_from_numpy_are_named():
    text = jnp.__doc__
    for word in ("immutable", "32 bits", "IndexError", "size=", "lists", "random"):
        assert word in text, word
    assert purax.numpy.__doc__ is text
