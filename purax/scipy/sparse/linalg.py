"""Solutions of linear systems of which only products with the matrix are known, as `jax.scipy.sparse.linalg`.

Matrices may be functions, and vectors pytrees of arrays. Solutions are differentiated implicitly: their derivatives are
solutions of systems with the same matrix, or its transpose, by the same method, and not of the loop inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax import numpy as jnp
from purax.api.autodiff import linear_transpose
from purax.core import dtypes
from purax.core.source import located
from purax.errors import shown
from purax.flatten_util import ravel_pytree
from purax.lax import custom_linear_solve
from purax.numpy._promotion import as_array
from purax.scipy.sparse import krylov
from purax.tree_util import tree_leaves, tree_map, tree_structure


def cg(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Any, None]:
    """The solution of A x = b by conjugate gradients, for a matrix that is Hermitian and positive definite.

    Args:
        A: a matrix, a function from vectors to vectors, or an object with `@`.
        b: the right-hand side: an array, or a pytree of arrays, as a vector.
        x0: where to start; zeros if None.
        tol, atol: the residual's norm is to be at most max(tol · ‖b‖, atol).
        maxiter: the largest number of iterations, ten times the size of `b` if None.
        M: an approximation of the inverse of `A`, in one of the forms of `A`.

    Returns:
        The solution, which is like `b`, and None.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.sparse.linalg.cg(jnp.array([[4.0, 1.0], [1.0, 3.0]]), jnp.array([1.0, 2.0]))[0].round(4)
    Array([0.0909, 0.6364], dtype=float32)
    """
    return _solve("cg", krylov.conjugate_gradients, A, b, x0, M, tol, atol, maxiter, is_symmetric=True), None


def bicgstab(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Any, None]:
    """The solution of A x = b by stabilized biconjugate gradients, for any matrix.

    The arguments and results are those of `cg`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.sparse.linalg.bicgstab(jnp.array([[4.0, 1.0], [2.0, 3.0]]), jnp.array([1.0, 2.0]))[0].round(4)
    Array([0.1, 0.6], dtype=float32)
    """
    return _solve("bicgstab", krylov.stabilized_biconjugate_gradients, A, b, x0, M, tol, atol, maxiter), None


def gmres(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    *,
    tol: Any = 1e-5,
    atol: Any = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """The solution of A x = b with the least residual in a space of `restart` products, again and again.

    Args:
        A, b, x0, tol, atol, M: as those of `cg`; any matrix will do.
        restart: the dimension of the space.
        maxiter: how many spaces are built at most, ten times the size of `b` if None.
        solve_method: "batched" finds the least residual when a space is complete; "incremental" after every product,
            and stops when it is small enough.

    Returns:
        The solution, which is like `b`, and 0, or -1 if it is not finite.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.sparse.linalg.gmres(jnp.array([[4.0, 1.0], [2.0, 3.0]]), jnp.array([1.0, 2.0]))[0].round(4)
    Array([0.1, 0.6], dtype=float32)
    """
    methods: dict[str, Callable] = {
        "batched": krylov.least_residuals,
        "incremental": krylov.incremental_least_residuals,
    }
    if solve_method not in methods:
        raise located(
            ValueError, f"gmres: solve_method must be 'batched' or 'incremental', got {shown(solve_method)}"
        )
    size = sum(jnp.size(leaf) for leaf in tree_leaves(b))

    def method(*args: Any) -> Any:
        return methods[solve_method](*args, max(min(restart, size), 1))

    x = _solve("gmres", method, A, b, x0, M, tol, atol, maxiter)
    is_finite = jnp.asarray([jnp.all(jnp.isfinite(leaf)) for leaf in tree_leaves(x)])
    return x, jnp.where(jnp.all(is_finite), 0, -1)


def _solve(
    name: str,
    method: Callable,
    A: Any,  # noqa: N803
    b: Any,
    x0: Any,
    M: Any,  # noqa: N803
    tol: Any,
    atol: Any,
    maxiter: int | None,
    is_symmetric: bool = False,
) -> Any:
    """`method` is a function of a product, a vector b, where to start, a preconditioner, the limit of the residual, and
    the number of iterations, all on vectors.
    """
    matrix_dtypes = [operator.dtype for operator in (A, M) if getattr(operator, "dtype", None) is not None]
    b = tree_map(lambda leaf: as_array(leaf, name, 1), b)
    if x0 is None:
        x0 = tree_map(jnp.zeros_like, b)
    elif tree_structure(x0) != tree_structure(b):
        raise located(
            ValueError,
            f"{name}: x0 and b must have the same structure, got {tree_structure(x0)} and {tree_structure(b)}",
        )
    shapes = [[jnp.shape(leaf) for leaf in tree_leaves(tree)] for tree in (x0, b)]
    if shapes[0] != shapes[1]:
        raise located(
            ValueError,
            f"{name}: the arrays of x0 and b must have equal shapes, got {shapes[0]} and {shapes[1]}",
        )
    # All leaves can hold the solution: what is a number in A or x0 counts, and integers become floating point numbers.
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(*tree_leaves(b), *tree_leaves(x0), *matrix_dtypes))
    b, x0 = (tree_map(lambda leaf: jnp.asarray(leaf).astype(dtype), tree) for tree in (b, x0))
    product = _product(name, "A", A, b)
    precondition = (lambda x: x) if M is None else _product(name, "M", M, b)
    count = 10 * sum(leaf.size for leaf in tree_leaves(b)) if maxiter is None else maxiter

    def solve_from(start: Any, precondition: Callable) -> Callable:
        def solve(product: Callable, b: Any) -> Any:
            vector, unravel = ravel_pytree(b)
            first = ravel_pytree(start)[0] if start is not None else jnp.zeros_like(vector)

            def on_vectors(function: Callable) -> Callable:
                return lambda x: ravel_pytree(function(unravel(x)))[0]

            limit = jnp.maximum(tol * jnp.linalg.norm(vector), atol)
            return unravel(method(on_vectors(product), vector, first, on_vectors(precondition), limit, count))

        return solve

    if is_symmetric and not dtypes.is_complex(dtype):
        return custom_linear_solve(product, b, solve_from(x0, precondition), symmetric=True)
    transposed = precondition
    if M is not None:
        transposed = lambda x: linear_transpose(precondition, b)(x)[0]  # noqa: E731
    return custom_linear_solve(product, b, solve_from(x0, precondition), solve_from(None, transposed))


def _product(name: str, argument: str, operator: Any, b: Any) -> Callable:
    """A matrix, a function or an object with `@` as a function, whose results have the types of its argument."""
    if callable(operator):
        function = operator
    elif hasattr(operator, "__matmul__"):
        shape: tuple[int, ...] = getattr(operator, "shape", ())
        if len(shape) != 2 or shape[0] != shape[1]:
            raise located(ValueError, f"{name}: {argument} must be a square matrix, got shape {tuple(shape)}")
        first = tree_leaves(b)[0].shape if len(tree_leaves(b)) == 1 else ()
        if not first or first[0] != shape[1] or not hasattr(b, "shape"):
            raise located(
                ValueError,
                f"{name}: {argument} has the shape {tuple(shape)}, so b must be an array with {shape[1]} rows, got "
                f"{tree_map(jnp.shape, b)}",
            )
        function = lambda x: operator @ x  # noqa: E731
    else:
        raise located(
            TypeError, f"{name}: {argument} must be a matrix, a function or have `@`, got {shown(operator)}"
        )

    def product(x: Any) -> Any:
        y = function(x)
        given = [(jnp.shape(leaf)) for leaf in tree_leaves(y)]
        wanted = [(jnp.shape(leaf)) for leaf in tree_leaves(x)]
        if tree_structure(y) != tree_structure(x) or given != wanted:
            raise located(
                ValueError,
                f"{name}: {argument} must return what its argument looks like, {tree_structure(x)} of shapes "
                f"{wanted}, but returned {tree_structure(y)} of shapes {given}",
            )
        return tree_map(lambda new, old: jnp.asarray(new).astype(old.dtype), y, x)

    return product
