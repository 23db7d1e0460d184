"""Sylvester's equation A X + X B = C for matrices of one batch and dtype, with its derivative.

X is linear in C. With A = U R Uᴴ and B = V S Vᴴ in Schur's form it is R Y + Y S = F for Y = Uᴴ X V and F = Uᴴ C V, of
which the columns follow from each other.
"""

from __future__ import annotations

from purax import numpy as jnp
from purax.control_flow.linear_solve import custom_linear_solve
from purax.control_flow.scan import scan
from purax.core import dtypes
from purax.core.array import Array
from purax.lax import linalg
from purax.numpy._promotion import promotes_freely
from purax.primitives.linalg.lapack import complex_dtype
from purax.scipy.linalg.decompositions import adjoint, schur


def sylvester(a: Array, b: Array, c: Array, method: str, tol: float) -> Array:
    """The X with a X + X b = c. The transposed equation is that of the transposed matrices."""

    def product(x):
        return a @ x + x @ b

    def solution(_, c):
        return _solution(a, b, c, method, tol)

    def transposed_solution(_, c):
        return _solution(jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2), c, method, tol)

    return custom_linear_solve(product, c, solution, transposed_solution)


@promotes_freely
def _solution(a: Array, b: Array, c: Array, method: str, tol: float) -> Array:
    """The solution, as far as custom_linear_solve is concerned without derivatives."""
    dtype = c.dtype
    wide = complex_dtype(dtype)
    if method == "schur":
        (r, u), (s, v) = (schur(x, output="complex") for x in (a, b))
        left, right = adjoint(u), adjoint(v)
    else:
        (p, u), (q, v) = (jnp.linalg.eig(x) for x in (a, b))
        left, right = jnp.linalg.inv(u), jnp.linalg.inv(v)
        r, s = (jnp.eye(x.shape[-1], dtype=wide) * x[..., None, :] for x in (p, q))
    f = left @ c.astype(wide) @ v
    sums = (
        jnp.diagonal(r, axis1=-2, axis2=-1)[..., :, None] + jnp.diagonal(s, axis1=-2, axis2=-1)[..., None, :]
    )
    is_regular = jnp.all(jnp.abs(sums) >= tol, axis=(-2, -1), keepdims=True)
    y = f / jnp.where(is_regular, sums, 1) if method == "eigen" else _triangular(r, s, f)
    x = u @ y @ right
    if not dtypes.is_complex(dtype):
        x = x.real
    return jnp.where(is_regular, x, jnp.nan).astype(dtype)


def _triangular(r: Array, s: Array, f: Array) -> Array:
    """R Y + Y S = F for upper triangular R and S: (R + sₖₖ) yₖ = fₖ − Σ yⱼ sⱼₖ over j < k."""
    n = s.shape[-1]
    identity = jnp.eye(r.shape[-1], dtype=r.dtype)
    diagonal = jnp.diagonal(s, axis1=-2, axis2=-1)
    columns = jnp.eye(n, dtype=r.dtype)

    def step(y, k):
        mask = columns[k]
        right = (f - y @ s) @ mask  # column k; later columns of y are zero still
        matrix = r + identity * (diagonal @ mask)[..., None, None]
        solved = linalg.triangular_solve(matrix, right[..., None], left_side=True)
        return y + solved * mask, None

    return scan(step, jnp.zeros_like(f), jnp.arange(n))[0]
