"""Checkpoints: any tree, any mesh, in the background; whatever fails in a save, the last good one can be read."""

from __future__ import annotations

import itertools
import json
import os
from collections import namedtuple

import jax
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.checkpoints import files
from purax.sharding import NamedSharding
from purax.sharding import PartitionSpec as P

Point = namedtuple("Point", "x y")
DTYPES = "bool int8 uint16 int32 float16 bfloat16 float32 complex64 float8_e4m3fn int4".split()


def trees():
    """Trees of all that a checkpoint may hold."""
    values = np.arange(24).reshape(2, 3, 4)
    return {
        "dtypes": {name: jnp.asarray(values % 3).astype(name) for name in DTYPES},
        "structure": [{"a": (jnp.ones(3), None), 3: [np.zeros((0, 2))]}, (), jnp.float32(2.5)],
        "plain": {"step": 7, "rate": 0.1, "no": float("nan"), "name": "run é", "on": True},
        "keys": {"one": px.random.key(3), "many": px.random.split(px.random.key(1, impl="rbg"), 3)},
        "an array": jnp.arange(5),
    }


def assert_same(found, wanted):
    assert px.tree.structure(found) == px.tree.structure(wanted)
    for a, b in zip(px.tree.leaves(found), px.tree.leaves(wanted), strict=True):
        if isinstance(b, int | float | str):
            assert type(a) is type(b) and (a == b or a != a)
            continue
        assert a.dtype == b.dtype and a.shape == b.shape
        if px.dtypes.issubdtype(b.dtype, px.dtypes.prng_key):
            a, b = px.random.key_data(a), px.random.key_data(b)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("name", trees())
def test_what_is_saved_is_loaded(name, tmp_path):
    tree = trees()[name]
    px.checkpoints.save(tmp_path / "c", tree)
    assert_same(px.checkpoints.load(tmp_path / "c"), tree)
    assert_same(px.checkpoints.load(tmp_path / "c", like=tree), tree)


def test_types_of_ones_own_need_their_structure(tmp_path):
    tree = {"p": Point(jnp.ones(2), jnp.zeros(3))}
    px.checkpoints.save(tmp_path, tree)
    with pytest.raises(ValueError, match="types that have no name"):
        px.checkpoints.load(tmp_path)
    assert_same(px.checkpoints.load(tmp_path, like=tree), tree)


SPECS = [P(), P("x"), P("x", "y"), P(("y", "x")), P(None, "x"), P("y", None, "x")]


@pytest.mark.parametrize("saved", SPECS[:4], ids=str)
def test_onto_another_mesh(saved, tmp_path):
    mesh = px.make_mesh((4, 2), ("x", "y"))
    value = np.random.default_rng(0).normal(size=(8, 12, 4)).astype(np.float32)
    px.checkpoints.save(tmp_path, {"w": px.device_put(value, NamedSharding(mesh, saved))})
    others = [px.make_mesh((2, 4), ("x", "y")), px.make_mesh((1, 2), ("x", "y"))]
    for other in others:
        for spec in SPECS:
            place = NamedSharding(other, spec)
            (one,) = px.tree.leaves(px.checkpoints.load(tmp_path, shardings=place))
            like = {"w": px.ShapeDtypeStruct(value.shape, jnp.bfloat16, sharding=place)}
            two = px.checkpoints.load(tmp_path, like=like)["w"]
            assert one.sharding == two.sharding == place and two.dtype == jnp.bfloat16
            assert np.array_equal(one, value)
            assert np.array_equal(two, value.astype(jnp.bfloat16))


def test_each_part_is_written_once(tmp_path):
    mesh = px.make_mesh((4, 2), ("x", "y"))
    value = px.device_put(np.zeros((8, 1024), np.float32), NamedSharding(mesh, P("x")))
    px.checkpoints.save(tmp_path, {"w": value})
    assert sum(f.stat().st_size for f in tmp_path.rglob("*.bin")) == 8 * 1024 * 4


def test_in_the_background_values_are_those_of_the_moment(tmp_path):
    step = px.jit(lambda w: w + 1, donate_argnums=0)
    w, host = jnp.zeros(1000), np.zeros(3)
    saves = []
    for i in range(5):
        saves.append(px.checkpoints.save(tmp_path / f"{i % 2}", {"w": w, "host": host, "i": i}, wait=False))
        w, host[:] = step(w), i + 1
    for one in saves:
        one.result()
    assert saves[0].done() and repr(saves[0]) == "<Saving, done>"
    for k, i in ((0, 4), (1, 3)):
        found = px.checkpoints.load(tmp_path / f"{k}")
        assert (found["w"][7], found["host"][1], found["i"]) == (i, i, i)
        assert len(list((tmp_path / f"{k}").glob("save-*"))) == 1


class Crash(BaseException):
    """The process dies: nothing is cleaned up."""


