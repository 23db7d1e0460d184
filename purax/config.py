"""Settings of purax: one table of flags and the object `config` that holds their values.

Every thread and every coroutine sees the global values, with its own overrides on top. Reading a flag is one attribute
read of a thread-local object (about 40 ns): the values in force are kept, merged, in each thread's namespace, and
it is the writer that pays. Only while a coroutine has an override open, so that the one which runs may be another at
each read, readers ask the context (`contextvars`) whose overrides are in force. Invariant: `config.trace_key` is one
object per combination of the values of the flags marked `traced`, so that caches can compare it by identity.
"""

from __future__ import annotations

import contextlib
import contextvars
import difflib
import functools
import inspect
import logging
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from purax.errors import shown
from purax.scopes import Scope

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

    @functools.cached_property
    def spellings(self) -> tuple[str, ...]:
        """The names under which `config` has it."""
        return tuple(prefix + name for name in (self.name, *self.aliases) for prefix in ("", "jax_"))

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
            if not isinstance(value, str):  # an enum's string, or the name of one that stands for a number
                own = getattr(value, "value", value)
                value = own if isinstance(own, str) else getattr(value, "name", own)
            if value not in self.choices:
                close = difflib.get_close_matches(shown(value).strip("'"), self.choices, 1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"{self.name} must be {self._accepts()}, got {shown(value)}.{hint}")
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
        got = f"got {shown(value)} of type {type(value).__name__}"
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
_EFFORTS = ("UNKNOWN", "O0", "O1", "O2", "O3")
_LEVELS = ("NOTSET", "DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL")
_BITS = ("32", "64")

