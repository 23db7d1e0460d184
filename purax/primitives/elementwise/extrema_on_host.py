"""NumPy's `maximum` and `minimum` in the order that compiled programs have: -0 stands before +0.

NumPy gives either zero, by how its loops fall on the elements. Here a zero that is the larger one is +0 if any operand
is, a zero that is the smaller one is -0 if any operand is; all other results are NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes

_FLOATS = frozenset(dtype for dtype in dtypes.ALL_DTYPES if dtypes.is_floating(dtype))
_COUNTED = 1024  # up to so many elements NumPy counts the zeros faster than it looks for one


class Extremum:
    """Used like the ufunc whose results it corrects.

    Attributes:
        ufunc: NumPy's.
        takes_out: the result can be written to an array that is given.
    """

    takes_out = True

    def __init__(self, ufunc: np.ufunc, winner: float) -> None:
        self.ufunc = ufunc
        self._winner, self._is_negative = winner, bool(np.signbit(winner))

    def __call__(self, x: Any, y: Any, out: np.ndarray | None = None) -> Any:
        if out is not None and out is x:
            x = x.copy()
        result = self.ufunc(x, y, out=out)
        if result.dtype not in _FLOATS or not _has_zero(y) or not _has_zero(result):
            return result
        return self._corrected(result, np.logical_or(self._wins(x), self._wins(y)), out)

    def reduce(self, x: np.ndarray, axis: Any = 0, dtype: Any = None) -> Any:
        result = self.ufunc.reduce(x, axis=axis, dtype=dtype)
        if result.dtype not in _FLOATS or not _has_zero(result):
            return result
        return self._corrected(result, np.logical_or.reduce(self._wins(x), axis=axis))

    def accumulate(self, x: np.ndarray, axis: int = 0, dtype: Any = None) -> np.ndarray:
        result = self.ufunc.accumulate(x, axis=axis, dtype=dtype)
        if result.dtype not in _FLOATS or not _has_zero(result):
            return result
        return self._corrected(result, np.logical_or.accumulate(self._wins(x), axis=axis))

    def at(self, x: np.ndarray, indices: Any, updates: Any) -> None:
        wins = self._wins(x) if x.dtype in _FLOATS else None
        self.ufunc.at(x, indices, updates)
        if wins is not None and _has_zero(x):
            np.logical_or.at(wins, indices, self._wins(updates))
            self._corrected(x, wins, x)

    def _wins(self, x: Any) -> Any:
        """Where an element is the zero that counts."""
        return (x == 0) & (np.signbit(x) == self._is_negative)

    def _corrected(self, result: Any, wins: Any, out: np.ndarray | None = None) -> Any:
        """A result with the signs of its zeros, in which a winner took part or did not."""
        zero = np.array(self._winner, result.dtype)
        signed = np.where(result == 0, np.where(wins, zero, -zero), result)
        if out is None:
            return signed
        out[...] = signed
        return out


def _has_zero(x: Any) -> bool:
    return bool(np.count_nonzero(x) != x.size if x.size <= _COUNTED else not x.all())


maximum, minimum = Extremum(np.maximum, 0.0), Extremum(np.minimum, -0.0)
maximum_of_numbers, minimum_of_numbers = Extremum(np.fmax, 0.0), Extremum(np.fmin, -0.0)  # NaN gives way
