"""Random keys: making them, splitting them, and looking inside.

A key is a value: the same key always gives the same numbers, and new keys come from old ones by `split` and `fold_in`.
Keys are arrays of words (`PRNGKey`) or have a dtype of their own (`key`); all functions take both.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.core.limits import numpy_value
from purax.core.source import located
from purax.errors import KeyReuseError, shown
from purax.primitives.elementwise.conversion import convert_element_type
from purax.random.arguments import as_shape
from purax.random.implementations import IMPLEMENTATIONS, Implementation
from purax.random.reuse import consume, fresh
from purax.random.typed_keys import KeyDtype, random_unwrap, random_wrap
from purax.typing import ArrayLike
from purax.xla.array import from_numpy

__all__ = [
    "KeyReuseError", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
    "wrap_key_data",
]  # fmt: skip

_UINT32 = np.dtype(np.uint32)
_WORDS = ShapedArray((2,), _UINT32)
_DEFAULT = IMPLEMENTATIONS["threefry2x32"]
_WORD = 0xFFFFFFFF


class Key(NamedTuple):
    """One key or an array of keys, as the functions of this package use them: the words, and what they are for."""

    words: Any
    implementation: Implementation
    is_typed: bool

    def like(self, words: Any) -> Any:
        """Words as keys of the kind that the user gave."""
        return random_wrap(words, self.implementation.dtype) if self.is_typed else words


def find_implementation(impl: Any) -> Implementation:
    """The implementation that `impl=` means: a name, a dtype of keys, or None for the default one."""
    if impl is None:
        impl = config.default_prng_impl
    if isinstance(impl, KeyDtype):
        impl = impl.implementation
    if isinstance(impl, Implementation):
        return impl
    if not isinstance(impl, str):
        raise located(
            TypeError,
            f"impl must be the name of a generator such as 'threefry2x32', got {shown(impl)} of type "
            f"{type(impl).__name__}",
        )
    if impl not in IMPLEMENTATIONS:
        names = ", ".join(map(repr, IMPLEMENTATIONS))
        raise located(ValueError, f"impl must be one of {names}; got {shown(impl)}")
    return IMPLEMENTATIONS[impl]


def single_key(key: Any, name: str) -> Key:
    """The key that a user gave to the function `name`, which takes one key, and which consumes it."""
    found = (
        Key(key, _DEFAULT, False)
        if getattr(key, "aval", None) is _WORDS
        and config.default_prng_impl == "threefry2x32"
        and config.legacy_prng_key == "allow"
        else check_single_key(key, name)
    )
    if config.debug_key_reuse:
        consume(key, name)
    return found


def check_single_key(key: Any, name: str) -> Key:
    found = as_keys(key, name)
    shape = aval_of(found.words).shape[:-1]
    if shape:
        raise located(
            ValueError,
            f"{name} takes a single key, got an array of keys of shape {aval_of(key).shape}; "
            f"use one of them, or map over them: purax.vmap(lambda key: purax.random.{name}(key, ...))(keys)",
        )
    return found


def as_keys(key: Any, name: str) -> Key:
    """The keys that a user gave to the function `name`."""
    if isinstance(key, (Array, np.ndarray)):
        aval = aval_of(key)
        if isinstance(aval.dtype, KeyDtype):
            return Key(random_unwrap(key), IMPLEMENTATIONS[aval.dtype.implementation], True)
        implementation = find_implementation(None)
        if aval.dtype == _UINT32 and aval.shape[-1:] == (implementation.words,):
            if config.legacy_prng_key != "allow":
                _refuse_words(name)
            return Key(key, implementation, False)
        got = f"an array {aval.str_short()}"
    else:
        got = f"{shown(key):.60} of type {type(key).__name__}"
    words = find_implementation(None).words
    raise located(
        TypeError,
        f"{name}: key must be a random key, a uint32 array of shape ({words},) or a typed key; got {got}. "
        "Make one with purax.random.key(seed) or purax.random.PRNGKey(seed).",
    )


def _refuse_words(name: str) -> None:
    """Warns of a key of words, or raises, as `config.legacy_prng_key` says."""
    message = (
        f"{name} got a key of words, a uint32 array; config.legacy_prng_key asks for typed keys. "
        "Make them with purax.random.key(seed), or wrap words with purax.random.wrap_key_data(words)."
    )
    if config.legacy_prng_key == "error":
        raise located(ValueError, message)
    location = source.user_location()
    place = (location.file, location.line) if location else ("purax", 0)
    warnings.warn_explicit(message, UserWarning, *place)


# --- making keys


def PRNGKey(seed: int | ArrayLike, *, impl: str | KeyDtype | None = None) -> Array:  # noqa: N802
    """A key, as an array of words.

    Args:
        seed: An integer scalar. Without `config.enable_x64`, only the lower 32 bits of Python integers count.
        impl: The generator: 'threefry2x32' (the default), 'rbg' or 'unsafe_rbg'.

    Returns:
        A uint32 array, of shape (2,) for Threefry.

    >>> PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    implementation = find_implementation(impl)
    words = seed_words(seed, implementation, "PRNGKey")
    return random_wrap(words, implementation.dtype) if config.enable_custom_prng else words


