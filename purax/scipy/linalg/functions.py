"""Functions of square matrices: the exponential, the square root, and any function of numbers applied to a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.api.autodiff import jvp
from purax.control_flow.branches import cond
from purax.control_flow.custom_jvp import custom_jvp
from purax.control_flow.scan import scan
from purax.control_flow.while_loop import fori_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.lax import linalg
from purax.numpy._linalg.arguments import inexact_arrays, matrices
from purax.numpy._programs import concrete_value
from purax.numpy._promotion import promotes_freely
from purax.primitives.linalg.lapack import complex_dtype, real_dtype
from purax.primitives.stop_gradient import stop_gradient
from purax.scipy.linalg.decompositions import adjoint, schur
from purax.scipy.linalg.sylvester import sylvester
from purax.typing import ArrayLike

# N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005: degrees of Padé's
# approximation and norms up to which they have full accuracy, for single and double precision.
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


@promotes_freely
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices, I + A + A²/2 + …, by scaling and squaring.

    Args:
        A: matrices, of shape [..., n, n].
        upper_triangular: whether they are upper triangular, which makes it a little faster.
        max_squarings: how often to square; matrices of larger norm than 2^max_squarings times 4 or 5 give NaN.

    Returns:
        An array of the shape of `A`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import expm
    >>> expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    x = matrices("expm", A, square=True)
    if x.shape[-1] == 0:
        return x
    degree, limit = _DEGREES[real_dtype(x.dtype).itemsize]
    norm = jnp.max(jnp.sum(jnp.abs(stop_gradient(x)), axis=-2), axis=-1)
    scaled_norm = jnp.where(norm > limit, norm / limit, 1)
    count = jnp.ceil(jnp.log2(scaled_norm))
    result = _pade(x * jnp.exp2(-count)[..., None, None].astype(x.dtype), degree, upper_triangular)
    result = _squared(result, count[..., None, None], max_squarings)
    return jnp.where((count <= max_squarings)[..., None, None], result, jnp.nan)


@promotes_freely
def _pade(x: Array, degree: int, upper_triangular: bool) -> Array:
    """(V − U)⁻¹ (V + U), where U has the odd and V the even powers of Padé's polynomial."""
    coefficients = [
        math.factorial(2 * degree - k) * math.comb(degree, k) // math.factorial(degree)
        for k in range(degree + 1)
    ]
    scale = float(coefficients[degree])
    odd, even = ([c / scale for c in coefficients[start::2]] for start in (1, 0))
    identity = jnp.eye(x.shape[-1], dtype=x.dtype)
    square = x @ x
    powers = [identity, square, square @ square]
    powers.append(powers[2] @ square)

    def combined(terms: list[float]) -> Array:
        """Σ terms[k] x^(2k), of up to four terms directly, of more by splitting off x⁶."""
        low = sum((powers[k] * c for k, c in enumerate(terms[:4])), jnp.zeros_like(x))
        if len(terms) <= 4:
            return low
        return low + powers[3] @ sum((powers[k] * c for k, c in enumerate(terms[4:], 1)), jnp.zeros_like(x))

    u, v = x @ combined(odd), combined(even)
    if upper_triangular:
        return linalg.triangular_solve(v - u, v + u, left_side=True)
    return jnp.linalg.solve(v - u, v + u)


def _squared(x: Array, count: Array, limit: int) -> Array:
    """Each matrix squared as often as `count` says, at most `limit` times."""

    def step(x, k):
        following = cond(jnp.any(k < count), lambda x: jnp.where(k < count, x @ x, x), lambda x: x, x)
        return following, None

    known = concrete_value(count)
    if known is not None:  # as many steps as are needed
        finite = known[np.isfinite(known)]
        for k in range(min(int(finite.max(initial=0)), limit)):
            x = jnp.where(k < count, x @ x, x)
        return x
    return scan(step, x, jnp.arange(limit))[0]