# fmt: off
FLAGS = (
    # numbers
    Flag("enable_x64", False, "Python and NumPy values keep 64 bits.", traced=True, aliases=("x64_enabled",)),
    Flag("explicit_x64_dtypes", "allow", "64 bits asked for by name, without it.", choices=_EXPLICIT, traced=True),
    Flag("default_dtype_bits", "64", "With enable_x64, bits of values of Python.", choices=_BITS, traced=True),
    Flag("allow_f16_reductions", True, "Whether `lax.reduce_sum` adds in 16 bits.", traced=True),
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
    Flag(
        "check_indices",
        True,
        "Raise where an index that is known is out of bounds.",
        traced=True,
        aliases=("check_static_indices",),
    ),
    Flag("python_control_flow", True, "Rewrite `if`, `while`, `for` and `assert` on traced values.", traced=True),
    Flag("disable_jit", False, "Run the functions under `jit` as plain Python.", traced=True),
    Flag("debug_nans", False, "Raise where a computation first returns NaN.", traced=True),
    Flag("debug_infs", False, "Raise where a computation first returns an infinity.", traced=True),
    Flag("check_tracer_leaks", False, "Raise when a traced value outlives its transformation.", traced=True),
    Flag("purity", "warn", "Reports of side effects in traces.", choices=_PURITY, traced=True),
    Flag("check_jaxprs", False, "Check the jaxprs that transformations build.", aliases=("enable_checks",)),
    Flag("log_compiles", False, "Log every trace and compilation."),
    Flag("explain_cache_misses", False, "Log why a function under `jit` was traced again, and what it took."),
    Flag("traceback_filtering", "auto", "How purax's own frames leave tracebacks.", choices=_TRACEBACKS),
    Flag("transfer_guard", None, "Guard on all transfers.", choices=_GUARDS, members=_GUARDED),
    Flag("transfer_guard_host_to_device", None, "Guard on transfers from the host.", choices=_GUARDS),
    Flag("transfer_guard_device_to_device", None, "Guard on transfers between devices.", choices=_GUARDS),
    Flag("transfer_guard_device_to_host", None, "Guard on transfers to the host.", choices=_GUARDS),
    # devices
    Flag("platforms", None, "Platforms by preference: 'cuda,cpu'.", kind=str, aliases=("platform_name",)),
    Flag("default_device", None, "Device of arrays that are not placed elsewhere.", kind=object, traced=True),
    Flag("auto_pcast", True, "Let a value vary over a mesh where another does.", traced=True),
    Flag("mesh", None, "The mesh that bare `PartitionSpec`s refer to.", kind=object, traced=True),
    Flag("num_cpu_devices", -1, "Number of CPU devices; -1 means one."),
    Flag("native_kernels", True, "Sort, scan, … on the CPU by kernels of our own, if they are built.", traced=True),
    Flag("cpu_threads", None, "Threads of the CPU engine; None means one per core.", kind=int),
    Flag("cpu_enable_async_dispatch", True, "Calls of compiled functions on the CPU return before they are done."),
    Flag("keep_freed_memory", True, "Keep up to 1 GB of the memory of freed arrays on the host for later ones."),
    Flag("memory_preallocate", False, "Let a GPU client take most of the memory at once."),
    Flag("host_size_limit", 16384, "Elements up to which eager CPU operations run on the host."),
    Flag("host_products", True, "Eager products on the host, whose sums round differently than compiled ones."),
    Flag("isolate_exported_programs", True, "Read and compile programs from files in a process of their own."),
    # compilation
    Flag("no_tracing", False, "Raise where a function would be traced again.", traced=True),
    Flag("no_execution", False, "Raise where an operation or a program would run.", traced=True),
    Flag("dump_ir_to", None, "Folder that programs are written to before they are compiled.", kind=str),
    Flag("dump_ir_modes", "stablehlo", "What is written there: 'stablehlo', 'jaxpr', or both with a comma."),
    Flag("disable_most_optimizations", False, "Compile fast to slow programs.", traced=True),
    Flag("optimization_level", "UNKNOWN", "How hard XLA tries for speed.", choices=_EFFORTS, traced=True),
    Flag("memory_fitting_level", "O2", "How hard XLA tries to fit the memory.", choices=_EFFORTS, traced=True),
    Flag("exec_time_optimization_effort", 0.0, "The same as a number from -1 to 1, for speed.", traced=True),
    Flag("memory_fitting_effort", 0.0, "The same as a number from -1 to 1, for memory.", traced=True),
    Flag("hlo_source_file_canonicalization_regex", None, "Cut out of file names in locations.", kind=str),
    Flag("logging_level", "NOTSET", "Level of the logger `purax`.", choices=_LEVELS),
    Flag("user_contexts", (), "Values of the contexts that `make_user_context` made.", kind=object, traced=True),
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


class _Entry:
    """An override that was entered.

    Attributes:
        override: what was entered.
        is_open: whether it has not been left.
        in_coroutine: whether other coroutines may run before it is left.
    """

    __slots__ = ("in_coroutine", "is_open", "override")

    def __init__(self, override: Override, in_coroutine: bool) -> None:
        self.override, self.in_coroutine, self.is_open = override, in_coroutine, True


class _ThreadState:
    """What one thread sees.

    Attributes:
        namespace: that of `config` in this thread.
        entries: the overrides that are merged into `values`.
        values: the values in force: `namespace`, or a dictionary beside it while coroutines have overrides.
    """

    __slots__ = ("namespace", "entries", "values", "__weakref__")

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.entries: tuple[_Entry, ...] = ()
        self.values = namespace

    @property
    def overrides(self) -> dict[str, Any]:
        """The values that overrides give."""
        return {name: value for x in self.entries if x.is_open for name, value in x.override.changes.items()}


class _Shared:
    """What all threads share: the flags, their global values, hooks, and the interned trace keys."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        self.flags = {flag.name: flag for flag in flags}
        self.values = {flag.name: flag.check(flag.default) for flag in self.flags.values()}
        self.spellings: dict[str, str] = {}
        for flag in self.flags.values():
            self.spellings |= dict.fromkeys(flag.spellings, flag.name)
        self.traced = tuple(flag.name for flag in self.flags.values() if flag.traced)
        self.hooks: dict[str, list[Callable[[Any], None]]] = {name: [] for name in self.flags}
        self.lock = threading.RLock()
        self.threads: weakref.WeakSet[_ThreadState] = weakref.WeakSet()
        self.trace_keys: dict[tuple[Any, ...], TraceKey] = {}
        # The overrides of the context that runs, and those of coroutines that are open in all contexts together.
        self.entered: contextvars.ContextVar[tuple[_Entry, ...]] = contextvars.ContextVar(
            "entered", default=()
        )
        self.in_coroutines: set[_Entry] = set()
        self.changed_in_coroutines: set[str] = set()

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
        """Merge the values of `names` into those of a thread; return those that changed there."""
        changed = []
        values, overrides = state.values, state.overrides
        traced = "trace_key" not in values
        for name in names:
            value = overrides.get(name, self.values[name])
            # Also if the value is there: an interrupt may have come before the key was made.
            traced = traced or self.flags[name].traced
            if name not in values or not _same(values[name], value):
                changed.append((name, value))
                values.update(dict.fromkeys(self.flags[name].spellings, value))
        if traced:
            values["trace_key"] = self.trace_key(values)
        return changed

    def follow(self, state: _ThreadState, names: Iterable[str] = ()) -> list[tuple[str, Any]]:
        """Merge the overrides of the context that runs, and the values of `names` in any case, into the values of its
        thread; return those that changed."""
        with self.lock:
            before, state.entries = state.entries, self.entered.get()
            others = {*before} ^ {*state.entries}
            return self.refresh(state, {*names, *(name for x in others for name in x.override.changes)})

    def part(self) -> None:
        """From now on, readers ask the context: the values leave the namespaces of threads."""
        for state in self.threads:
            state.values = {name: state.namespace[name] for name in (*self.spellings, "trace_key")}
            for name in state.values:
                del state.namespace[name]

    def join(self) -> None:
        """No override of a coroutine is open any more: the values go back into the namespaces."""
        for state in self.threads:
            self.refresh(state, self.changed_in_coroutines)
            state.namespace.update(state.values)
            state.values = state.namespace
        self.changed_in_coroutines.clear()

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


class Override(Scope, contextlib.ContextDecorator):
    """A context in which some flags have other values for the current thread or coroutine.

    It can be entered again, from several threads and coroutines at once, and it can decorate a function.
    """

    def __init__(self, shared: _Shared, owner: Config, changes: Mapping[str, Any]) -> None:
        self._shared = shared
        self._owner = owner
        self.changes = shared.expand(changes)
        self._open: list[_Entry] = []

    def enter(self, entered: list[Any]) -> None:
        shared, state = self._shared, self._owner._thread
        entry = _Entry(self, _in_coroutine())
        entered.append(entry)
        with shared.lock:
            self._open.append(entry)
            shared.entered.set((*shared.entered.get(), entry))
            if entry.in_coroutine:
                shared.in_coroutines.add(entry)
                shared.changed_in_coroutines.update(self.changes)
                if len(shared.in_coroutines) == 1:
                    shared.part()
            changed = shared.follow(state, self.changes)
        shared.notify(changed)

    def leave(self, entered: list[Any]) -> None:
        shared, state = self._shared, self._owner._thread
        with shared.lock:
            if not entered:
                entered.append(self._last_entry())
            entry = entered[0]
            entry.is_open = False
            if entry in self._open:
                self._open.remove(entry)
            shared.entered.set(tuple(x for x in shared.entered.get() if x is not entry))
            entered.extend(shared.follow(state, self.changes))
            if entry.in_coroutine:
                for other in shared.threads:
                    shared.refresh(other, self.changes)
                shared.in_coroutines.discard(entry)
                if not shared.in_coroutines:
                    shared.join()
        shared.notify(entered[1:])

    def close(self) -> None:
        """Leave what was entered once, if it is not left."""
        if self._open:
            self.__exit__(None, None, None)

    def _last_entry(self) -> _Entry:
        """What is left now: an asynchronous generator may be ended by another coroutine than the one that began it."""
        here = self._shared.entered.get()
        for entry in (*reversed(here), *reversed(self._open)):
            if entry.override is self and entry.is_open and (entry in here or entry.in_coroutine):
                return entry
        raise RuntimeError("this config override was not entered in the current thread or coroutine")

    def __repr__(self) -> str:
        return f"config.override({_listed(self.changes)})"


def _in_coroutine() -> bool:
    """Whether the running code may be suspended, by a coroutine that called it, before it ends."""
    if "asyncio" not in sys.modules and "trio" not in sys.modules:
        return False
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            return True
        frame = frame.f_back
    return False


class _InContext:
    """Stands for a flag in the class `Config`: what is read where the namespace of a thread does not have it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, config: Config | None, owner: type) -> Any:
        return self if config is None else config._in_force[self.name]


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
    if TYPE_CHECKING:
        trace_key: TraceKey

    def __init__(self, shared: _Shared) -> None:
        namespace = self.__dict__
        state = _ThreadState(namespace)
        namespace["_shared"] = shared
        namespace["_thread"] = state
        with shared.lock:
            for name in (*shared.spellings, "trace_key"):
                if name not in type(self).__dict__:
                    setattr(type(self), name, _InContext(name))
            if shared.in_coroutines:
                state.values = {}
            state.entries = shared.entered.get()
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
        """All values in force in this thread or coroutine, by name."""
        values = self._in_force
        return {name: values[name] for name in self._shared.flags}

    @property
    def _in_force(self) -> dict[str, Any]:
        """The values of the context that runs, under all spellings."""
        shared, state = self._shared, self._thread
        if shared.in_coroutines and shared.entered.get() is not state.entries:
            shared.notify(shared.follow(state))
        return state.values

    @property
    def overrides(self) -> dict[str, Any]:
        """The overrides in force here; a worker thread takes them over by `config.override(**overrides)`."""
        values = self._in_force
        return {name: values[name] for name in self._thread.overrides}

    @property
    def is_shared_by_coroutines(self) -> bool:
        """Whether a coroutine has an override open, which others that run in its thread must not see."""
        return bool(self._shared.in_coroutines)

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
        return self._in_force[self._shared.flag(name).name]

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
        """A context manager, or decorator, that gives flags other values in the current thread or coroutine only.

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

    def manager(new_val: Any = default) -> Override:
        if new_val is _ABSENT:
            raise TypeError(f"{name} needs a value: {flag._accepts()}")
        return config.override(**{name: new_val})

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


def checking_leaks() -> Override:
    """Context manager: raise when a traced value outlives its transformation; as `check_tracer_leaks(True)`."""
    return config.override(check_tracer_leaks=True)


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
__all__ += ["enable_checks"]
auto_pcast = _context_manager("auto_pcast")
allow_f16_reductions = _context_manager("allow_f16_reductions")
no_tracing = _context_manager("no_tracing")
no_execution = _context_manager("no_execution")


class UserContext:
    """A context of the user's, whose value compiled functions may read: another value traces them again."""

    def __init__(self, default_value: Any = None):
        self._default = default_value

    @property
    def value(self) -> Any:
        """The value in force."""
        for context, _, value in config.user_contexts:
            if context is self:
                return value
        return self._default

    def __call__(self, new_val: Any = None) -> Override:
        others = tuple(entry for entry in config.user_contexts if entry[0] is not self)
        return config.override(user_contexts=(*others, (self, _told_apart(new_val), new_val)))


def _told_apart(value: Any) -> Any:
    """What differs for values that Python calls equal, but programs do not: 1, 1.0 and True, 0.0 and -0.0."""
    return type(value), repr(value)


def make_user_context(default_value: Any = None) -> UserContext:
    """A context with a value of the user's; a function under `jit` is traced again for another value.

    Args:
      default_value: The value outside of the context; values must be hashable.

    >>> context = make_user_context("plain")
    >>> with context("fancy"):
    ...     context.value
    'fancy'
    >>> context.value
    'plain'
    """
    return UserContext(default_value)


def _set_logging_level(level: str) -> None:
    logging.getLogger("purax").setLevel(level)


config.on_change("logging_level", _set_logging_level)
if config.logging_level != "NOTSET":
    _set_logging_level(config.logging_level)