def key(seed: int | ArrayLike, *, impl: str | KeyDtype | None = None, dtype: KeyDtype | None = None) -> Array:
    """A typed key: a scalar whose dtype says that it is a key, and for which generator.

    Args:
        seed: An integer scalar. Without `config.enable_x64`, only the lower 32 bits of Python integers count.
        impl: The generator: 'threefry2x32' (the default), 'rbg' or 'unsafe_rbg'.
        dtype: The same as a dtype of keys; see `key_dtype`.

    Returns:
        An array of shape () and a dtype such as `key<fry>`.

    >>> key(42).dtype
    key<fry>
    """
    if dtype is not None:
        if impl is not None:
            raise located(
                ValueError, f"key takes impl or dtype, not both; got {shown(impl)} and {shown(dtype)}"
            )
        if not isinstance(dtype, KeyDtype):
            raise located(
                TypeError,
                f"dtype must be a dtype of keys such as purax.random.key_dtype('rbg'), got {shown(dtype)}",
            )
        impl = dtype
    implementation = find_implementation(impl)
    return random_wrap(seed_words(seed, implementation, "key"), implementation.dtype)


def seed_words(seed: Any, implementation: Implementation, name: str) -> Any:
    """The words of the key for a seed."""
    offset = config.random_seed_offset
    if type(seed) is int and implementation is _DEFAULT:
        seed += offset
        if not -(1 << 63) <= seed < 1 << 63:
            raise located(
                OverflowError, f"{name}: seed must fit into 64 bits as a signed integer, got {seed}"
            )
        high = seed >> 32 & _WORD if config.enable_x64 else 0
        return from_numpy(np.array((high, seed & _WORD), _UINT32))
    if not isinstance(seed, (Array, np.ndarray, np.generic, bool, int)):
        raise located(
            TypeError, f"{name}: seed must be an integer, got {shown(seed):.60} of type {type(seed).__name__}"
        )
    aval = aval_of(seed)
    if dtypes.kind(aval.dtype) not in ("integer", "bool"):
        what = "a key; use it as it is" if dtypes.is_extended(aval.dtype) else f"an array {aval.str_short()}"
        raise located(TypeError, f"{name}: seed must be an integer, got {what}")
    if aval.shape:
        raise located(
            TypeError,
            f"{name}: seed must be a scalar, got an array {aval.str_short()}; map over it with purax.vmap",
        )
    if not isinstance(seed, Array):
        value = int(seed) + offset
        is_wide = config.enable_x64 and aval.dtype.itemsize == 8
        return implementation.seed(
            from_numpy(np.array(value & (1 << 64) - 1, np.uint64)) if is_wide else np.uint32(value & _WORD)
        )
    if offset:
        seed = convert_element_type(seed, np.int64) + offset
    return implementation.seed(seed)


# --- new keys from old ones


def split(key: ArrayLike, num: int | tuple[int, ...] = 2) -> Array:
    """New keys, independent of each other and of the old one, which must not be used again.

    Args:
        key: A key.
        num: How many, or the shape of an array of keys.

    Returns:
        Keys of the same kind: (num, 2) words for a key of words, an array of shape (num,) for a typed key.

    >>> split(PRNGKey(0))
    Array([[4146024105,  967050713],
           [2718843009, 1272950319]], dtype=uint32)
    """
    found = single_key(key, "split")
    if type(num) is int and num >= 0:
        shape: tuple[int, ...] = (num,)
    else:
        shape = as_shape(num, "split", "num")
    return found.like(found.implementation.split(found.words, shape))


