"""Texts of random values: arrays of every dtype and container, numbers, axes, shapes.

A value is drawn as the text of an expression, which either library evaluates (`m` is the library, `jnp` its `numpy`),
so that a failure is printed as a program. Arrays become arguments of the call, in whose body they have a name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
SIGNED = ("int32", "int8", "int16", "int4")
UNSIGNED = ("uint8", "uint32", "uint16", "uint4")
COMPLEX = ("complex64",)
WIDE = ("float64", "int64", "uint64", "complex128")  # of NumPy's arrays; the libraries make them narrow
DTYPES = (*FLOATS, *SIGNED, *UNSIGNED, *COMPLEX, "bool")
# How often each is drawn: those with rules of their own are rarer than those that people use.
WEIGHTS = {
    "float32": 10,
    "int32": 4,
    "float16": 2,
    "bfloat16": 2,
    "complex64": 2,
    "bool": 2,
    "uint8": 2,
    "int8": 2,
}
OF_NUMPY = (
    "float16",
    "float32",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "complex64",
    "bool",
    *WIDE,
)
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 127, 128, 129, 257, 1024, 1025)
EXTREMES = {
    "int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1), "int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1),
    "int64": (-(2**31), 2**31 - 1), "uint64": (0, 2**32 - 1),
}  # fmt: skip


def draw_shapes(random: np.random.Generator) -> dict[int, list[tuple[int, ...]]]:
    """Some shapes of each rank, for many calls to share: what is compiled for one call serves the others."""
    sizes = lambda: (0, 1, 2, 3) if random.random() < 0.2 else (1, 2, 3, 4, 5)  # noqa: E731
    drawn = {
        rank: [tuple(int(n) for n in random.choice(sizes(), rank)) for _ in range(2)] for rank in range(8)
    }
    drawn[1] = [(int(random.choice((2, 3, 4, 5))),), (int(random.choice(SIZES)),)]
    return drawn


class Draw:
    """The draws of one call: a base shape and dtype, which its arrays share or broadcast with.

    Attributes:
        arguments: texts of the arrays of the call, which its body names `a0`, `a1`, ….
        drawn: texts by the name of their parameter, for rules that depend on what was drawn before.
        shared: shapes by rank that most arrays have.
    """

    def __init__(
        self,
        random: np.random.Generator,
        kinds: str = "fiucb",
        ranks: Sequence[int] = (0, 1, 2, 3),
        shared: dict[int, list[tuple[int, ...]]] | None = None,
    ):
        self.random = random
        self.shared = shared or {}
        self.arguments: list[str] = []
        self.drawn: dict[str, Any] = {}
        self.shapes: list[tuple[int, ...]] = []
        self.kinds = kinds
        self.dtype = self.some_dtype(kinds)
        self.is_tame = self.chance(0.6)
        self.low, self.high = -9.0, 9.0
        self.shape = self.some_shape(int(self.one_of(ranks)))
        self.strict = False

    # --- choices

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def one_of(self, options: Sequence[Any]) -> Any:
        """One of some values, or what one of some rules draws."""
        chosen = options[int(self.random.integers(len(options)))]
        return chosen(self) if callable(chosen) else chosen

    def integer(self, low: int, high: int) -> int:
        """An integer of `low` to `high`, both included."""
        return int(self.random.integers(low, high + 1))

    def pool(self, kinds: str | None = None) -> list[str]:
        """The dtypes of some kinds; "h" are floating point numbers of 16 bits and more."""
        kinds = kinds or self.kinds
        return [name for name in DTYPES if kind_of(name) in kinds or ("h" in kinds and name in FLOATS[:3])]

    def some_dtype(self, kinds: str | None = None) -> str:
        pool = self.pool(kinds)
        weights = np.array([WEIGHTS.get(name, 1) for name in pool], float)
        return str(self.random.choice(pool, p=weights / weights.sum()))

    def some_shape(self, rank: int) -> tuple[int, ...]:
        if rank in self.shared and self.chance(0.97):
            return self.one_of(self.shared[rank])
        if rank == 1 and self.chance(0.3):
            return (self.one_of(SIZES),)
        sizes = (1, 2, 3, 4, 5) if self.chance(0.8) else (0, 1, 2, 3)
        return tuple(self.one_of(sizes) for _ in range(rank))

    # --- arrays

    def broadcastable(self) -> tuple[int, ...]:
        """A shape that broadcasts with the base shape."""
        if self.strict or self.chance(0.5 if self.shapes else 0.9):
            return self.shape
        if self.chance(0.25):
            return ()
        kept = self.shape[self.integer(0, len(self.shape)) :] if self.chance(0.3) else self.shape
        return tuple(1 if self.chance(0.25) else n for n in kept)

    def numbers(self, dtype: str, count: int) -> str:
        """The text of a list of numbers of a dtype."""
        kind = kind_of(dtype)
        if kind == "b":
            return str([self.chance(0.5) for _ in range(count)])
        if kind in "iu":
            low, high = EXTREMES[dtype]
            bounds = (max(low, math.ceil(self.low)), min(high, math.floor(self.high)))
            values = [self.integer(min(bounds), max(bounds)) for _ in range(count)]
            if not self.is_tame and self.chance(0.4):
                values[self.integer(0, count - 1)] = self.one_of((low, high))
            return str(values)
        if kind == "c":
            parts = [
                [eval(f"[{x}]", NAMES)[0] for x in self.numbers("float32", count)[1:-1].split(", ")]
                for _ in "ri"
            ]
            return "[" + ", ".join(f"complex({re}, {im})" for re, im in zip(*parts, strict=True)) + "]"
        values = [round(self.random.uniform(self.low, self.high), 2) for _ in range(count)]
        if self.chance(0.2):
            values = [float(round(v)) for v in values]
        texts = [str(v) for v in values]
        if not self.is_tame:
            for i in range(count):
                if self.chance(0.25):
                    texts[i] = self.one_of(
                        ("nan", "inf", "-inf", "0.0", "-0.0", "1e30", "-1e-30", "0.5", "1.0")
                    )
        return "[" + ", ".join(texts) + "]"

    def host_array(self, shape: tuple[int, ...], dtype: str) -> str:
        """The text of a NumPy array."""
        count = min(math.prod(shape), 7) or 1
        named = repr(dtype) if dtype in OF_NUMPY else f"jnp.{dtype}"
        values = f"np.array({self.numbers(dtype, count)}, {named})"
        return values if shape == (count,) else f"np.resize({values}, {shape})"

    def array(
        self,
        shape: tuple[int, ...] | None = None,
        dtype: str | None = None,
        kinds: str | None = None,
        low: float | None = None,
        high: float | None = None,
        plain: bool = False,
    ) -> str:
        """The name of an array that broadcasts with the others, of their dtype or another one; `plain` is no list."""
        before = (self.low, self.high, self.is_tame)
        if low is not None or high is not None:
            self.is_tame = True
        self.low, self.high = (self.low if low is None else low), (self.high if high is None else high)
        try:
            given_dtype = dtype
            shape = self.broadcastable() if shape is None else shape
            if dtype is None:
                same = self.strict or self.chance(0.6)
                is_allowed = self.dtype in self.pool(kinds)
                dtype = self.dtype if same and is_allowed else self.some_dtype(kinds)
            self.shapes.append(shape)
            container = self.random.random()
            if container < 0.65 or (self.strict and container < 0.9) or plain:
                return self.argument(f"jnp.asarray({self.host_array(shape, dtype)})")
            if container < 0.8 or shape != () and container < 0.97:
                if given_dtype is None and self.chance(0.15):
                    dtype = {"f": "float64", "i": "int64", "u": "uint64", "c": "complex128", "b": "bool"}[
                        kind_of(dtype)
                    ]
                return self.argument(self.host_array(shape, dtype))
            if shape != ():
                return (
                    f"{self.host_array(shape, dtype)}.tolist()"
                    if dtype in OF_NUMPY
                    else self.array(shape, dtype)
                )
            number = self.numbers(dtype, 1)[1:-1]
            if container < 0.88:
                wrapped = (
                    f"np.{'bool_' if dtype == 'bool' else dtype}" if dtype in OF_NUMPY else f"jnp.{dtype}"
                )
                return self.argument(f"{wrapped}({number})")
            return self.argument(number) if self.chance(0.5) else number
        finally:
            self.low, self.high, self.is_tame = before

    def argument(self, text: str) -> str:
        self.arguments.append(text)
        return f"a{len(self.arguments) - 1}"

    @property
    def first(self) -> tuple[int, ...]:
        """The shape of the first array that was drawn."""
        return self.shapes[0] if self.shapes else self.shape

    # --- what refers to an array

    def axis(self, rank: int | None = None) -> int:
        rank = len(self.first) if rank is None else rank
        return self.integer(-rank, rank - 1) if rank else self.one_of((0, -1))

    def axes(self, rank: int | None = None) -> tuple[int, ...]:
        """Distinct axes, some counted from the end."""
        rank = len(self.first) if rank is None else rank
        chosen = self.random.permutation(rank)[: self.integer(0, rank)]
        return tuple(int(a) - (rank if self.chance(0.3) else 0) for a in chosen)

    def some_axes(self) -> Any:
        """None, an axis or a tuple."""
        return self.one_of((None, self.axis(), self.axis(), self.axes()))

    def permutation(self, rank: int) -> tuple[int, ...]:
        return tuple(int(a) for a in self.random.permutation(rank))


NAMES = {"inf": math.inf, "nan": math.nan}
Rule = Callable[[Draw], Any]


def kind_of(dtype: str) -> str:
    if dtype == "bfloat16":
        return "f"
    return dtype[0]
