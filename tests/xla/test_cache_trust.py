"""Compiled programs are machine code: only what the user's own key has signed, in a folder of the user's, is loaded."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import threading

import pytest

from purax.xla import compiler, disk_cache, private_files

KEY = bytes(range(32))
PAYLOAD = b"machine code" * 100

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a system without user numbers")


@pytest.fixture
def entry(cache_folder):
    """The path of one sound entry."""
    assert disk_cache.write(KEY, PAYLOAD) and disk_cache.read(KEY) == PAYLOAD
    return cache_folder / (KEY.hex() + disk_cache.SUFFIX)


@pytest.fixture
def warnings(caplog):
    """What was said since the last look."""
    caplog.set_level(logging.WARNING, "purax")

    def said() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return said


def test_files_are_the_users_alone(entry, cache_folder):
    for path in (entry, cache_folder / private_files.KEY_NAME):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache_folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("signed_by", ["a check sum", "another key"])
def test_what_somebody_else_signed_never_reaches_the_engine(signed_by, entry, monkeypatch):
    other = os.urandom(32)
    header = disk_cache._HEADER.pack(disk_cache.MAGIC, KEY, len(PAYLOAD))
    packed = disk_cache.zlib.compress(PAYLOAD)
    signature = (
        hashlib.sha256(header + packed).digest()
        if signed_by == "a check sum"
        else disk_cache._sign(other, header, packed)
    )
    entry.write_bytes(header + signature + packed)
    monkeypatch.setattr(compiler.jaxlib_api, "deserialize", lambda *_: pytest.fail("it was loaded"))
    assert disk_cache.read(KEY) is None and not entry.exists()


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_folder_that_others_can_write_is_refused_once(mode, entry, cache_folder, warnings):
    cache_folder.chmod(mode)
    for _ in range(3):
        assert disk_cache.read(KEY) is None and not disk_cache.write(KEY, PAYLOAD)
    (message,) = warnings()
    assert "can be written by other users" in message and "chmod go-w" in message
    cache_folder.chmod(0o755)
    assert disk_cache.read(KEY) == PAYLOAD


@pytest.mark.parametrize("user", [54321, 0])
def test_a_folder_of_another_user_is_refused(user, entry, cache_folder, warnings, monkeypatch):
    """Also for root, who would run what others compiled."""
    if os.geteuid() == 0:
        os.chown(cache_folder, 1234, 1234)
    monkeypatch.setattr(private_files, "_user", lambda: user)
    for _ in range(3):
        assert disk_cache.read(KEY) is None and not disk_cache.write(KEY, PAYLOAD)
    (message,) = warnings()
    assert "belongs to user" in message


def test_an_entry_that_others_can_write_is_refused_and_replaced(entry, warnings):
    entry.chmod(0o666)
    assert disk_cache.read(KEY) is None
    (message,) = warnings()
    assert "can be written by other users" in message
    assert disk_cache.write(KEY, PAYLOAD) and disk_cache.read(KEY) == PAYLOAD


def _published_folder(cache_folder, entry):
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of root's")
    cache_folder.chmod(0o755)
    entry.chmod(0o644)


def test_a_folder_of_roots_is_read_by_others_if_its_key_is_published(
    entry, cache_folder, warnings, monkeypatch
):
    _published_folder(cache_folder, entry)
    (cache_folder / private_files.KEY_NAME).chmod(0o444)
    assert disk_cache.read(KEY) == PAYLOAD  # root's own use of it
    monkeypatch.setattr(private_files, "_user", lambda: 54321)
    assert disk_cache.read(KEY) == PAYLOAD and not disk_cache.write(bytes(32), PAYLOAD)
    assert not warnings()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o666, 0o440])
def test_a_key_that_others_can_read_is_replaced(mode, entry, cache_folder, warnings):
    path = cache_folder / private_files.KEY_NAME
    before = path.read_bytes()
    path.chmod(mode)
    assert disk_cache.read(KEY) is None
    (message,) = warnings()
    assert "signing.key" in message and "other users" in message
    assert disk_cache.write(KEY, PAYLOAD) and disk_cache.read(KEY) == PAYLOAD
    assert path.read_bytes() != before and stat.S_IMODE(path.stat().st_mode) == 0o600


def _flipped(content: bytes) -> bytes:
    return content[:5] + bytes([content[5] ^ 1]) + content[6:]


@pytest.mark.parametrize(
    "damage", [lambda c: b"", lambda c: c[:-1], lambda c: c + b"x", lambda c: bytes(64), _flipped]
)
def test_a_damaged_key_is_made_again(damage, entry, cache_folder, warnings):
    path = cache_folder / private_files.KEY_NAME
    path.write_bytes(damage(path.read_bytes()))
    assert disk_cache.read(KEY) is None
    assert disk_cache.write(KEY, PAYLOAD) and disk_cache.read(KEY) == PAYLOAD
    assert not warnings()


def _make_pipe(path):
    os.mkfifo(path)


def _make_device(path):
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # endless zeros
    except PermissionError:
        pytest.skip("needs the right to make devices")


def _make_link_to_device(path):
    path.symlink_to("/dev/zero")


def _make_link_to_itself(path):
    path.symlink_to(path)


def _make_link_to_a_sound_entry(path):
    other = path.parent.parent / "elsewhere"
    path.rename(other) if path.exists() else other.write_bytes(b"")
    path.symlink_to(other)


MADE = [_make_pipe, _make_device, _make_link_to_device, _make_link_to_itself, _make_link_to_a_sound_entry]


@pytest.mark.parametrize("name", ["entry", "key"])
@pytest.mark.parametrize("make", MADE)
def test_what_is_not_a_regular_file_is_not_opened(make, name, entry, cache_folder, warnings, monkeypatch):
    path = entry if name == "entry" else cache_folder / private_files.KEY_NAME
    if make is not _make_link_to_a_sound_entry:
        path.unlink()
    make(path)
    opened = []
    original = os.open

    def watched(opened_path, *args, **kwargs):
        opened.append(str(opened_path))
        return original(opened_path, *args, **kwargs)

    monkeypatch.setattr(os, "open", watched)
    assert disk_cache.read(KEY) is None and str(path) not in opened
    (message,) = warnings()
    assert "not a regular file" in message
    assert disk_cache.write(KEY, PAYLOAD) and disk_cache.read(KEY) == PAYLOAD  # it was replaced
    assert path.is_file() and not path.is_symlink()


def test_makers_of_a_key_agree_on_one(tmp_path):
    """Threads stand for processes: nothing is shared but the folder."""
    found, start = [], threading.Barrier(8)

    def make():
        start.wait()
        found.append(private_files.make_key(str(tmp_path)))

    for _ in range(20):
        (tmp_path / private_files.KEY_NAME).unlink(missing_ok=True)
        found.clear()
        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8 and len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [private_files.KEY_NAME]