def failing(name, function, counter, fail_at, failure):
    """A step of a save that fails when so many were done; writing also with half of the bytes written."""

    def call(*args):
        count = next(counter)
        if name == "write" and count in (fail_at, fail_at + 1):
            path, parts = args
            data = b"".join(map(bytes, parts))
            function(path, [data[: len(data) // 2] if count == fail_at else b""])
            raise failure
        if count == fail_at + 1:
            raise failure
        return function(*args)

    return call


@pytest.mark.parametrize("failure", [OSError("no space left"), Crash()], ids=["error", "crash"])
@pytest.mark.parametrize("kind", ["folder", "file.safetensors", "file.npz"])
def test_a_failure_at_any_step_leaves_a_whole_checkpoint(kind, failure, tmp_path, monkeypatch):
    path = tmp_path / kind
    old, new = {"w": np.arange(1000.0)}, {"w": np.ones(500), "b": np.ones(3)}
    steps = ["make_folder", "write", "rename", "bring_to_disk", "remove"]
    real = {name: getattr(files, name) for name in steps}
    outcomes = []
    for fail_at in range(40):
        for name, function in real.items():
            monkeypatch.setattr(files, name, function)
        px.checkpoints.save(path, old)
        counter = itertools.count(1)
        for name, function in real.items():
            monkeypatch.setattr(files, name, failing(name, function, counter, fail_at, failure))
        try:
            px.checkpoints.save(path, new)
            failed = False
        except (OSError, Crash):
            failed = True
        for name, function in real.items():
            monkeypatch.setattr(files, name, function)
        found = {name.strip("[']"): x for name, x in px.checkpoints.load(path).items()}
        wanted = old if len(found) == 1 else new
        assert set(found) == set(wanted)
        assert all(np.array_equal(found[k], wanted[k]) for k in wanted)
        outcomes.append((failed, wanted is new))
        if not failed:
            break
    assert not failed and (True, False) in outcomes  # some failed early, and the last went through


def test_safetensors_as_others_write_them(tmp_path):
    """By the format's description: eight bytes of length, a header in JSON, and the bytes."""
    tree = {"layers": [{"w": jnp.arange(6.0).reshape(2, 3).astype(jnp.bfloat16)}, {"w": jnp.ones(2, bool)}]}
    px.checkpoints.save(tmp_path / "a.safetensors", tree)
    data = (tmp_path / "a.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0 and header["layers.0.w"] == {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}
    header = b'{"__metadata__":{"format":"pt"},"x":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}}'
    (tmp_path / "b.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\1\0\2\0")
    assert px.checkpoints.load(tmp_path / "b.safetensors")["x"].tolist() == [1, 2]
    assert_same(px.checkpoints.load(tmp_path / "a.safetensors", like=tree), tree)


def test_npz_is_numpys(tmp_path):
    px.checkpoints.save(tmp_path / "a.npz", {"w": jnp.arange(3), "b": {"c": np.ones(2)}})
    with np.load(tmp_path / "a.npz") as found:
        assert sorted(found.files) == ["b.c", "w"]
    assert px.checkpoints.load(tmp_path / "a.npz")["b.c"].tolist() == [1, 1]


def test_keeps_the_sharding_of_jax_like_arrays_only_where_asked(tmp_path):
    px.checkpoints.save(tmp_path, {"w": jax.numpy.arange(3)})  # anything that NumPy understands
    assert not px.checkpoints.load(tmp_path)["w"].committed


def damaged(tmp_path, change):
    px.checkpoints.save(tmp_path / "c", {"w": np.arange(100.0), "k": 1})
    change(tmp_path / "c")
    return px.checkpoints.load(tmp_path / "c")


def flip(folder):
    (file,) = folder.rglob("*.bin")
    data = bytearray(file.read_bytes())
    data[13] ^= 1
    file.write_bytes(data)


def edited(**changes):
    def change(folder):
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps(manifest | changes))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flip, "are not those that were written"),
        (lambda folder: [os.truncate(f, 100) for f in folder.rglob("*.bin")], "it was cut off"),
        (lambda folder: [f.unlink() for f in folder.rglob("*.bin")], "cannot be read: No such file"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json is damaged"),
        (lambda folder: (folder / "manifest.json").unlink(), "there is no checkpoint at"),
        (edited(purax=9), "has version 9"),
    ],
)
def test_damage_is_found(change, message, tmp_path):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        damaged(tmp_path, change)


def test_bad_input(tmp_path):
    tree = {"w": np.ones((4, 2), np.float32), "k": px.random.key(0)}
    px.checkpoints.save(tmp_path / "c", tree)
    S = px.ShapeDtypeStruct
    mesh = px.make_mesh((8,), ("x",))
    load = px.checkpoints.load
    for like, message in (
        ({"w": S((4, 3), jnp.float32), "k": tree["k"]}, r"\['w'\] has shape \(4, 3\) .* and \(4, 2\) float32 in the"),
        ({"w": S((4, 2), jnp.float32), "k": jnp.ones(2)}, r"\['k'\] has shape \(2,\).* of keys in the checkpoint"),
        ({"v": tree["w"], "k": tree["k"]}, r"it has no \['v'\]; it has \['w'\], `like` has not"),
    ):
        with pytest.raises(ValueError, match=message):
            load(tmp_path / "c", like=like)
    with pytest.raises(ValueError, match=r"\['w'\] of shape \(4, 2\) cannot lie as"):
        load(tmp_path / "c", shardings={"w": NamedSharding(mesh, P("x")), "k": None})
    with pytest.raises(TypeError, match=r"the leaf \['f'\] is .*; a checkpoint holds arrays, numbers and texts"):
        px.checkpoints.save(tmp_path / "d", {"f": object()})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="holds other files, such as 'thesis.tex'"):
        px.checkpoints.save(tmp_path / "mine", tree)
    with pytest.raises(ValueError, match="is a file"):
        px.checkpoints.save(tmp_path / "mine" / "thesis.tex", tree)
    with pytest.raises(TypeError, match="k is a random key"):
        px.checkpoints.save(tmp_path / "c.npz", tree)
    with pytest.raises(FileNotFoundError, match="no file"):
        load(tmp_path / "none.safetensors")
