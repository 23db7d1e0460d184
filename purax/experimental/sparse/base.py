"""What all sparse arrays share: their description, and the errors and warnings about them."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown

Function = TypeVar("Function", bound=Callable[..., Any])


def refuse(name: str, **given: Any) -> None:
    """Raises if an argument that has no meaning for sparse arrays is given."""
    for argument, value in given.items():
        if value is not None:
            raise located(
                NotImplementedError,
                f"{name}: `{argument}` is not supported for sparse arrays, got {shown(value)}",
            )


def takes(kind: type, count: int = 1) -> Callable[[Function], Function]:
    """A decorator for functions whose first `count` arguments are sparse arrays of a kind; others are TypeErrors."""

    def decorate(function: Function) -> Function:
        names = list(inspect.signature(function).parameters)[:count]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for i, name in enumerate(names):
                given = args[i] if i < len(args) else kwargs.get(name, None)
                if not isinstance(given, kind):
                    message = f"{function.__name__}: `{name}` must be a {kind.__name__}, got {shown(given)}"
                    raise located(TypeError, message)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def all_are(kind: type, name: str, operands: Any) -> list[Any]:
    """Operands of which each must be a sparse array of a kind."""
    found = list(finite(operands))
    for i, given in enumerate(found):
        if not isinstance(given, kind):
            message = f"{name}: operand {i} must be a {kind.__name__}, got {shown(given)}"
            raise located(TypeError, message)
    return found


class JAXSparse:
    """The base of sparse arrays: an array of which only some elements are stored.

    Attributes:
        shape: of the array as a whole.
        data: the elements that are stored.
    """

    shape: tuple[int, ...]
    data: Any
    __array_priority__ = 100  # so that NumPy leaves operators to us

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nse(self) -> int:
        """The number of elements that are stored, in each batch."""
        raise NotImplementedError

    @property
    def T(self) -> Any:  # noqa: N802
        return self.transpose()

    def transpose(self, axes: Any = None) -> Any:
        raise NotImplementedError

    def todense(self) -> Array:
        """The array with all its elements."""
        raise NotImplementedError

    def block_until_ready(self) -> Any:
        """Waits for the elements to be computed."""
        self.data.block_until_ready()
        return self

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            dtype, shape, nse = self.dtype, list(self.shape), self.nse
        except Exception:  # within a transformation, parts may be anything
            return f"{name}(<invalid>)"
        extra = "".join(f", {k}={v}" for k in ("n_batch", "n_dense") if (v := getattr(self, k, 0)))
        return f"{name}({dtype}{shape}, nse={nse}{extra})"

    def __len__(self) -> int:
        if not self.shape:
            raise located(TypeError, "a sparse array without axes has no len()")
        return self.shape[0]

    def __hash__(self) -> int:
        raise located(TypeError, f"unhashable type: {type(self).__name__!r}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise located(TypeError, f"{self!r} is not turned into a NumPy array by itself; use `.todense()`")
