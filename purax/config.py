"""Settings of purax: one table of flags and the object `config` that holds their values.

Every thread sees the global values, with its own overrides on top. Reading a flag is one attribute read of a
thread-local object (about 40 ns): the values in force are kept, merged, in each thread's namespace, and
it is the writer that pays. Invariant: `config.trace_key` is one object per combination of the values of the
flags marked `traced`, so that caches can compare it by identity.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["Config", "Flag", "TraceKey", "config"]


@dataclass(frozen=True)
class Flag:
    """One setting.

    Args:
      name: The attribute of `config`; its environment variable is `PURAX_<NAME>`; `jax_<name>` means it too.
      default: The value when nobody sets it. `None` means that `None` stays allowed.
      help: What it does, in one sentence.
      kind: The type of its values; taken from the default when left out. `object` accepts anything hashable.
      choices: The allowed values, if they are few.
      traced: Whether the value may change the program that a Python function is traced into.
      aliases: Other names for `update` and for environment variables.
      environment: Further environment variables, named in full.
      members: Flags that are set along with this one.
    """

    name: str
    default: Any
    help: str
    kind: type | None = None
    choices: tuple[str, ...] | None = None
    traced: bool = False
    aliases: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    @property
    def value_type(self) -> type:
        """The type of the values, apart from `None`."""
        if self.kind is not None:
            return self.kind
        return str if self.choices is not None else type(self.default)

    def check(self, value: Any) -> Any:
        """Return `value` as this flag stores it, or raise an error that says what is accepted."""
        if value is None and self.default is None:
            return None
        kind = self.value_type
        if self.choices is not None:
            value = value if isinstance(value, str) else getattr(value, "value", value)  # an enum's string
            if value not in self.choices:
                close = difflib.get_close_matches(str(value), self.choices, 1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"{self.name} must be {self._accepts()}, got {value!r}.{hint}")
            return value
        if kind is object and isinstance(value, Hashable):
            return value
        is_boolean = isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")
        if kind is bool:
            if is_boolean or (isinstance(value, int) and value in (0, 1)):
                return bool(value)
        elif is_boolean:
            pass  # True is not a number here: it is far more often a mistake for another flag
        elif kind is int and hasattr(value, "__index__"):
            return int(value)
        elif kind is float and (hasattr(value, "__index__") or hasattr(value, "__float__")):
            return float(value)
        elif kind is str and isinstance(value, str | os.PathLike):
            return os.fspath(value)
        got = f"got {value!r} of type {type(value).__name__}"
        raise TypeError(f"{self.name} must be {self._accepts()}, {got}")

    def parse(self, text: str, source: str) -> Any:
        """Read the value of this flag from the environment variable `source`."""
        word = text.strip()
        kind = self.value_type
        try:
            if self.default is None and word.lower() in ("", "none"):
                return None
            if kind is bool:
                truth = _TRUTH_WORDS.get(word.lower())
                if truth is None:
                    raise ValueError(f"{self.name} must be one of {', '.join(_TRUTH_WORDS)}, got {text!r}")
                return truth
            if kind in (int, float):
                return kind(word)
            return self.check(word)
        except ValueError as error:
            raise ValueError(f"environment variable {source}: {error}") from None

    def _accepts(self) -> str:
        if self.choices is not None:
            accepted = "one of " + ", ".join(repr(choice) for choice in self.choices)
        else:
            accepted = _KIND_WORDS[self.value_type]
        return accepted + (" or None" if self.default is None else "")


_TRUTH_WORDS = dict.fromkeys(("1", "true", "yes", "on", "t", "y"), True)
_TRUTH_WORDS |= dict.fromkeys(("0", "false", "no", "off", "f", "n", ""), False)
_KIND_WORDS = {bool: "True or False", int: "an integer", float: "a number", str: "a string"}
_KIND_WORDS[object] = "a hashable object"

_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9", "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip
_GUARDS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_TRANSFERS = ("host_to_device", "device_to_device", "device_to_host")
_GUARDED = tuple("transfer_guard_" + direction for direction in _TRANSFERS)
_TRACEBACKS = ("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames")
_RANKS = ("allow", "warn", "raise")
_LEGACY = ("allow", "warn", "error")
_PURITY = ("warn", "strict", "off")
_MIXING = ("standard", "strict")
_EXPLICIT = ("allow", "warn", "error")

# fmt: off
FLAGS = (
    # numbers
    Flag("enable_x64", False, "Python and NumPy values keep 64 bits.", traced=True, aliases=("x64_enabled",)),
    Flag("explicit_x64_dtypes", "allow", "64 bits asked for by name, without it.", choices=_EXPLICIT, traced=True),
    Flag("numpy_dtype_promotion", "standard", "Whether unlike dtypes mix.", choices=_MIXING, traced=True),
    Flag("numpy_rank_promotion", "allow", "Whether unlike ranks broadcast.", choices=_RANKS, traced=True),
    Flag("default_matmul_precision", None, "Precision of matrix products.", choices=_PRECISIONS, traced=True),
    Flag(
        "safe_gradients",
        False,
        "In reverse mode, let 0 · ∞ and 0 / 0 be 0, so that values that do not matter give no NaN.",
        traced=True,
    ),
    Flag("softmax_custom_jvp", True, "Differentiate softmax by its own, more stable rule.", traced=True),
    # random numbers
    Flag("default_prng_impl", "threefry2x32", "Generator of new random keys.", traced=True),
    Flag("threefry_partitionable", False, "Threefry streams that shard without communication.", traced=True),
    Flag("enable_custom_prng", False, "`PRNGKey` returns typed keys instead of uint32 arrays.", traced=True),
    Flag("legacy_prng_key", "allow", "Whether uint32 keys are used.", choices=_LEGACY, traced=True),
    Flag("debug_key_reuse", False, "Raise when a random key is consumed twice.", traced=True),
    Flag("random_seed_offset", 0, "Added to the seed of every new random key.", traced=True),
    # finding mistakes
    Flag("check_indices", True, "Raise where an index that is known is out of bounds.", traced=True),
    Flag("python_control_flow", True, "Rewrite `if`, `while`, `for` and `assert` on traced values.", traced=True),
    Flag("disable_jit", False, "Run the functions under `jit` as plain Python.", traced=True),
    Flag("debug_nans", False, "Raise where a computation first returns NaN.", traced=True),
    Flag("debug_infs", False, "Raise where a computation first returns an infinity.", traced=True),
    Flag("check_tracer_leaks", False, "Raise when a traced value outlives its transformation.", traced=True),
    Flag("purity", "warn", "Reports of side effects in traces.", choices=_PURITY, traced=True),
    Flag("check_jaxprs", False, "Check the jaxprs that transformations build.", aliases=("enable_checks",)),
    Flag("log_compiles", False, "Log every trace and compilation."),
    Flag("explain_cache_misses", False, "Log why a function under `jit` was traced again."),
    Flag("traceback_filtering", "auto", "How purax's own frames leave tracebacks.", choices=_TRACEBACKS),
    Flag("transfer_guard", None, "Guard on all transfers.", choices=_GUARDS, members=_GUARDED),
    Flag("transfer_guard_host_to_device", None, "Guard on transfers from the host.", choices=_GUARDS),
    Flag("transfer_guard_device_to_device", None, "Guard on transfers between devices.", choices=_GUARDS),
    Flag("transfer_guard_device_to_host", None, "Guard on transfers to the host.", choices=_GUARDS),
    # devices
    Flag("platforms", None, "Platforms by preference: 'cuda,cpu'.", kind=str, aliases=("platform_name",)),
    Flag("default_device", None, "Device of arrays that are not placed elsewhere.", kind=object, traced=True),
    Flag("mesh", None, "The mesh that bare `PartitionSpec`s refer to.", kind=object, traced=True),
    Flag("num_cpu_devices", -1, "Number of CPU devices; -1 means one."),
    Flag("native_kernels", True, "Sort, scan, … on the CPU by kernels of our own, if they are built.", traced=True),
    Flag("cpu_threads", None, "Threads of the CPU engine; None means one per core.", kind=int),
    Flag("cpu_enable_async_dispatch", True, "Calls of compiled functions on the CPU return before they are done."),
    Flag("keep_freed_memory", True, "Keep up to 1 GB of freed host memory for later arrays (glibc)."),
    Flag("memory_preallocate", False, "Let a GPU client take most of the memory at once."),
    Flag("host_size_limit", 16384, "Elements up to which eager CPU operations run on the host."),
    # compilation cache
    Flag("enable_compilation_cache", True, "Keep compiled programs on disk."),
    Flag("compilation_cache_dir", None, "Folder for them; None means the user's cache folder.", kind=str),
    Flag("compilation_cache_max_size", 2 << 30, "Bytes that folder may grow to; -1 means no limit."),
    Flag("persistent_cache_min_compile_time_secs", 0.1, "Programs that compile faster are not kept."),
)
# fmt: on


class TraceKey:
    """The values of all traced flags, as one object that is compared by identity.

    Attributes:
      values: The values by flag name.
    """

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def difference(self, other: TraceKey) -> dict[str, tuple[Any, Any]]:
        """The flags whose values differ, with both values: what a message about a cache miss needs."""
        pairs = {name: (value, other.values[name]) for name, value in self.values.items()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def __repr__(self) -> str:
        return f"TraceKey({_listed(self.values)})"


class _ThreadState:
    """What one thread sees: its overrides, and the namespace of `config` that they are merged into."""

    __slots__ = ("namespace", "overrides", "entered", "__weakref__")

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.overrides: dict[str, Any] = {}
        self.entered: list[tuple[Override, dict[str, Any]]] = []


class _Shared:
    """What all threads share: the flags, their global values, hooks, and the interned trace keys."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        self.flags = {flag.name: flag for flag in flags}
        self.values = {flag.name: flag.check(flag.default) for flag in self.flags.values()}
        self.spellings: dict[str, str] = {}
        for flag in self.flags.values():
            for name in (flag.name, *flag.aliases):
                self.spellings[name] = flag.name
                self.spellings["jax_" + name] = flag.name
        self.traced = tuple(flag.name for flag in self.flags.values() if flag.traced)
        self.hooks: dict[str, list[Callable[[Any], None]]] = {name: [] for name in self.flags}
        self.lock = threading.RLock()
        self.threads: weakref.WeakSet[_ThreadState] = weakref.WeakSet()
        self.trace_keys: dict[tuple[Any, ...], TraceKey] = {}

    def flag(self, name: str) -> Flag:
        """The flag called `name` in any of its spellings."""
        if name in self.spellings:
            return self.flags[self.spellings[name]]
        close = difflib.get_close_matches(name.removeprefix("jax_"), self.flags, 3)
        hint = f" Did you mean {' or '.join(close)}?" if close else " `config.describe()` lists all flags."
        raise AttributeError(f"unrecognized config option: {name!r}.{hint}")

    def expand(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Checked values under the flags' own names, with the members of groups spelled out."""
        result: dict[str, Any] = {}
        for name, value in changes.items():
            flag = self.flag(name)
            value = flag.check(value)
            result[flag.name] = value
            for member in flag.members:
                if member not in changes:
                    result[member] = value
        return result

    def refresh(self, state: _ThreadState, names: Iterable[str]) -> list[tuple[str, Any]]:
        """Merge the values of `names` into the namespace of a thread; return those that changed there."""
        changed = []
        traced = "trace_key" not in state.namespace
        for name in names:
            value = state.overrides.get(name, self.values[name])
            if name not in state.namespace or not _same(state.namespace[name], value):
                changed.append((name, value))
                traced = traced or self.flags[name].traced
                for spelling, target in self.spellings.items():
                    if target == name:
                        state.namespace[spelling] = value
        if traced:
            state.namespace["trace_key"] = self.trace_key(state.namespace)
        return changed

    def trace_key(self, namespace: Mapping[str, Any]) -> TraceKey:
        """The one TraceKey for the values of the traced flags in `namespace`."""
        values = tuple(namespace[name] for name in self.traced)
        key = self.trace_keys.get(values)
        if key is None:
            key = self.trace_keys.setdefault(values, TraceKey(dict(zip(self.traced, values, strict=True))))
        return key

    def notify(self, changed: Iterable[tuple[str, Any]]) -> None:
        """Call the hooks of the flags that changed."""
        for name, value in changed:
            for hook in tuple(self.hooks[name]):
                hook(value)


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _same(old: Any, new: Any) -> bool:
    return old is new or (type(old) is type(new) and old == new)


class Override(contextlib.ContextDecorator):
    """A context in which some flags have other values for the current thread.

    It can be entered again, from several threads at once, and it can decorate a function.
    """

    def __init__(self, shared: _Shared, owner: Config, changes: Mapping[str, Any]) -> None:
        self._shared = shared
        self._owner = owner
        self._changes = shared.expand(changes)

    def __enter__(self) -> None:
        shared, state = self._shared, self._owner._thread
        with shared.lock:
            saved = {name: state.overrides.get(name, _ABSENT) for name in self._changes}
            state.overrides.update(self._changes)
            state.entered.append((self, saved))
            changed = shared.refresh(state, self._changes)
        try:
            shared.notify(changed)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        shared, state = self._shared, self._owner._thread
        with shared.lock:
            for position in range(len(state.entered) - 1, -1, -1):
                if state.entered[position][0] is self:
                    break
            else:
                raise RuntimeError("this config override was not entered in the current thread")
            _, saved = state.entered.pop(position)
            for name, value in saved.items():
                if value is _ABSENT:
                    state.overrides.pop(name, None)
                else:
                    state.overrides[name] = value
            changed = shared.refresh(state, saved)
        shared.notify(changed)

    def __repr__(self) -> str:
        return f"config.override({_listed(self._changes)})"


_ABSENT = object()


class Config(threading.local):
    """The settings in force, as attributes.

    >>> config.numpy_rank_promotion
    'allow'
    >>> with config.override(numpy_rank_promotion="raise"):
    ...     config.numpy_rank_promotion
    'raise'

    `threading.local` calls `__init__` once in every thread that uses the object. No `__getattr__`: it
    would double the time of every read, so other spellings of a flag are stored beside it.
    """

    _shared: _Shared
    _thread: _ThreadState
    trace_key: TraceKey

    def __init__(self, shared: _Shared) -> None:
        namespace = self.__dict__
        state = _ThreadState(namespace)
        namespace["_shared"] = shared
        namespace["_thread"] = state
        with shared.lock:
            shared.refresh(state, shared.flags)
            shared.threads.add(state)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None:
        flag = self._shared.flag(name)
        raise AttributeError(
            f"config.{name} cannot be assigned; write config.update({flag.name!r}, {value!r}), or "
            f"`with config.override({flag.name}={value!r}):` for the current thread"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"config.{name} cannot be deleted")

    def __repr__(self) -> str:
        return f"<config: {_listed(self.values)}>"

    @property
    def flags(self) -> Mapping[str, Flag]:
        """All flags, by name."""
        return dict(self._shared.flags)

    @property
    def values(self) -> dict[str, Any]:
        """All values in force in this thread, by name."""
        namespace = self.__dict__
        return {name: namespace[name] for name in self._shared.flags}

    @property
    def overrides(self) -> dict[str, Any]:
        """The overrides of this thread; a worker thread takes them over by `config.override(**overrides)`."""
        return dict(self._thread.overrides)

    def describe(self) -> str:
        """A table of all flags: value in force, environment variable, meaning."""
        lines = []
        for name, flag in self._shared.flags.items():
            lines.append(f"{name} = {self.values[name]!r}  [PURAX_{name.upper()}]\n    {flag.help}")
            if flag.choices is not None:
                lines.append(f"    {flag._accepts()}")
        return "\n".join(lines)

    def read(self, name: str) -> Any:
        """The value in force of the flag called `name` in any of its spellings.

        >>> config.read("jax_debug_nans")
        False
        """
        return self.__dict__[self._shared.flag(name).name]

    def update(self, name: str, value: Any) -> None:
        """Set a flag for all threads that do not override it.

        Args:
          name: Name of the flag; jax's spelling `jax_<name>` is the same flag.
          value: The new value.

        Raises:
          AttributeError: There is no such flag.
          TypeError, ValueError: The flag does not accept the value.

        >>> config.update("jax_log_compiles", False)
        >>> config.update("purity", "of")
        Traceback (most recent call last):
            ...
        ValueError: purity must be one of 'warn', 'strict', 'off', got 'of'. Did you mean 'off'?
        """
        shared = self._shared
        changes = shared.expand({name: value})
        with shared.lock:
            previous = {flag: shared.values[flag] for flag in changes}
        changed = self._set_global(changes)
        try:
            shared.notify(changed)
        except BaseException:
            self._set_global(previous)  # a hook that refuses a value leaves the old one in force
            raise

    def _set_global(self, changes: Mapping[str, Any]) -> list[tuple[str, Any]]:
        shared, own = self._shared, self._thread
        with shared.lock:
            shared.values.update(changes)
            changed = shared.refresh(own, changes)
            for state in shared.threads:
                if state is not own:
                    shared.refresh(state, changes)
        return changed

    def override(self, **changes: Any) -> Override:
        """A context manager, or decorator, that gives flags other values in the current thread only.

        Args:
          changes: New values by flag name.

        Returns:
          A context manager that puts the previous values back.

        >>> with config.override(enable_x64=True, debug_nans=True):
        ...     config.enable_x64, config.debug_nans
        (True, True)
        >>> config.enable_x64
        False
        """
        return Override(self._shared, self, changes)

    def on_change(self, name: str, callback: Callable[[Any], None]) -> Callable[[], None]:
        """Call `callback(value)` whenever the value in force changes in the thread that changes it.

        Args:
          name: Name of the flag.
          callback: Receives the new value; when it raises during `update`, the old value is put back.

        Returns:
          A function that removes the callback.

        >>> seen = []
        >>> remove = config.on_change("log_compiles", seen.append)
        >>> with config.override(log_compiles=True):
        ...     pass
        >>> remove()
        >>> seen
        [True, False]
        """
        hooks = self._shared.hooks[self._shared.flag(name).name]
        hooks.append(callback)

        def remove() -> None:
            if callback in hooks:
                hooks.remove(callback)

        return remove

    def read_environment(
        self, prefix: str = "PURAX_", environment: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Set flags from the environment variables that start with `prefix`.

        Args:
          prefix: `"PURAX_"`, or `"JAX_"` to honour the variables that jax reads.
          environment: The variables; those of the process when left out.

        Returns:
          The values that were set, by flag name.

        >>> config.read_environment("JAX_", {"JAX_LOG_COMPILES": "0"})
        {'log_compiles': False}
        """
        variables = os.environ if environment is None else environment
        found: dict[str, Any] = {}
        for flag in self._shared.flags.values():
            names = [prefix + name.upper() for name in (flag.name, *flag.aliases)]
            for variable in (*names, *(flag.environment if prefix == "PURAX_" else ())):
                if variable in variables:
                    found[flag.name] = flag.parse(variables[variable], variable)
                    break
        for name, value in found.items():
            self.update(name, value)
        return found


config = Config(_Shared(FLAGS))
config.read_environment()


def _context_manager(name: str, default: Any = _ABSENT) -> Callable[..., Override]:
    """The public context manager of one flag."""
    flag = config.flags[name]

    def manager(new_val: Any) -> Override:
        return config.override(**{name: new_val})

    manager.__defaults__ = () if default is _ABSENT else (default,)
    manager.__name__ = manager.__qualname__ = name
    manager.__doc__ = (
        f"Context manager: set the flag `{name}` for the current thread.\n\n{flag.help}\n\n"
        f"Args:\n  new_val: {flag._accepts()}.\n\n"
        "Returns:\n  A context manager that puts the previous value back.\n"
    )
    __all__.append(name)
    return manager


enable_x64 = _context_manager("enable_x64", True)
numpy_dtype_promotion = _context_manager("numpy_dtype_promotion")
numpy_rank_promotion = _context_manager("numpy_rank_promotion")
default_matmul_precision = _context_manager("default_matmul_precision")
safe_gradients = _context_manager("safe_gradients", True)
softmax_custom_jvp = _context_manager("softmax_custom_jvp", True)
default_prng_impl = _context_manager("default_prng_impl")
threefry_partitionable = _context_manager("threefry_partitionable", True)
enable_custom_prng = _context_manager("enable_custom_prng", True)
legacy_prng_key = _context_manager("legacy_prng_key")
debug_key_reuse = _context_manager("debug_key_reuse", True)


def disable_jit(disable: bool = True) -> Override:
    """Context manager: set the flag `disable_jit` for the current thread.

    Run the functions under `jit` as plain Python.

    Args:
      disable: False puts compilation back on.

    Returns:
      A context manager that puts the previous value back.
    """
    return config.override(disable_jit=disable)


__all__.append("disable_jit")
debug_nans = _context_manager("debug_nans", True)
debug_infs = _context_manager("debug_infs", True)
check_tracer_leaks = _context_manager("check_tracer_leaks", True)
checking_leaks = check_tracer_leaks
purity = _context_manager("purity", "strict")
check_jaxprs = _context_manager("check_jaxprs", True)
enable_checks = check_jaxprs
log_compiles = _context_manager("log_compiles", True)
explain_cache_misses = _context_manager("explain_cache_misses", True)
transfer_guard = _context_manager("transfer_guard")
transfer_guard_host_to_device = _context_manager("transfer_guard_host_to_device")
transfer_guard_device_to_device = _context_manager("transfer_guard_device_to_device")
transfer_guard_device_to_host = _context_manager("transfer_guard_device_to_host")
default_device = _context_manager("default_device")
__all__ += ["checking_leaks", "enable_checks"]