def fold_in(key: ArrayLike, data: int | ArrayLike) -> Array:
    """A new key from a key and a number, such as the step of a loop or the number of a device.

    Args:
        key: A key. It may be used with many different `data`.
        data: An integer scalar of 32 bits.

    Returns:
        A key of the same kind.

    >>> fold_in(PRNGKey(0), 3)
    Array([2467461003, 3840466878], dtype=uint32)
    """
    found = check_single_key(key, "fold_in")
    return found.like(found.implementation.fold_in(found.words, as_word(data, "fold_in", "data")))


def as_word(data: Any, name: str, argument: str) -> Any:
    """A scalar of the user as uint32."""
    if type(data) is int:
        if not 0 <= data <= _WORD:
            raise located(OverflowError, f"{name}: {argument} must fit into uint32, got {data}")
        return np.array(data, _UINT32)
    if not isinstance(data, (Array, np.ndarray, np.generic, bool, int, float)):
        raise located(
            TypeError,
            f"{name}: {argument} must be an integer, got {shown(data):.60} of type {type(data).__name__}",
        )
    aval = aval_of(data)
    if aval.shape:
        raise located(
            TypeError,
            f"{name}: {argument} must be a scalar, got shape {aval.shape}; map over it: "
            f"purax.vmap({name}, (None, 0))(key, {argument})",
        )
    if dtypes.kind(aval.dtype) not in ("integer", "bool"):
        raise located(TypeError, f"{name}: {argument} must be an integer, got {aval.str_short()}")
    if isinstance(data, Array):
        return convert_element_type(data, _UINT32)
    return np.array(int(data) & _WORD, _UINT32)


def clone(key: ArrayLike) -> Array:
    """The same key, which may be used once more: for the check `config.debug_key_reuse` it is a new one.

    >>> clone(PRNGKey(3))
    Array([0, 3], dtype=uint32)
    """
    found = as_keys(key, "clone")
    return found.like(found.words) if found.is_typed else fresh(key)


# --- looking inside


def key_data(keys: ArrayLike) -> Array:
    """The words of keys.

    Args:
        keys: Keys of either kind; those of words are returned as they are.

    Returns:
        A uint32 array with one more axis than an array of typed keys has.

    >>> key_data(key(3))
    Array([0, 3], dtype=uint32)
    """
    words = as_keys(keys, "key_data").words
    return words if isinstance(words, Array) else from_numpy(np.array(words))


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: str | KeyDtype | None = None, dtype: KeyDtype | None = None
) -> Array:
    """Typed keys from their words; the inverse of `key_data`.

    Args:
        key_bits_array: A uint32 array whose last axis holds the words of a key.
        impl: The generator: 'threefry2x32' (the default), 'rbg' or 'unsafe_rbg'.
        dtype: The same as a dtype of keys; see `key_dtype`.

    Returns:
        An array of keys.

    >>> wrap_key_data(np.zeros((3, 2), np.uint32)).shape
    (3,)
    """
    implementation = find_implementation(dtype if impl is None else impl)
    aval = aval_of(key_bits_array) if isinstance(key_bits_array, (Array, np.ndarray)) else None
    if aval is None or aval.dtype != _UINT32 or aval.shape[-1:] != (implementation.words,):
        got = f"{shown(key_bits_array):.60}" if aval is None else aval.str_short()
        raise located(
            TypeError,
            f"wrap_key_data: key_bits_array must be a uint32 array of shape (..., {implementation.words}) for "
            f"{implementation.name}; got {got}",
        )
    words = key_bits_array if isinstance(key_bits_array, Array) else from_numpy(np.array(numpy_value(key_bits_array)))
    return random_wrap(words, implementation.dtype)


def key_impl(keys: ArrayLike) -> str:
    """The name of the generator that keys are for.

    >>> key_impl(key(0))
    'threefry2x32'
    """
    return as_keys(keys, "key_impl").implementation.name


def key_dtype(impl_spec: str | KeyDtype | None = None) -> KeyDtype:
    """The dtype of the typed keys of a generator.

    >>> key_dtype("threefry2x32")
    key<fry>
    """
    return find_implementation(impl_spec).dtype