@promotes_freely
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """The derivative of `expm` at A in the direction E.

    Args:
        A: matrices, of shape [..., n, n].
        E: the directions, of the same shape.
        method: "SPS", "blockEnlarge" or None, which give the same.
        compute_expm: whether to return expm(A) too.

    Returns:
        `(expm(A), derivative)`, or the derivative.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import expm_frechet
    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False)
    Array([[1.]], dtype=float32)
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise located(
            ValueError, f"linalg.expm_frechet: method must be 'SPS' or 'blockEnlarge', got {shown(method)}"
        )
    a, e = inexact_arrays("expm_frechet", A, E)
    if a.shape != e.shape:
        raise located(
            ValueError, f"linalg.expm_frechet: A and E must have one shape, got {a.shape} and {e.shape}"
        )
    value, derivative = jvp(expm, (a,), (e,))
    return (value, derivative) if compute_expm else derivative


def _diagonal_by_diagonal(start: Array, entry: Callable[[Array], Array]) -> Array:
    """An upper triangular matrix from its diagonal: `entry(known)` gives the elements of the next diagonal."""
    n = start.shape[-1]
    offsets = jnp.asarray(np.subtract.outer(np.arange(n), np.arange(n)) * -1)

    def step(k, known):
        return jnp.where(offsets == k, entry(known), known)

    return fori_loop(1, n, step, start)


def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """A function of numbers applied to a square matrix, by Parlett's recurrence. On CPU only.

    Args:
        A: a matrix of shape [n, n], best with distinct eigenvalues.
        func: a function of arrays of complex numbers, element by element.
        disp: whether to leave out the estimate of the error.

    Returns:
        A complex matrix, or the matrix and an estimate of its relative error.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import funm
    >>> jnp.round(funm(jnp.array([[4.0, 0.0], [0.0, 9.0]]), jnp.sqrt).real, 3)
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    a = matrices("funm", A, square=True)
    if a.ndim != 2:
        raise located(ValueError, f"linalg.funm: A must be one matrix, got shape {a.shape}")
    form, vectors = schur(a, output="complex")
    diagonal = jnp.diagonal(form)
    gaps = diagonal[None, :] - diagonal[:, None]
    safe = jnp.where(gaps == 0, 1, gaps)
    start = jnp.diag(func(diagonal).astype(form.dtype))
    result = _diagonal_by_diagonal(start, lambda known: (form @ known - known @ form) / safe)
    matrix = vectors @ result @ adjoint(vectors)
    if disp:
        return matrix
    epsilon = float(dtypes.finfo(real_dtype(form.dtype)).eps)
    above = jnp.triu(jnp.abs(form), 1)
    smallest = jnp.min(
        jnp.where(jnp.asarray(np.triu(np.ones(form.shape, bool), 1)), jnp.abs(gaps), 1), initial=1
    )
    size = jnp.max(jnp.sum(above, axis=0), initial=0)
    error = jnp.clip(epsilon / jnp.where(smallest == 0, epsilon, smallest) * size, epsilon, 1)
    return matrix, jnp.where(jnp.all(jnp.isfinite(jnp.abs(matrix))), error, jnp.inf)


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The square root of square matrices whose eigenvalues have real parts ≥ 0. On CPU only.

    Args:
        A: matrices, of shape [..., n, n].
        blocksize: only 1.

    Returns:
        Complex matrices X with X X = A. They can be differentiated where A is regular.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.linalg import sqrtm
    >>> jnp.round(sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real, 3)
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize != 1:
        raise located(NotImplementedError, "linalg.sqrtm: only blocksize=1 is supported")
    a = matrices("sqrtm", A, square=True)
    return _square_root(a.astype(complex_dtype(a.dtype)))


@custom_jvp
def _square_root(a: Array) -> Array:
    form, vectors = schur(a)
    roots = jnp.sqrt(jnp.diagonal(form, axis1=-2, axis2=-1))
    sums = roots[..., :, None] + roots[..., None, :]
    safe = jnp.where(sums == 0, 1, sums)
    start = jnp.eye(a.shape[-1], dtype=a.dtype) * roots[..., None, :]
    root = _diagonal_by_diagonal(start, lambda known: (form - known @ known) / safe)
    return vectors @ root @ adjoint(vectors)


@_square_root.defjvp
def _square_root_rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
    # X dX + dX X = dA
    (a,), (da,) = primals, tangents
    root = _square_root(a)
    return root, sylvester(root, root, da, "schur", 0.0)
