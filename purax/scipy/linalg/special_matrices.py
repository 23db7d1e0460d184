"""Matrices of special form: made of a vector, or known by their size. Axes in front of a vector are a batch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.numpy._promotion import promote_inexact
from purax.typing import ArrayLike, DTypeLike
from purax.xla import client
from purax.xla.capacity import refuse_what_does_not_fit


def _size(name: str, n: Any, least: int = 0) -> int:
    try:
        size = operator.index(n)
    except TypeError:
        raise located(TypeError, f"linalg.{name}: n must be a concrete integer, got {shown(n)}") from None
    if size < least:
        raise located(ValueError, f"linalg.{name}: n must be at least {least}, got {size}")
    _refuse_size(name, size, size)
    return size


def _refuse_size(name: str, rows: int, columns: int) -> None:
    """Raises for matrices that are made on the host and could not lie there."""
    whole = ShapedArray((rows, columns), np.dtype(np.int64))
    refuse_what_does_not_fit(f"linalg.{name}", (whole,), (), (client.default_device(),))


def _of_places(name: str, ufunc: Any, rows: int, columns: int) -> np.ndarray:
    """`ufunc(i, j)` at row i and column j of a matrix."""
    _refuse_size(name, rows, columns)
    return ufunc.outer(np.arange(rows), np.arange(columns))


def _vector(name: str, x: Any, least: int = 0, argument: str = "c") -> Array:
    x = jnp.atleast_1d(jnp.asarray(x))
    if x.shape[-1] < least:
        raise located(
            ValueError,
            f"linalg.{name}: {argument} must have at least {least} elements along its last axis, got {x.shape}",
        )
    return x


def _filled(rows: int, columns: int, element: Callable[[int, int], Any]) -> Array:
    """A matrix of numbers, computed exactly and rounded once; what is too large becomes infinite."""
    values = np.empty((rows, columns))
    for i in range(rows):
        for j in range(columns):
            try:
                values[i, j] = element(i, j)
            except OverflowError:
                values[i, j] = math.inf
    with np.errstate(over="ignore"):
        return jnp.asarray(values.astype(dtypes.default_float()))


# --- by size


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the FFT: ω^(jk) with ω = e^(−2πi/n).

    Args:
        n: the size.
        scale: None, "sqrtn" to divide by √n, or "n" to divide by n.
        dtype: a complex dtype, by default the default one.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import dft
    >>> jnp.round(dft(2).real)
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    size = _size("dft", n)
    factors = {None: 1.0, "sqrtn": 1 / math.sqrt(max(size, 1)), "n": 1 / max(size, 1)}
    if scale not in factors:
        raise located(ValueError, f"linalg.dft: scale must be None, 'sqrtn' or 'n', got {shown(scale)}")
    wanted = dtypes.default_complex() if dtype is None else dtypes.as_dtype(dtype)
    if not dtypes.is_complex(wanted):
        raise located(TypeError, f"linalg.dft: dtype must be complex, got {wanted}")
    products = np.outer(np.arange(size), np.arange(size)) % max(size, 1)
    return jnp.asarray(np.exp(-2j * np.pi * products / max(size, 1)) * factors[scale], dtype=wanted)


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Hadamard's matrix of 1 and −1 with orthogonal rows.

    Args:
        n: the size, a power of 2.
        dtype: of the elements.

    >>> from purax.scipy.linalg import hadamard
    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    size = _size("hadamard", n, 1)
    if size & (size - 1):
        raise located(ValueError, f"linalg.hadamard: n must be a positive power of 2; got {size}.")
    matrix = np.ones((1, 1), np.int64)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return jnp.asarray(matrix).astype(dtypes.default_int() if dtype is int else dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix, with orthonormal rows (1, …, 1, −k, 0, …, 0)/√(k (k + 1)).

    Args:
        n: the size.
        full: whether to put the row of all 1/√n first.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import helmert
    >>> jnp.round(helmert(2), 3)
    Array([[ 0.707, -0.707]], dtype=float32)
    """
    size = _size("helmert", n, 1)
    matrix = np.zeros((size, size))
    matrix[0] = 1 / math.sqrt(size)
    for k in range(1, size):
        matrix[k, :k] = 1 / math.sqrt(k * (k + 1))
        matrix[k, k] = -math.sqrt(k / (k + 1))
    return jnp.asarray((matrix if full else matrix[1:]).astype(dtypes.default_float()))


