"""The public names of `purax.numpy` and of arrays, with their parameters, against those of jax 0.10.2.

The list is kept in `data/jax_names.json`: a name with its signature (defaults that are no plain values as None), or
with what it is. What is left out on purpose, or differs, stands here with the reason.
"""

from __future__ import annotations

import inspect
import json
import operator
from pathlib import Path

import pytest

import purax
import purax.numpy as jnp
from purax.numpy._indexing import update

NAMES = json.loads((Path(__file__).parent / "data" / "jax_names.json").read_text())
MODULES = ["numpy", "numpy.linalg", "numpy.fft"]

OMITTED: dict[str, str] = {
    # These come with arrays over several devices.
    "Array.addressable_data": "parts of arrays over several devices",
    "Array.addressable_shards": "parts of arrays over several devices",
    "Array.global_shards": "parts of arrays over several devices",
    "Array.is_fully_addressable": "parts of arrays over several devices",
    "Array.is_fully_replicated": "parts of arrays over several devices",
    "Array.__numpy_dtype__": "a protocol of NumPy for dtypes, not for arrays",
    "Array.__weakref__": "concrete arrays can be referred to weakly; tracers have a slot for nothing",
}
ANOTHER_SIGNATURE: dict[str, str] = {
    **dict.fromkeys(
        "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and logical_or logical_xor maximum "
        "minimum multiply negative subtract".split(),
        "jax's takes *args and so hides that there are one or two; they are positional here, too",
    ),
    "array": "copy, order and ndmin may be given by position, as jax's *args allows",
    "set_printoptions": "NumPy's own, with its parameters",
    "result_type": "one parameter more",
    "expand_dims": "axis is 0 by default, as in the array API standard",
}


def parameters(function) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def bare(function, skip_first: bool = False) -> str:
    """A signature without annotations; defaults that are no plain values as None."""
    result = []
    for p in parameters(function)[skip_first:]:
        plain = p.default is p.empty or isinstance(p.default, (int, float, complex, str, tuple, type(None)))
        result.append(p.replace(annotation=p.empty, default=p.default if plain else None))
    return str(inspect.Signature(result))


@pytest.mark.parametrize("module", MODULES)
def test_every_name_is_there(module):
    ours = operator.attrgetter(module)(purax)
    missing = [
        name for name in NAMES[module] if not hasattr(ours, name) and f"{module}.{name}" not in OMITTED
    ]
    assert not missing, f"purax.{module} lacks {missing}"


@pytest.mark.parametrize("module", MODULES)
def test_every_parameter_is_taken(module):
    ours = operator.attrgetter(module)(purax)
    wrong = []
    for name, signature in NAMES[module].items():
        if signature.startswith("(") and name not in ANOTHER_SIGNATURE:
            own = bare(getattr(ours, name))
            if own != signature:
                wrong.append(f"{name}{own}, jax has {signature}")
    assert not wrong, "\n".join(wrong)


def test_functions_of_other_signatures_take_the_same_calls():
    """Two operands by position, and no other names than jax's."""
    for name in ANOTHER_SIGNATURE:
        kinds = {p.name: p.kind for p in parameters(getattr(jnp, name))}
        if NAMES["numpy"][name].startswith("(*args, out=None, where=None"):
            assert [k for k, v in kinds.items() if v is inspect.Parameter.KEYWORD_ONLY] == ["out", "where"]
    assert jnp.array([1, 2], "float32", True, "K", 2).shape == (1, 2)


def test_kinds_of_names_agree():
    """What is a class in jax is one here; constants are equal."""
    for name, what in NAMES["numpy"].items():
        ours = getattr(jnp, name)
        if what == "class":
            assert isinstance(ours, type), name
        elif what.startswith("("):
            assert callable(ours), name


def test_arrays_have_every_method_and_property():
    x = jnp.ones((2, 2))
    for name in [*NAMES["Array"], *NAMES["Array operators"]]:
        if f"Array.{name}" not in OMITTED:
            assert name in dir(x), name
    traced = []
    purax.jit(lambda y: traced.append(dir(y)) or y)(x)
    concrete_only = {  # what needs a value or a place
        "addressable_data", "addressable_shards", "global_shards", "is_fully_addressable", "is_fully_replicated",
        "block_until_ready", "copy_to_host_async", "delete", "devices", "is_deleted", "is_ready", "committed",
        "on_device_size_in_bytes", "device", "sharding", "item", "tobytes", "tolist", "__copy__", "__deepcopy__",
        "__weakref__", "__numpy_dtype__",
    }  # fmt: skip
    missing = {*NAMES["Array"], *NAMES["Array operators"]} - set(traced[0]) - concrete_only
    assert not missing, f"traced arrays lack {missing}"


def test_methods_take_every_parameter():
    x = jnp.ones((2, 2))
    wrong = []
    for name, signature in NAMES["Array"].items():
        if not signature.startswith("(") or f"Array.{name}" in OMITTED:
            continue
        method = getattr(type(x), name)
        ours = {p.name: (p.kind, p.default) for p in parameters(method)[1:]}
        wanted = parameters(eval(f"lambda{signature[1:-1]}: 0".replace("lambda", "lambda "), {}))[1:]
        for p in wanted:
            if p.kind is p.VAR_POSITIONAL:
                good = any(kind is p.VAR_POSITIONAL for kind, _ in ours.values())
            else:
                good = ours.get(p.name) == (p.kind, p.default)
            if not good:
                wrong.append(f"{name}{bare(method)}, jax has {signature}")
    assert not wrong, "\n".join(wrong)


def test_updates_take_every_option():
    place = jnp.ones(2).at[0]
    accepted = {
        "get": parameters(place.get),
        "apply": parameters(update.apply),
        "update": parameters(update.update),
    }
    for name, signature in NAMES["Array.at"].items():
        ours = {p.name: p.default for p in accepted.get(name, accepted["update"])}
        wanted = parameters(eval(f"lambda {signature[1:-1]}: 0", {}))
        for p in wanted:
            if p.kind is p.KEYWORD_ONLY:
                assert ours[p.name] == p.default, (name, p.name)
        assert callable(getattr(place, name))
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            getattr(place, name)(
                *([] if name == "get" else [jnp.sin if name == "apply" else 1]), modes="drop"
            )
