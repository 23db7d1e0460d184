"""Laws of the configuration: checks on values, threads, contexts, hooks, the environment, and the trace key."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import purax.config  # noqa: F401  (the attribute `purax.config` may be the object, the module is below)
import purax.numpy as jnp
from purax.config import Config, Flag, _InContext, _Shared
from purax.config import config as real_config
from purax.core.trace import current
from purax.execution.eager import eager

module = sys.modules["purax.config"]

FLAGS = (
    Flag("switch", False, "A switch.", traced=True),
    Flag("level", 3, "A number.", traced=True, aliases=("height",)),
    Flag("rate", 0.5, "A real number."),
    Flag("mode", "warn", "A choice.", choices=("warn", "raise")),
    Flag("folder", None, "A path.", kind=str, environment=("FOLDER_OF_OLD",)),
    Flag("place", None, "Any object.", kind=object, traced=True),
    Flag("group", None, "Sets two flags.", choices=("a", "b"), members=("group_one", "group_two")),
    Flag("group_one", None, "One.", choices=("a", "b")),
    Flag("group_two", None, "Two.", choices=("a", "b")),
)


@pytest.fixture
def config() -> Config:
    return Config(_Shared(FLAGS))


def in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_defaults_are_accepted_by_their_own_flags():
    for flag in module.FLAGS:
        assert flag.check(flag.default) == flag.default
        assert flag.help.endswith(".")


def test_flags_do_not_hide_methods():
    own = {name for name, value in vars(Config).items() if not isinstance(value, _InContext)}
    assert not own & set(real_config.flags)


def test_update_is_seen_by_all_threads(config):
    assert in_thread(lambda: config.level) == 3
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: config.level).result() == 3  # this thread has read it before the update
        config.update("level", 4)
        assert pool.submit(lambda: config.level).result() == 4
    assert in_thread(lambda: config.level) == 4


def test_override_is_of_one_thread_and_masks_updates(config):
    with config.override(level=7):
        assert (config.level, in_thread(lambda: config.level)) == (7, 3)
        config.update("level", 5)
        assert (config.level, in_thread(lambda: config.level)) == (7, 5)
    assert config.level == 5


def test_overrides_nest_and_survive_exceptions(config):
    with pytest.raises(KeyError), config.override(level=1):
        with config.override(level=2, switch=True):
            assert (config.level, config.switch) == (2, True)
            raise KeyError
    assert (config.level, config.switch, config.overrides) == (3, False, {})


def test_one_override_can_be_entered_again_and_from_two_threads(config):
    override = config.override(level=9)
    inside, leave = threading.Event(), threading.Event()

    def other():
        with override:
            inside.set()
            assert leave.wait(10)
            return config.level

    with ThreadPoolExecutor(1) as pool:
        with override, override:
            result = pool.submit(other)
            assert inside.wait(10)
            assert config.level == 9
        assert config.level == 3
        leave.set()
        assert result.result() == 9


def test_override_decorates_a_function(config):
    @config.override(level=8)
    def read(n):
        return config.level if n == 0 else read(n - 1)

    assert (read(2), config.level) == (8, 3)


def test_overrides_left_in_another_order_put_the_global_value_back(config):
    first, second = config.override(level=1), config.override(rate=2.0)
    first.__enter__()
    second.__enter__()
    first.__exit__()
    assert (config.level, config.rate) == (3, 2.0)
    second.__exit__()
    assert (config.level, config.rate) == (3, 0.5)
    with pytest.raises(RuntimeError, match="not entered"):
        second.__exit__()


def test_worker_can_take_over_the_overrides(config):
    def read(overrides):
        with config.override(**overrides):
            return config.level

    with config.override(level=6):
        assert in_thread(lambda overrides=config.overrides: read(overrides)) == 6


def test_trace_key_is_one_object_per_combination_of_traced_values(config):
    key = config.trace_key
    assert config.trace_key is key
    assert in_thread(lambda: config.trace_key) is key
    with config.override(switch=True):
        inner = config.trace_key
        assert inner is not key
        assert inner.difference(key) == {"switch": (True, False)}
        with config.override(switch=False):
            assert config.trace_key is key
    assert config.trace_key is key
    config.update("switch", True)
    assert config.trace_key is inner
    with config.override(rate=3.0, mode="raise", folder="x"):
        assert config.trace_key is inner  # these flags are not traced
    assert {key: 1}[key] == 1 and key != inner


def test_trace_key_follows_an_update_in_another_thread(config):
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(lambda: config.trace_key).result()
        config.update("level", 11)
        after = pool.submit(lambda: config.trace_key).result()
    assert after is not before and after is config.trace_key


def test_every_spelling_is_the_same_flag(config):
    for name in ("level", "jax_level", "height", "jax_height"):
        config.update(name, config.level + 1)
        assert config.level == config.jax_level == config.height == config.jax_height == config.read(name)
    assert config.level == 7
    with pytest.raises(AttributeError, match="Did you mean level"):
        config.read("jax_levle")
    with config.override(jax_level=1):
        assert config.level == 1


def test_group_sets_its_members(config):
    config.update("group", "a")
    assert (config.group_one, config.group_two) == ("a", "a")
    with config.override(group="b", group_two="a"):
        assert (config.group, config.group_one, config.group_two) == ("b", "b", "a")
    assert (config.group_one, config.group_two) == ("a", "a")


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("switch", 1, True), ("switch", 0, False), ("level", True.__index__(), 1), ("rate", 2, 2.0),
        ("folder", None, None), ("place", "cpu", "cpu"), ("place", (1, 2), (1, 2)), ("mode", "raise", "raise"),
    ],
)  # fmt: skip
def test_accepted_values(config, name, value, stored):
    config.update(name, value)
    assert getattr(config, name) == stored
    assert type(getattr(config, name)) is type(stored)


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("switch", "yes", TypeError, "switch must be True or False, got 'yes' of type str"),
        ("switch", 2, TypeError, "switch must be True or False"),
        ("switch", None, TypeError, "switch must be True or False"),
        ("level", 1.5, TypeError, "level must be an integer"),
        ("level", True, TypeError, "level must be an integer"),
        ("rate", "fast", TypeError, "rate must be a number"),
        ("folder", 3, TypeError, "folder must be a string or None"),
        ("place", [1], TypeError, "place must be a hashable object or None"),
        (
            "mode",
            "rase",
            ValueError,
            "mode must be one of 'warn', 'raise', got 'rase'. Did you mean 'raise'?",
        ),
        ("mode", None, ValueError, "mode must be one of"),
        ("lavel", 1, AttributeError, "unrecognized config option: 'lavel'. Did you mean level"),
        ("jax_swich", 1, AttributeError, "Did you mean switch?"),
        ("zzz", 1, AttributeError, "config.describe"),
    ],
)
def test_refused_values_leave_everything_as_it_was(config, name, value, error, text):
    before = config.values
    with pytest.raises(error) as caught:
        config.update(name, value)
    assert text in str(caught.value)
    with pytest.raises(error):
        config.override(**{name: value})
    assert config.values == before


def test_assignment_says_what_to_write(config):
    with pytest.raises(AttributeError, match=r"write config.update\('level', 5\)"):
        config.jax_level = 5
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del config.level
    assert config.level == 3


def test_hooks_see_every_change_in_force(config):
    seen = []
    remove = config.on_change("jax_level", seen.append)
    config.update("level", 4)
    config.update("level", 4)  # no change, no call
    with config.override(level=5):
        config.update("level", 6)  # masked by the override
    remove()
    remove()
    config.update("level", 7)
    assert seen == [4, 5, 6]


def test_a_hook_that_raises_vetoes_the_change(config):
    def veto(value):
        if value > 10:
            raise RuntimeError("too late")

    config.on_change("level", veto)
    key = config.trace_key
    with pytest.raises(RuntimeError, match="too late"):
        config.update("level", 11)
    assert config.level == 3 and config.trace_key is key
    with pytest.raises(RuntimeError, match="too late"), config.override(level=12):
        raise AssertionError("not reached")
    assert config.level == 3 and config.overrides == {}


def test_environment(config):
    found = config.read_environment(
        "JAX_",
        {
            "JAX_SWITCH": "on",
            "JAX_HEIGHT": "12",
            "JAX_RATE": "1e-3",
            "PURAX_MODE": "raise",
            "FOLDER_OF_OLD": "/x",
        },
    )
    assert found == {"switch": True, "level": 12, "rate": 1e-3}
    assert (config.switch, config.level, config.rate, config.mode, config.folder) == (
        True,
        12,
        1e-3,
        "warn",
        None,
    )
    assert config.read_environment("PURAX_", {"FOLDER_OF_OLD": "/x"}) == {"folder": "/x"}
    assert config.read_environment("PURAX_", {"PURAX_FOLDER": ""}) == {"folder": None}
    config.read_environment("PURAX_", {"PURAX_GROUP": "a", "PURAX_GROUP_TWO": "b"})
    assert (config.group_one, config.group_two) == ("a", "b")


@pytest.mark.parametrize("variable", ["SWITCH", "LEVEL", "RATE", "MODE"])
def test_bad_environment_names_the_variable(config, variable):
    with pytest.raises(ValueError, match=f"environment variable PURAX_{variable}: "):
        config.read_environment("PURAX_", {f"PURAX_{variable}": "what?"})


def test_only_purax_variables_are_read_at_import():
    program = (
        "from purax.config import config; print(config.enable_x64, config.debug_nans, config.check_jaxprs)"
    )
    environment = os.environ | {
        "PURAX_ENABLE_X64": "true", "JAX_DEBUG_NANS": "1", "PURAX_ENABLE_CHECKS": "1", "PYTHONPATH": os.getcwd(),
    }  # fmt: skip
    environment.pop("PURAX_CHECK_JAXPRS", None)
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert result.stdout.split() == ["True", "False", "True"], result.stderr


def test_public_context_managers():
    for name in module.__all__:
        manager = getattr(module, name)
        if name in ("Config", "Flag", "TraceKey", "config"):
            continue
        flag = real_config.flags[real_config._shared.spellings.get(name, "check_tracer_leaks")]
        other = next((choice for choice in flag.choices or () if choice != flag.default), None)
        value = (
            other or {bool: not getattr(real_config, flag.name), str: "rbg", object: "cpu"}[flag.value_type]
        )
        before = real_config.values
        with manager(value):
            assert getattr(real_config, flag.name) == value, name
        assert real_config.values == before
        assert flag.help in manager.__doc__


def test_switches_default_to_on():
    with module.enable_x64(), module.disable_jit(), module.purity():
        assert real_config.enable_x64 and real_config.disable_jit and real_config.purity == "strict"
        with module.enable_x64(False):
            assert not real_config.enable_x64


def test_describe_names_every_flag():
    text = real_config.describe()
    for name in real_config.flags:
        assert f"{name} = " in text and f"PURAX_{name.upper()}" in text


def test_threads_that_end_are_forgotten(config):
    for _ in range(20):
        in_thread(lambda: config.level)
    gc.collect()
    assert len(config._shared.threads) == 1


def test_concurrent_overrides_and_updates_never_mix(config):
    def work(number):
        for _ in range(200):
            with config.override(level=number):
                if config.level != number or config.trace_key.values["level"] != number:
                    return False
        return config.level in range(100, 200)

    config.update("level", 100)
    with ThreadPoolExecutor(4) as pool:
        results = [pool.submit(work, number) for number in range(4)]
        for value in range(100, 200):
            config.update("level", value)
        assert all(result.result() for result in results)
    assert config.trace_key.values["level"] == config.level == 199


# --- coroutines


async def take_turns(*tasks):
    """Runs coroutines, each of which lets the others run wherever it waits."""
    await asyncio.gather(*(asyncio.create_task(task) for task in tasks))


def test_overrides_are_of_one_coroutine(config):
    seen = []

    async def task(number):
        for _ in range(3):
            with config.override(level=number, switch=bool(number % 2)):
                await asyncio.sleep(0)
                with config.override(rate=number / 2):
                    await asyncio.sleep(0)
                    seen.append(
                        (config.level, config.switch, config.rate, config.trace_key.values["level"])
                        == (number, bool(number % 2), number / 2, number)
                    )
                await asyncio.sleep(0)
                seen.append(config.overrides == {"level": number, "switch": bool(number % 2)})
            seen.append((config.level, config.rate, config.overrides) == (3, 0.5, {}))

    async def bystander():
        for _ in range(12):
            seen.append((config.level, config.rate, config.overrides) == (3, 0.5, {}))
            await asyncio.sleep(0)

    asyncio.run(take_turns(task(1), bystander(), task(2), task(5)))
    assert len(seen) == 39 and all(seen)
    assert not config.is_shared_by_coroutines and "level" in vars(config)


def test_coroutines_inherit_what_was_in_force_and_hand_it_to_threads(config):
    async def read():
        with config.override(rate=4.0):
            await asyncio.sleep(0)
            inside = await asyncio.to_thread(lambda: (config.level, config.rate, config.switch))
        config.update("switch", True)
        return inside, (config.level, config.rate, config.switch)

    with config.override(level=8):
        assert asyncio.run(read()) == ((8, 4.0, False), (8, 0.5, True))
    assert (config.level, config.switch) == (3, True)


def test_an_override_may_be_left_by_another_coroutine(config):
    override = config.override(level=8)

    async def enter():
        override.__enter__()
        return config.level

    async def leave():
        override.__exit__()
        return config.level

    async def both():
        return await asyncio.create_task(enter()), await asyncio.create_task(leave()), config.level

    assert asyncio.run(both()) == (8, 3, 3)
    assert not config.is_shared_by_coroutines
    with pytest.raises(RuntimeError, match="not entered"):
        override.__exit__()


def test_context_managers_of_programs_in_coroutines():
    """Devices, NaN checks and disabled compilation belong to the coroutine that asked for them."""
    found = []

    async def checked():
        with purax.debug_nans(True):
            for _ in range(3):
                await asyncio.sleep(0)
                with pytest.raises(FloatingPointError):
                    jnp.zeros(2) / jnp.zeros(2)
                found.append("nan")

    async def unchecked():
        for _ in range(4):
            x = jnp.zeros(2)
            found.append(bool(jnp.isnan(x / x).all()))
            await asyncio.sleep(0)

    async def placed(device):
        with purax.default_device(device):
            for _ in range(3):
                await asyncio.sleep(0)
                found.append(purax.device_put(1.0).device == device)

    async def uncompiled():
        values = []
        with purax.disable_jit():
            for _ in range(3):
                await asyncio.sleep(0)
                purax.jit(lambda x: values.append(type(x).__name__))(jnp.ones(2))
        found.append(not any("Tracer" in name for name in values))

    async def compiled():
        values = []
        for _ in range(3):
            await asyncio.sleep(0)
            purax.jit(lambda x: values.append(type(x).__name__))(jnp.ones(2))
        found.append(all("Tracer" in name for name in values))

    devices = purax.devices()[:2]
    asyncio.run(
        take_turns(checked(), unchecked(), placed(devices[0]), uncompiled(), placed(devices[-1]), compiled())
    )
    assert len(found) == 15 and all(found)
    assert current.trace is eager