def hilbert(n: int) -> Array:
    """Hilbert matrix 1/(i + j + 1).

    >>> from purax.scipy.linalg import hilbert
    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    size = _size("hilbert", n)
    return _filled(size, size, lambda i, j: 1 / (i + j + 1))


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert matrix, whose elements are integers, each rounded once.

    >>> from purax.scipy.linalg import invhilbert
    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    size = _size("invhilbert", n)

    def element(i: int, j: int) -> int:
        count = (i + j + 1) * math.comb(size + i, size - j - 1) * math.comb(size + j, size - i - 1)
        return (-1) ** (i + j) * count * math.comb(i + j, i) ** 2

    return _filled(size, size, element)


def _check_kind(name: str, kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise located(
            ValueError, f"linalg.{name}: kind must be 'symmetric', 'lower' or 'upper', got {shown(kind)}"
        )
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's matrix of binomial coefficients, each rounded once.

    Args:
        n: the size.
        kind: "symmetric" (the default, i + j over i), "lower" (i over j) or "upper" (j over i).

    >>> from purax.scipy.linalg import pascal
    >>> pascal(3, "lower")
    Array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 2., 1.]], dtype=float32)
    """
    size, kind = _size("pascal", n), _check_kind("pascal", kind)
    elements = {
        "symmetric": lambda i, j: math.comb(i + j, i),
        "lower": math.comb,
        "upper": lambda i, j: math.comb(j, i),
    }
    return _filled(size, size, elements[kind])


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of Pascal's matrix, whose elements are integers, each rounded once.

    >>> from purax.scipy.linalg import invpascal
    >>> invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    size, kind = _size("invpascal", n), _check_kind("invpascal", kind)

    def lower(i: int, j: int) -> int:
        return (-1) ** (i - j) * math.comb(i, j) if j <= i else 0

    elements = {
        "lower": lower,
        "upper": lambda i, j: lower(j, i),
        "symmetric": lambda i, j: (
            (-1) ** (i + j) * sum(math.comb(k, i) * math.comb(k, j) for k in range(max(i, j), size))
        ),
    }
    return _filled(size, size, elements[kind])


