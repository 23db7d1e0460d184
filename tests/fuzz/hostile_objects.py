"""Arguments that no function expects: objects whose methods raise, lie or never end, and values of every wrong kind.

`HOSTILE` and `ORDINARY` are expressions over the names of this module, so that a call is a line of text.
"""

# ruff: noqa: E501
from __future__ import annotations

import collections
import decimal
import fractions
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["HOSTILE", "ORDINARY", "Hostile", "names"]


class Hostile(Exception):
    """What hostile objects raise; it may come out of any function."""


def _raise(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise Hostile


def liar(**answers: Any) -> Any:
    """An object whose methods `__name__` give the answers; Hostile means that they raise it."""
    methods = {
        f"__{name}__": _raise
        if answer is Hostile
        else answer
        if callable(answer)
        else (lambda self, *_, a=answer, **__: a)
        for name, answer in answers.items()
    }
    return type("Liar", (), methods)()


def endless(self: Any = None, *_: Any) -> Any:
    """Never ends."""
    while True:
        yield 1


def nested(depth: int, container: type = list) -> Any:
    """A number inside many containers."""
    if container is tuple and depth in _deep_tuples:
        return _deep_tuples[depth]
    value: Any = 1.0
    for _ in range(depth):
        value = {"a": value} if container is dict else container((value,))
    if container is tuple:
        _deep_tuples[depth] = value
    return value


_deep_tuples: dict[int, tuple] = {}  # which take long to make


def own_item() -> list:
    """A list that contains itself."""
    value: list = []
    value.append(value)
    return value


def deleted(jnp: Any) -> Any:
    """An array that was deleted."""
    x = jnp.ones(3) + 1
    if not hasattr(x, "delete"):  # traced
        raise Hostile
    x.delete()
    return x


class Lookalike:
    """What another library's array looks like."""

    shape, ndim, size, dtype, device = (2, 3), 2, 6, "torch.float32", "cpu"

    def __len__(self) -> int:
        return 2

    def numpy(self) -> Any:
        raise Hostile

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return object()

    def __dlpack_device__(self) -> Any:
        return (99, -1)


class Shaped:
    """Something that lies about its shape and dtype."""

    def __init__(self, shape: Any, dtype: Any = "float32"):
        self.shape, self.dtype = shape, dtype


class Subclass(np.ndarray):
    """An array of NumPy whose functions are another's."""

    def __array_function__(self, *args: Any, **kwargs: Any) -> Any:
        raise Hostile

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise Hostile


Pair = collections.namedtuple("Pair", "a b")

OBJECTS = [
    "object()", "liar(array=Hostile)", "liar(array='abc')", "liar(array=None)", "liar(array=np.array([object()]))",
    "liar(array=np.ones(3))", "liar(len=Hostile, getitem=Hostile)", "liar(len=2**62, getitem=1)", "liar(len=-1)",
    "liar(len=3, getitem=Hostile)", "liar(len=3, getitem=1.0)", "liar(len='a', iter=Hostile)", "liar(eq=Hostile)",
    "liar(eq=Hostile, hash=Hostile)", "liar(hash='a')", "liar(hash=7, eq=True)", "liar(getitem=1)", "liar(iter=endless)",
    "liar(iter=Hostile)", "liar(iter=5)", "liar(index=Hostile)", "liar(index=2**70)", "liar(index='a')", "liar(float=Hostile)",
    "liar(float='a')", "liar(int=5)", "liar(complex=Hostile)", "liar(bool=Hostile)", "liar(repr=Hostile)", "liar(str=5, repr=5)",
    "liar(jax_array=Hostile)", "liar(jax_array=None)", "liar(jax_array='abc')", "liar(getattr=Hostile)", "liar(getattribute=Hostile)",
    "liar(getattr=1)", "liar(call=Hostile)", "liar(call='abc')", "liar(array_interface=5)", "liar(array_interface={'shape': (2**62,)})",
    "liar(array_priority='a')", "liar(buffer=Hostile)", "endless()", "iter([1, 2])", "(i for i in (1, 2))", "Lookalike()",
    "Shaped((2, 3))", "Shaped((-1,))", "Shaped('ab')", "Shaped(None)", "Shaped((2**62, 2**62))", "Shaped((2.5,))", "Shaped((3,), 'foo')",
    "Shaped((3,), object())", "Shaped((3,), None)", "np.ones(3).view(Subclass)", "deleted(jnp)", "own_item()", "type", "int", "len", "np",
    "liar", "Hostile", "Hostile()", "NotImplemented", "Ellipsis", "slice(None)", "slice('a', 2.5)", "slice(0, 2**70, 0)",
]  # fmt: skip
NUMBERS = [
    "0", "-1", "-3", "2**31", "-2**31", "2**40", "2**62", "2**63", "-2**63", "2**64", "2**70", "10**30", "-10**30", "1.5", "-0.0", "1e308",
    "float('nan')", "float('inf')", "-float('inf')", "True", "False", "1j", "complex('nan')", "None", "''", "'a'", "'float32'", "b'ab'",
    "np.int8(-128)", "np.uint64(2**64 - 1)", "np.float64(2.5)", "np.bool_(True)", "np.array(2)", "np.array([2])", "np.str_('a')",
    "decimal.Decimal('1.5')", "fractions.Fraction(1, 3)", "np.datetime64('2020-01-01')", "np.timedelta64(3, 'D')", "10**400",
]  # fmt: skip
CONTAINERS = [
    "()", "[]", "{}", "set()", "{1, 2}", "frozenset()", "{'a': 1}", "{1: 2, 'a': 3}", "(2**40,)", "(2**31, 2**31)", "(2**62, 4)", "(-1,)",
    "(-1, -1)", "(0, 2**62)", "(1,) * 1000", "(1.5,)", "(None,)", "('a',)", "(True,)", "(float('nan'),)", "((1,), (2,))", "(0, 0)", "[[1], [2, 3]]",
    "[1, 'a']", "[None]", "[object()]", "[[]]", "range(10**5)", "range(2**62)", "range(3)", "nested(70)", "nested(900)", "nested(5000)",
    "nested(100000)", "nested(5000, tuple)", "nested(100000, tuple)", "nested(10**6, tuple)", "nested(5000, dict)", "[nested(2000), 1]", "Pair(1, 2)", "Pair(None, 'a')",
    "collections.OrderedDict(b=1, a='x')", "collections.deque([1, 2])", "bytearray(b'ab')", "memoryview(b'abcd')", "[np.ones(2), np.ones(3)]",
    "[liar(len=Hostile)]", "(liar(index=Hostile),)", "[2**70]", "(2**63,)", "[jnp.ones(2), None]", "'ab' * 1000", "[0] * 3000",
]  # fmt: skip
ARRAYS = [
    "np.array(['a', 'b'])", "np.array([object(), None])", "np.array([1, None], dtype=object)", "np.array(['2020-01-01'], 'datetime64[D]')",
    "np.array([3], 'timedelta64[s]')", "np.zeros(2, [('a', 'f4'), ('b', 'i8')])", "np.array([b'ab'])", "np.ones(3, 'longdouble')",
    "np.ones((3, 4), '>f4')", "np.ones((3, 4), '>i8')", "np.ones((3, 4), order='F')", "np.ones((6, 8))[::-2, ::3]", "np.broadcast_to(np.ones(3), (2, 3))",
    "np.broadcast_to(1.0, (2**20, 2**20))", "np.broadcast_to(np.int8(1), (2**40,))", "np.lib.stride_tricks.as_strided(np.ones(3), (2, 2), (1, 1))",
    "np.ma.array([1.0, 2.0], mask=[0, 1])", "np.matrix([[1.0]])", "np.zeros((0, 3))", "np.zeros((2**31, 0))", "np.zeros((0, 2**40))", "np.array(np.nan)",
    "np.full((2, 2), np.inf)", "np.ones((1,) * 40)", "np.ones(3, ml_dtypes.bfloat16)", "np.ones(3, ml_dtypes.float8_e4m3fn)", "np.ones(3, ml_dtypes.int4)",
    "np.ones(3, 'float16')", "np.ones(3, bool)", "np.ones(3, 'complex64')", "np.arange(3)", "np.recarray((2,), [('x', float)])", "np.char.array(['a'])",
    "jnp.zeros(0)", "jnp.ones((2, 0, 3))", "jnp.full(3, jnp.nan)", "jnp.arange(3)", "jnp.ones((3, 3)) > 0", "jnp.broadcast_to(1.0, (2**40,))",
    "jnp.ones(3, 'complex64')", "random.key(0)", "random.split(random.key(0), 3)", "np.float32(1.0)", "jnp.float32(2.0)", "px.ShapeDtypeStruct((2**40,), 'float32')",
]  # fmt: skip
DTYPES = [
    "'foo'", "object", "'O'", "'datetime64[s]'", "'V8'", "'U5'", "[('a', 'f4')]", "np.longdouble", "'>f4'", "ml_dtypes.bfloat16", "ml_dtypes.float8_e5m2",
    "ml_dtypes.int4", "int", "float", "complex", "bool", "str", "'float64'", "'uint64'", "type('T', (), {})", "np.dtype('int16')", "liar(dtype='float32')",
]  # fmt: skip
FUNCTIONS = [
    "lambda *a, **k: None", "lambda *a, **k: 'abc'", "lambda *a, **k: object()", "lambda *a: a[0]", "lambda x: x", "lambda: 1", "lambda x: x + 1",
    "lambda x, y: x", "lambda *a, **k: _raise(0)", "lambda *a, **k: nested(3000)", "lambda *a: own_item()", "lambda *a, **k: (1, 2)", "lambda *a, **k: 1.0",
    "lambda *a, **k: np.array(['a'])", "jnp.sin", "jnp.sum", "print", "lambda *a, **k: [liar(array=Hostile)]", "lambda *a, **k: float('nan')",
]  # fmt: skip
STRINGS = [
    "'ij,jk->ik'", "'i...,j->'", "'ij->ji->'", "'constant'", "'valid'", "'SAME'", "'linear'", "'drop'", "'\\x00'", "'\\ud800'", "'a' * 10**5", "'ij' * 100",
]  # fmt: skip

HOSTILE = [*OBJECTS, *NUMBERS, *CONTAINERS, *ARRAYS, *DTYPES, *FUNCTIONS, *STRINGS]
ORDINARY = [
    "jnp.ones(3)", "jnp.ones((3, 3))", "jnp.arange(4)", "np.ones((2, 3), 'float32')", "1.0", "2", "0", "(2, 3)", "jnp.eye(3) + 0.1", "jnp.ones((1, 2, 4, 4))",
    "random.key(0)", "lambda x: x * 2.0", "lambda c, x: (c, x)", "'float32'", "[jnp.ones(3), jnp.ones(3)]", "jnp.array([True, False, True])",
]  # fmt: skip


def names(px: Any) -> dict[str, Any]:
    """What the expressions mean, with the modules of purax."""
    return {
        **globals(),
        **{"px": px, "jnp": px.numpy, "random": px.random, "np": np, "ml_dtypes": ml_dtypes},
        **{"collections": collections, "decimal": decimal, "fractions": fractions},
        **{"m": px, "inf": float("inf"), "nan": float("nan")},  # as calls that work name them
    }
