"""The dtypes of arrays: names, categories, defaults, and how they mix.

A dtype is a NumPy dtype (ml_dtypes adds the small ones), `float0`, or an `ExtendedDtype`. Values that carry
no explicit choice (Python scalars, NumPy arrays) have 32 bits unless `config.enable_x64` is set; a dtype that is
asked for by name, and the dtype of an array that was made so, is kept. `config.explicit_x64_dtypes` can make names
mean 32 bits too: `as_dtype` reads what a user writes, `as_exact_dtype` what is known to be meant. Invariant: every
function here returns one object per dtype, so that dtypes can be compared by identity.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from purax.config import config
from purax.core import promotion, source
from purax.core.limits import shallow
from purax.core.promotion import TypePromotionError
from purax.core.source import located
from purax.errors import shown

__all__ = [
    "ALL_DTYPES", "ExtendedDtype", "TypePromotionError", "as_available_dtype", "as_dtype",
    "as_exact_dtype", "can_cast",
    "canonicalize_dtype", "default_complex", "default_float", "default_int", "default_uint", "dtype_and_weak",
    "dtype_name", "extended", "finfo", "float0", "iinfo", "is_boolean", "is_complex", "is_extended",
    "is_floating", "is_inexact", "is_integer", "is_unsigned", "is_weakly_typed", "isdtype", "issubdtype",
    "itemsize_bits", "kind", "lattice_result_type", "prng_key", "promote_pair", "promote_types",
    "python_scalar_dtype", "result_type", "scalar_type_of", "short_name", "to_complex_dtype",
    "to_inexact_dtype", "to_numeric_dtype", "to_real_dtype",
]  # fmt: skip


# --- the dtypes

float0 = np.dtype([("float0", np.void, 0)])  # of tangents of integers: it has no content


class extended(np.generic):  # noqa: N801
    """The category of all extended dtypes."""


class prng_key(extended):  # noqa: N801
    """The category of the dtypes of random keys."""


class ExtendedDtype:
    """A dtype whose elements are small arrays of a NumPy dtype.

    Attributes:
      type: The category, a subclass of `extended`.
      name: The name in jaxprs and messages.
      element_shape: The shape of the array that represents one element.
      physical_dtype: The dtype of that array.
    """

    type: type = extended
    name: str = "extended"
    kind: str = "x"
    element_shape: tuple[int, ...] = ()
    physical_dtype: np.dtype = np.dtype(np.uint32)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return math.prod(self.element_shape) * self.physical_dtype.itemsize

    def __repr__(self) -> str:
        return self.name


ALL_DTYPES: tuple[np.dtype, ...] = (
    promotion.BOOL,
    *promotion.SMALL_SIGNED, *promotion.SIGNED, *promotion.SMALL_UNSIGNED, *promotion.UNSIGNED,
    *promotion.SMALL_FLOATS, *promotion.FLOATS, *promotion.COMPLEXES,
)  # fmt: skip
_BOOL = promotion.BOOL
_INT32, _INT64 = promotion.SIGNED[2:]
_UINT32, _UINT64 = promotion.UNSIGNED[2:]
_FLOAT32, _FLOAT64 = promotion.FLOATS[2:]
_COMPLEX64, _COMPLEX128 = promotion.COMPLEXES
_SUPPORTED = "bool, integers of 1 to 64 bits, floats of 4 to 64 bits, complex64 and complex128"

_KINDS: dict[Any, str] = {_BOOL: "b", float0: "V"}
_KINDS |= dict.fromkeys(promotion.SIGNED + promotion.SMALL_SIGNED, "i")
_KINDS |= dict.fromkeys(promotion.UNSIGNED + promotion.SMALL_UNSIGNED, "u")
_KINDS |= dict.fromkeys(promotion.FLOATS + promotion.SMALL_FLOATS, "f")
_KINDS |= dict.fromkeys(promotion.COMPLEXES, "c")

_NARROW = {_INT64: _INT32, _UINT64: _UINT32, _FLOAT64: _FLOAT32, _COMPLEX128: _COMPLEX64}
# Indexed by `config.enable_x64`, here and below: the dtype of a value that made no explicit choice.
_IMPLICIT = {dtype: (_NARROW.get(dtype, dtype), dtype) for dtype in (*ALL_DTYPES, float0)}

_PYTHON: dict[type, tuple[np.dtype, np.dtype]] = {
    bool: (_BOOL, _BOOL),
    int: (_INT32, _INT64),
    float: (_FLOAT32, _FLOAT64),
    complex: (_COMPLEX64, _COMPLEX128),
}
# The (dtype, weak_type) of scalars, by their class.
_SCALARS: dict[type, tuple[tuple[np.dtype, bool], ...]] = {
    cls: tuple((dtype, cls is not bool) for dtype in pair) for cls, pair in _PYTHON.items()
} | {dtype.type: tuple((implicit, False) for implicit in _IMPLICIT[dtype]) for dtype in ALL_DTYPES}

_EXPLICIT: dict[Any, np.dtype] = {float0: float0}
_EXPLICIT |= {dtype: dtype for dtype in ALL_DTYPES}
_EXPLICIT |= {dtype.type: dtype for dtype in ALL_DTYPES}
_EXPLICIT |= {dtype.name: dtype for dtype in ALL_DTYPES}
_UP_TO_32_BITS = {key: dtype for key, dtype in _EXPLICIT.items() if dtype not in _NARROW}
_DEFAULTS: dict[Any, tuple[np.dtype, np.dtype]] = {None: _PYTHON[float], "uint": (_UINT32, _UINT64)}
_DEFAULTS |= _PYTHON
_DEFAULTS |= {cls.__name__: pair for cls, pair in _PYTHON.items()}


def _set_default_bits(bits: str) -> None:
    """With `enable_x64`, values of Python have `bits` bits; the tables are of the whole process."""
    for cls, (narrow, _) in list(_PYTHON.items()):
        pair = (narrow, narrow) if bits == "32" else (narrow, _WIDE.get(narrow, narrow))
        _PYTHON[cls] = pair
        _DEFAULTS[cls] = _DEFAULTS[cls.__name__] = pair
        _SCALARS[cls] = tuple((dtype, cls is not bool) for dtype in pair)
    _DEFAULTS[None] = _PYTHON[float]


_WIDE = {narrow: wide for wide, narrow in _NARROW.items()}
config.on_change("default_dtype_bits", _set_default_bits)

# --- defaults and parsing


def default_int() -> np.dtype:
    """The dtype of Python integers: int32, or int64 when `config.enable_x64` is set."""
    return _PYTHON[int][config.enable_x64]


def default_uint() -> np.dtype:
    """The unsigned counterpart of `default_int`."""
    return (_UINT32, _UINT64)[config.enable_x64]


def default_float() -> np.dtype:
    """The dtype of Python floats: float32, or float64 when `config.enable_x64` is set."""
    return _PYTHON[float][config.enable_x64]


def default_complex() -> np.dtype:
    """The dtype of Python complex numbers: complex64, or complex128 when `config.enable_x64` is set."""
    return _PYTHON[complex][config.enable_x64]


def python_scalar_dtype(scalar: Any) -> np.dtype:
    """The dtype of a Python scalar, or of its class, in the current x64 mode.

    >>> python_scalar_dtype(float), python_scalar_dtype(True)
    (dtype('float32'), dtype('bool'))
    """
    cls = scalar if isinstance(scalar, type) else type(scalar)
    for candidate in (cls, *cls.__mro__):
        if candidate in _PYTHON:
            return _PYTHON[candidate][config.enable_x64]
    raise TypeError(f"{shown(scalar)} is not a Python bool, int, float or complex")


def as_dtype(dtype: Any, name: str = "dtype") -> Any:
    """The dtype that a user asks for, with as many bits as the user asks for.

    Where `config.explicit_x64_dtypes` is not "allow" and `config.enable_x64` is not set, as in programs written for
    JAX, a dtype of 64 bits becomes its counterpart of 32, with a warning, or is refused.

    Args:
      dtype: A NumPy dtype, a scalar type such as `np.float32`, a name, or an `ExtendedDtype`. The Python
        types `bool`, `int`, `float`, `complex` and their names mean the default dtypes, None the default float.
      name: The name of the argument, for the error message.

    Returns:
      A NumPy dtype or an `ExtendedDtype`.

    Raises:
      TypeError: It is not a dtype of numbers.
      ValueError: `config.explicit_x64_dtypes` is "error", and it has 64 bits.

    >>> as_dtype("float64"), as_dtype(float)
    (dtype('float64'), dtype('float32'))
    >>> with config.override(explicit_x64_dtypes="error"):
    ...     as_dtype("float64")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Explicitly requested dtype float64 is not available...
    """
    if dtype.__class__ is tuple:
        shallow(dtype)  # which is hashed
    try:
        if dtype in _UP_TO_32_BITS:
            return _UP_TO_32_BITS[dtype]
    except TypeError:  # unhashable
        pass
    exact = as_exact_dtype(dtype, name)
    if config.explicit_x64_dtypes == "allow" or as_available_dtype(exact) is exact:
        return exact
    return _narrowed(exact)


def as_exact_dtype(dtype: Any, name: str = "dtype") -> Any:
    """As `as_dtype`, for dtypes that were chosen before, or by purax: they keep their bits under all settings.

    >>> with config.override(explicit_x64_dtypes="error"):
    ...     as_exact_dtype("float64")
    dtype('float64')
    """
    if dtype.__class__ is tuple:
        shallow(dtype)  # which is hashed
    try:
        if dtype in _EXPLICIT:
            return _EXPLICIT[dtype]
        if dtype in _DEFAULTS:
            return _DEFAULTS[dtype][config.enable_x64]
    except TypeError:  # unhashable
        pass
    if isinstance(dtype, ExtendedDtype):
        return dtype
    try:
        return _parse_dtype(dtype, name)
    except TypeError as error:
        raise source.with_location(error) from None


def as_available_dtype(dtype: Any) -> Any:
    """The dtype of a value that has `dtype`: 32 bits for 64 where these cannot be asked for; no warning.

    >>> with config.override(explicit_x64_dtypes="warn"):
    ...     as_available_dtype(np.dtype("float64"))
    dtype('float32')
    """
    if dtype in _NARROW and not config.enable_x64 and config.explicit_x64_dtypes != "allow":
        return _NARROW[dtype]
    return dtype


def _narrowed(dtype: np.dtype) -> np.dtype:
    """The counterpart of 32 bits, with a warning at the user's line, or an error."""
    narrow = _NARROW[dtype]
    message = f"Explicitly requested dtype {dtype} is not available"
    advice = "To have it, set the option jax_enable_x64 or the environment variable JAX_ENABLE_X64."
    if config.explicit_x64_dtypes == "error":
        raise located(ValueError, f"{message}. {advice}")
    location = source.user_location()
    place = (location.file, location.line) if location else ("purax", 0)
    warnings.warn_explicit(
        f"{message}, and will be truncated to dtype {narrow}. {advice}", UserWarning, *place
    )
    return narrow


