"""What the array API standard asks about the library, and files."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp


def test_namespace_info():
    info = jnp.ones(2).__array_namespace__().__array_namespace_info__()
    assert set(info.dtypes(kind="bool")) == {"bool"} and "int8" in info.dtypes(kind=("integral", "bool"))
    assert set(info.dtypes()) == {*info.dtypes(kind="bool"), *info.dtypes(kind="numeric")}
    assert info.default_dtypes()["integral"] == np.int32
    with purax.config.override(enable_x64=True):
        assert info.default_dtypes()["real floating"] == np.float64
    assert set(purax.devices()) <= set(info.devices()) and info.capabilities()["boolean indexing"]
    with pytest.raises(ValueError, match="kind must be one of"):
        info.dtypes(kind="numbers")
    with pytest.raises(ValueError, match="2010"):
        jnp.ones(2).__array_namespace__(api_version="2010.01")


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "bfloat16", "float64"])
def test_files(tmp_path, dtype):
    value = jnp.array([[0, 1], [2, 3]], dtype)
    jnp.save(tmp_path / "one.npy", value)
    loaded = jnp.load(tmp_path / "one.npy")
    assert (
        isinstance(loaded, purax.Array) and loaded.dtype == value.dtype and loaded.tolist() == value.tolist()
    )
    if dtype != "bfloat16":
        jnp.savez(tmp_path / "more.npz", first=value, second=value + value)
        with jnp.load(tmp_path / "more.npz") as archive:
            assert sorted(archive) == ["first", "second"] and archive["first"].tolist() == value.tolist()


def test_printing():
    x = jnp.array([1.0, 0.123456])
    assert jnp.array_str(x) == "[1.       0.123456]"
    with jnp.printoptions(precision=2):
        assert repr(x) == "Array([1.  , 0.12], dtype=float32)" == jnp.array_repr(x)
    assert jnp.get_printoptions()["precision"] == 8 and jnp.iterable(x) and not jnp.iterable(1)