# --- of a vector


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices with equal elements along each diagonal.

    Args:
        c: the first column, of shape [..., n].
        r: the first row, of shape [..., m], of which the first element is not read; by default the conjugate of `c`.

    Returns:
        An array of shape [..., n, m].

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import toeplitz
    >>> toeplitz(jnp.array([1, 2]), jnp.array([0, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    column = _vector("toeplitz", c)
    row = jnp.conj(column) if r is None else _vector("toeplitz", r, argument="r")
    rows, columns = column.shape[-1], row.shape[-1]
    offsets = _of_places("toeplitz", np.subtract, rows, columns)
    return _along_diagonals(row[..., 1:][..., ::-1], column, offsets, columns)


def _along_diagonals(before: Array, after: Array, offsets: np.ndarray, columns: int) -> Array:
    """The elements of `before` and `after`, joined, that belong to diagonals −columns + 1, … ."""
    batch = jnp.broadcast_shapes(before.shape[:-1], after.shape[:-1])
    joined = jnp.concatenate([jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (before, after)], axis=-1)
    return joined[..., offsets + max(columns - 1, 0)]


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices with equal elements along each antidiagonal.

    Args:
        c: the first column, of shape [..., n].
        r: the last row, of shape [..., m], of which the first element is not read; by default zeros.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import hankel
    >>> hankel(jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [2, 3, 0],
           [3, 0, 0]], dtype=int32)
    """
    column = _vector("hankel", c)
    row = jnp.zeros_like(column) if r is None else _vector("hankel", r, argument="r")
    rows, columns = column.shape[-1], row.shape[-1]
    offsets = _of_places("hankel", np.add, rows, columns) - max(columns - 1, 0)
    return _along_diagonals(column, row[..., 1:], offsets, columns)


def circulant(c: ArrayLike) -> Array:
    """Matrices whose columns are `c`, each moved on by one from the one before.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import circulant
    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    column = _vector("circulant", c)
    size = column.shape[-1]
    return column[..., _of_places("circulant", np.subtract, size, size) % max(size, 1)]


def _with_subdiagonal(row: Array, below: Array) -> Array:
    """Square matrices with a first row and a diagonal below the main one, zero elsewhere."""
    size = row.shape[-1]
    batch = jnp.broadcast_shapes(row.shape[:-1], below.shape[:-1])
    place = np.arange(size - 1)
    matrix = jnp.zeros((*batch, size, size), jnp.promote_types(row.dtype, below.dtype))
    return matrix.at[..., 0, :].set(row).at[..., place + 1, place].set(below)


def companion(a: ArrayLike) -> Array:
    """The companion matrices of polynomials: their eigenvalues are the roots.

    Args:
        a: coefficients, highest power first, of shape [..., n] with n ≥ 2.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import companion
    >>> companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (coefficients,) = promote_inexact("companion", _vector("companion", a, 2, "a"))
    row = -coefficients[..., 1:] / coefficients[..., :1]
    return _with_subdiagonal(row, jnp.ones(row.shape[-1] - 1, row.dtype))


def fiedler_companion(a: ArrayLike) -> Array:
    """Fiedler's companion matrices of polynomials, with five diagonals.

    Args:
        a: coefficients, highest power first, of shape [..., n] with n ≥ 2.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import fiedler_companion
    >>> fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
    Array([[ 3., -2.],
           [ 1.,  0.]], dtype=float32)
    """
    (coefficients,) = promote_inexact("fiedler_companion", _vector("fiedler_companion", a, 2, "a"))
    monic = coefficients / coefficients[..., :1]
    size = monic.shape[-1] - 1
    matrix = jnp.zeros((*monic.shape[:-1], size, size), monic.dtype)
    matrix = matrix.at[..., 0, 0].set(-monic[..., 1])
    if size == 1:
        return matrix
    matrix = matrix.at[..., 1, 0].set(1)
    for k in range(2, size + 1):
        if k % 2 == 0:
            matrix = matrix.at[..., k - 2, k - 1].set(-monic[..., k])
            if k < size:
                matrix = matrix.at[..., k - 2, k].set(1)
        else:
            matrix = matrix.at[..., k - 1, k - 2].set(-monic[..., k])
            if k < size:
                matrix = matrix.at[..., k, k - 2].set(1)
    return matrix


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrices whose products with vectors v of n elements are convolve(a, v, mode).

    Args:
        a: of shape [..., m] with m ≥ 1.
        n: the number of columns.
        mode: "full", "same" or "valid".

    Returns:
        An array of shape [..., k, n].

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import convolution_matrix
    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    kernel, columns = _vector("convolution_matrix", a, 1, "a"), _size("convolution_matrix", n, 1)
    if mode not in ("full", "same", "valid"):
        raise located(
            ValueError,
            f"linalg.convolution_matrix: mode must be 'full', 'same' or 'valid', got {shown(mode)}",
        )
    size = kernel.shape[-1]
    _refuse_size("convolution_matrix", size + columns - 1, columns)
    rows = np.arange(size + columns - 1)
    if mode == "same":
        length = max(size, columns)
        start = (len(rows) - length) // 2
        rows = rows[start : start + length]
    elif mode == "valid":
        rows = rows[min(size, columns) - 1 : len(rows) - (min(size, columns) - 1)]
    places = np.subtract.outer(rows, np.arange(columns))
    is_inside = (places >= 0) & (places < size)
    return jnp.where(
        jnp.asarray(is_inside), kernel[..., np.where(is_inside, places, 0)], jnp.zeros((), kernel.dtype)
    )


def fiedler(a: ArrayLike) -> Array:
    """Fiedler's matrices |aᵢ − aⱼ|.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import fiedler
    >>> fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    x = _vector("fiedler", a, argument="a")
    return jnp.abs(x[..., :, None] - x[..., None, :])


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie's matrices of population growth.

    Args:
        f: the first row, of shape [..., n] with n ≥ 2: how many are born to each age.
        s: the diagonal below the main one, of shape [..., n − 1]: how many of each age survive.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import leslie
    >>> leslie(jnp.array([1, 2]), jnp.array([3]))
    Array([[1, 2],
           [3, 0]], dtype=int32)
    """
    births, survivals = _vector("leslie", f, 2, "f"), _vector("leslie", s, 1, "s")
    if survivals.shape[-1] != births.shape[-1] - 1:
        raise located(
            ValueError,
            f"linalg.leslie: s must have one element less than f along the last axis, got shapes "
            f"{births.shape} and {survivals.shape}",
        )
    return _with_subdiagonal(births, survivals)


def block_diag(*arrs: ArrayLike) -> Array:
    """The matrix with the given matrices along its diagonal and zeros elsewhere.

    Args:
        arrs: matrices; vectors are rows, numbers are matrices of one element.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import block_diag
    >>> block_diag(jnp.array([[1, 2]]), 3)
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    blocks: list[Any] = [jnp.atleast_2d(jnp.asarray(x)) for x in arrs] or [jnp.zeros((1, 0))]
    for position, block in enumerate(blocks):
        if block.ndim != 2:
            raise located(
                ValueError,
                f"linalg.block_diag: argument {position} must have at most 2 axes, got shape {block.shape}",
            )
    dtype = jnp.result_type(*blocks)
    columns = sum(block.shape[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        width = block.shape[1]
        rows.append(jnp.pad(block.astype(dtype), ((0, 0), (before, columns - before - width))))
        before += width
    return jnp.concatenate(rows)