def _parse_dtype(dtype: Any, name: str) -> Any:
    if not isinstance(dtype, (np.dtype, str, type)) and hasattr(dtype, "shape"):
        raise TypeError(f"{name} must be a dtype, got an array; write {name}=x.dtype")
    own = getattr(dtype, "dtype", None)
    if isinstance(own, np.dtype):  # a scalar type, such as those of purax.numpy
        return as_exact_dtype(own, name)
    if isinstance(dtype, type) and dtype in _ABSTRACT:
        example = "int32" if "int" in dtype.__name__ else "float32"
        raise TypeError(
            f"{name} must be one dtype, got the category np.{dtype.__name__}; write for example {name}=np.{example}"
        )
    try:
        parsed = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError, RecursionError):
        hint = ""
        if isinstance(dtype, str):
            close = difflib.get_close_matches(dtype, [known.name for known in ALL_DTYPES], 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
        raise TypeError(
            f"{name} must be a dtype such as 'float32', np.int32 or float, got {shown(dtype)}.{hint}"
        ) from None
    known = _EXPLICIT.get(parsed)
    if known is None:
        known = _EXPLICIT.get(parsed.newbyteorder("="))  # arrays live in native byte order
    if known is None:
        raise TypeError(f"{name} {str(parsed)!r} is not supported; supported are {_SUPPORTED}")
    return known


_ABSTRACT = frozenset(
    (np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
     np.complexfloating, np.flexible, np.character)
)  # fmt: skip


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype of a value that was not asked for by name: without `config.enable_x64`, 64 bits become 32.

    Args:
      dtype: Anything that `as_dtype` accepts.
      allow_extended_dtype: Whether an `ExtendedDtype` is returned as it is instead of raising an error.

    Returns:
      A NumPy dtype.

    >>> canonicalize_dtype("int64")
    dtype('int32')
    >>> with config.override(enable_x64=True):
    ...     canonicalize_dtype("int64")
    dtype('int64')
    """
    if not isinstance(dtype, np.dtype) or dtype not in _IMPLICIT:
        dtype = as_exact_dtype(dtype)
        if isinstance(dtype, ExtendedDtype):
            if allow_extended_dtype:
                return dtype
            raise ValueError(f"the extended dtype {dtype.name} has no canonical NumPy dtype")
    return _IMPLICIT[dtype][config.enable_x64]


# --- the dtypes of values


def dtype_and_weak(value: Any) -> tuple[Any, bool]:
    """The dtype of a value, and whether it is weak.

    Args:
      value: An array or tracer, whose own dtype is kept; a NumPy array or scalar, whose dtype is
        canonicalized; or a Python scalar, whose dtype is weak.

    Returns:
      `(dtype, weak_type)`.

    Raises:
      TypeError: It is not an array or a number.

    >>> dtype_and_weak(1.0), dtype_and_weak(np.float64(1.0))
    ((dtype('float32'), True), (dtype('float32'), False))
    """
    found = _value_dtype(value)
    if found is None:
        raise _not_a_value(value)
    return found


def _value_dtype(value: Any) -> tuple[Any, bool] | None:
    """As `dtype_and_weak`, but None when it is no value; the most frequent classes come first."""
    cls = value.__class__
    if cls in _SCALARS:
        return _SCALARS[cls][config.enable_x64]
    if cls is not np.ndarray:
        try:
            weak_type = value.weak_type
        except AttributeError:
            pass
        else:
            if weak_type.__class__ is bool:
                return value.dtype, weak_type
        if isinstance(value, (type, str, np.dtype, ExtendedDtype)):
            return None
        if isinstance(value, (int, float, complex)):
            return python_scalar_dtype(value), True
        if hasattr(value, "__jax_array__"):
            return dtype_and_weak(value.__jax_array__())
        if not (hasattr(value, "dtype") and hasattr(value, "shape")):
            return None
    return _canonical_value_dtype(value), False


def _canonical_value_dtype(value: Any) -> Any:
    dtype = value.dtype
    if dtype in _IMPLICIT:
        return _IMPLICIT[dtype][config.enable_x64]
    if isinstance(dtype, ExtendedDtype):
        return dtype
    return canonicalize_dtype(as_exact_dtype(dtype, f"{type(value).__name__} of dtype"))


def _not_a_value(value: Any) -> TypeError:
    kind = type(value).__name__
    if isinstance(value, (list, tuple)):
        return TypeError(f"a {kind} is not an array; write jnp.asarray(x) for x = {shown(value):.60}")
    return TypeError(f"{shown(value):.60} of type {kind} is not an array or a number")


def is_weakly_typed(value: Any) -> bool:
    """Whether a value has a weak dtype, as Python numbers have.

    >>> is_weakly_typed(1.0), is_weakly_typed(np.float32(1.0))
    (True, False)
    """
    if value.__class__ in _SCALARS:
        return _SCALARS[value.__class__][0][1]
    weak = getattr(value, "weak_type", None)
    return isinstance(value, (int, float, complex)) if weak is None else bool(weak)


def scalar_type_of(x: Any) -> type:
    """The Python type of the elements of `x`: bool, int, float or complex.

    >>> scalar_type_of(np.zeros(3, "int8"))
    <class 'int'>
    """
    dtype, _ = dtype_and_weak(x)
    cls = _PYTHON_KINDS.get(_KINDS.get(dtype, ""))
    if cls is None:
        raise TypeError(f"values of dtype {dtype} have no Python scalar type")
    return cls


_PYTHON_KINDS = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_WEAK_NODES = {dtype: _PYTHON_KINDS[code] for dtype, code in _KINDS.items() if code in "iufc"}


# --- promotion

_promotions: dict[tuple[Any, ...], tuple[Any, bool]] = {}


def promote_pair(dtype1: Any, weak1: bool, dtype2: Any, weak2: bool) -> tuple[Any, bool]:
    """The dtype, and whether it is weak, of an operation on two operands.

    >>> promote_pair(np.dtype("int8"), False, np.dtype("int32"), True)
    (dtype('int8'), False)
    """
    if dtype1 is dtype2 and not (weak1 or weak2):
        return dtype1, False
    key = (config.trace_key, dtype1, weak1, dtype2, weak2)  # the flags that matter are traced ones
    result = _promotions.get(key)
    if result is None:
        result = _promotions[key] = _promote([(dtype1, weak1), (dtype2, weak2)])
    return result


def _promote(pairs: list[tuple[Any, bool]]) -> tuple[Any, bool]:
    """The (dtype, weak_type) of an operation on operands of these."""
    nodes: dict[Any, None] = {}
    for dtype, weak in pairs:
        node = _WEAK_NODES.get(dtype) if weak else None
        nodes[_EXPLICIT.get(dtype, dtype) if node is None else node] = None
    if len(nodes) > 1:
        for node in nodes:
            if isinstance(node, ExtendedDtype) or node is float0:
                others = " and ".join(dtype_name(dtype) for dtype, _ in pairs)
                raise TypePromotionError(f"{dtype_name(node)} does not mix with other dtypes, got {others}")
        strict = config.numpy_dtype_promotion == "strict"
        node = promotion.least_upper_bound(nodes, config.enable_x64, strict)
    else:
        (node,) = nodes
    if isinstance(node, type):
        return _PYTHON[node][config.enable_x64], True
    return node, False


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """The dtype, and whether it is weak, of an operation on `args`: values, dtypes, or Python scalar types.

    >>> lattice_result_type(np.zeros(3, "int8"), 1.5)
    (dtype('float32'), True)
    """
    if not args:
        raise ValueError("result_type needs at least one value or dtype")
    pairs = [_value_dtype(arg) or _dtype_argument(arg, as_dtype) for arg in args]
    if len(pairs) == 2:
        return promote_pair(*pairs[0], *pairs[1])
    return _promote(pairs)


def _dtype_argument(arg: Any, read: Callable[[Any], Any] = as_exact_dtype) -> tuple[Any, bool]:
    """The node of an argument that is a dtype: a Python type is weak, all else is explicit."""
    if isinstance(arg, type) and arg in _PYTHON:
        return _PYTHON[arg][config.enable_x64], arg is not bool
    if isinstance(
        getattr(arg, "dtype", None), np.dtype
    ):  # `jnp.float64`, which names a kind: it asks for no bits
        exact = as_exact_dtype(arg)
        return (exact if read is as_exact_dtype else as_available_dtype(exact)), False
    if arg is None or isinstance(arg, (type, str, np.dtype, ExtendedDtype)) or hasattr(arg, "dtype"):
        return read(arg), False
    raise _not_a_value(arg)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of an operation on `args`, by JAX's promotion lattice.

    Args:
      args: Values and dtypes. Explicit dtypes keep their 64 bits, as do arrays that were made so.
      return_weak_type_flag: Whether to return `(dtype, weak_type)`.

    Returns:
      A dtype, or the pair.

    >>> result_type(np.int16(1), np.uint8(1), 1), result_type("bfloat16", "float16")
    (dtype('int16'), dtype('float32'))
    """
    result = lattice_result_type(*args)
    return result if return_weak_type_flag else result[0]


def promote_types(a: Any, b: Any) -> Any:
    """The dtype that two dtypes promote to.

    Args:
      a: A dtype; `int`, `float` and `complex` mean weak dtypes.
      b: Another.

    Returns:
      A dtype.

    Raises:
      TypePromotionError: They do not mix.

    >>> promote_types("int32", "float16"), promote_types("uint8", "int8")
    (dtype('float16'), dtype('int16'))
    """
    return promote_pair(*_dtype_argument(a), *_dtype_argument(b))[0]


# --- categories


def is_boolean(dtype: Any) -> bool:
    """Whether it is bool."""
    return _KINDS.get(dtype) == "b"


def is_integer(dtype: Any) -> bool:
    """Whether it is a signed or unsigned integer dtype."""
    return _KINDS.get(dtype) in ("i", "u")


def is_unsigned(dtype: Any) -> bool:
    """Whether it is an unsigned integer dtype."""
    return _KINDS.get(dtype) == "u"


def is_floating(dtype: Any) -> bool:
    """Whether it is a real floating point dtype."""
    return _KINDS.get(dtype) == "f"


def is_complex(dtype: Any) -> bool:
    """Whether it is a complex dtype."""
    return _KINDS.get(dtype) == "c"


def is_inexact(dtype: Any) -> bool:
    """Whether it is a real or complex floating point dtype: one that can be differentiated."""
    return _KINDS.get(dtype) in ("f", "c")


_FAMILIES = {"b": "bool", "i": "integer", "u": "integer", "f": "float", "c": "complex", "V": "float0"}
_FAMILY = {dtype: _FAMILIES[code] for dtype, code in _KINDS.items()}


def kind(dtype: Any) -> str:
    """Which family a dtype is of: "bool", "integer", "float", "complex", "extended" or "float0".

    >>> kind(np.dtype("uint8")), kind(np.dtype("float32"))
    ('integer', 'float')
    """
    return _FAMILY.get(dtype, "extended")


def is_extended(dtype: Any) -> bool:
    """Whether it is an extended dtype, such as that of random keys."""
    return isinstance(dtype, ExtendedDtype)


# The scalar types of ml_dtypes are not in NumPy's hierarchy of abstract types.
_PARENTS: dict[type, type] = {
    dtype.type: parent
    for small, parent in (
        (promotion.SMALL_SIGNED, np.signedinteger),
        (promotion.SMALL_UNSIGNED, np.unsignedinteger),
        ((*promotion.SMALL_FLOATS, promotion.BFLOAT16), np.floating),
    )
    for dtype in small
}


def _scalar_class(dtype: Any) -> type:
    if isinstance(dtype, ExtendedDtype):
        return dtype.type
    if isinstance(dtype, type) and issubclass(dtype, np.generic):
        return dtype
    own = getattr(dtype, "dtype", None)
    if isinstance(own, (np.dtype, ExtendedDtype)):
        return own.type
    return _numpy_dtype(dtype).type


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the dtype, or category, `arg1` belongs to `arg2`; as `numpy.issubdtype`, for all dtypes.

    Args:
      arg1: A dtype or a category.
      arg2: A dtype or a category: `np.number`, `np.integer`, `np.floating`, …, `extended`, `prng_key`.

    Returns:
      A bool.

    >>> issubdtype("bfloat16", np.floating), issubdtype("int4", np.inexact)
    (True, False)
    """
    lower, upper = _scalar_class(arg1), _scalar_class(arg2)
    return issubclass(lower, upper) or issubclass(_PARENTS.get(lower, lower), upper)


_KIND_NAMES = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind, as in the array API standard.

    Args:
      dtype: A dtype.
      kind: A dtype; or 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
        'complex floating' or 'numeric'; or a tuple of these, any of which may match.

    Returns:
      A bool.

    >>> isdtype(np.float32, "real floating"), isdtype(np.float32, ("bool", "integral"))
    (True, False)
    """
    own = as_exact_dtype(dtype)
    for option in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(option, str) and option in _KIND_NAMES:
            if _KINDS.get(own, "x") in _KIND_NAMES[option]:
                return True
        elif isinstance(option, str) and option not in _EXPLICIT and option not in _DEFAULTS:
            names = ", ".join(map(repr, _KIND_NAMES))
            raise ValueError(f"kind must be a dtype or one of {names}, got {shown(option)}")
        elif as_exact_dtype(option, "kind") is own:
            return True
    return False


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether values of one dtype can be cast to another, by NumPy's rules.

    Args:
      from_: A dtype or an array.
      to: A dtype.
      casting: 'no', 'equiv', 'safe', 'same_kind' or 'unsafe'.

    Returns:
      A bool.

    >>> can_cast("bfloat16", "float32"), can_cast("float32", "int32")
    (True, False)
    """
    if hasattr(from_, "weak_type"):
        from_ = from_.dtype
    if isinstance(from_, ExtendedDtype) or isinstance(to, ExtendedDtype):
        return bool(from_ == to)
    return bool(np.can_cast(from_, _numpy_dtype(to), casting))


def _numpy_dtype(dtype: Any) -> np.dtype:
    try:
        return np.dtype(dtype)
    except RecursionError:
        raise TypeError(f"{shown(dtype)} is not a dtype") from None


finfo: Any = ml_dtypes.finfo
iinfo: Any = ml_dtypes.iinfo


# --- related dtypes


def to_inexact_dtype(dtype: Any) -> Any:
    """The dtype of the results of functions such as `sin`: floats stay, integers become floats.

    Integers of 64 bits become float64, all others float32.

    >>> to_inexact_dtype("int32"), to_inexact_dtype("bfloat16")
    (dtype('float32'), dtype(bfloat16))
    """
    dtype = as_exact_dtype(dtype)
    kind = _KINDS.get(dtype, "x")
    if kind in "fc":
        return dtype
    if kind in "biu":
        return _FLOAT64 if dtype.itemsize == 8 else _FLOAT32
    raise TypeError(f"dtype {dtype_name(dtype)} has no floating point counterpart")


def to_complex_dtype(dtype: Any) -> Any:
    """The complex dtype that holds values of `dtype`.

    >>> to_complex_dtype("float64"), to_complex_dtype("bfloat16")
    (dtype('complex128'), dtype('complex64'))
    """
    inexact = to_inexact_dtype(dtype)
    if _KINDS[inexact] == "c":
        return inexact
    return _COMPLEX128 if inexact is _FLOAT64 else _COMPLEX64


def to_real_dtype(dtype: Any) -> Any:
    """The dtype of the real and imaginary parts; a dtype that is not complex is its own.

    >>> to_real_dtype("complex64"), to_real_dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    dtype = as_exact_dtype(dtype)
    return {_COMPLEX64: _FLOAT32, _COMPLEX128: _FLOAT64}.get(dtype, dtype)


def to_numeric_dtype(dtype: Any) -> Any:
    """The dtype in which values are added up or subtracted: bool becomes the default integer.

    >>> to_numeric_dtype(bool), to_numeric_dtype("uint8")
    (dtype('int32'), dtype('uint8'))
    """
    dtype = as_exact_dtype(dtype)
    return default_int() if dtype is _BOOL else dtype


def itemsize_bits(dtype: Any) -> int:
    """Bits that one element needs; bool counts as 8.

    >>> itemsize_bits("int4"), itemsize_bits("float32")
    (4, 32)
    """
    dtype = as_exact_dtype(dtype)
    if dtype in promotion.SMALL_SIGNED or dtype in promotion.SMALL_UNSIGNED:
        return iinfo(dtype).bits
    if dtype in promotion.SMALL_FLOATS:
        return finfo(dtype).bits
    return dtype.itemsize * 8


# --- names


def dtype_name(dtype: Any) -> str:
    """The full name: 'float32', 'bfloat16', 'float0', 'key<fry>'."""
    return "float0" if dtype == float0 else dtype.name


_short_names: dict[Any, str] = {}


def short_name(dtype: Any) -> str:
    """The name in jaxprs: 'f32', 'i32', 'u8', 'bf16', 'c64', 'bool', 'f8_e4m3fn', 'key<fry>'.

    >>> short_name(np.dtype("uint8")), short_name(np.dtype("bfloat16"))
    ('u8', 'bf16')
    """
    name = _short_names.get(dtype)
    if name is None:
        name = dtype_name(as_exact_dtype(dtype))
        if _KINDS.get(dtype, "x") in "iufc":
            for long, short in (("uint", "u"), ("int", "i"), ("float", "f"), ("complex", "c")):
                name = name.replace(long, short)
        _short_names[dtype] = name
    return name
