"""Derivatives with respect to the elements of sparse arrays: `grad`, `value_and_grad`, `jacfwd`, `jacrev`.

The derivative with respect to a sparse array is taken at the elements that it stores, and has its indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax import numpy as jnp
from purax.api import autodiff, jacobians
from purax.experimental.sparse.base import JAXSparse
from purax.experimental.sparse.bcoo import BCOO
from purax.experimental.sparse.operators import with_data
from purax.tree_util import tree_flatten, tree_map, tree_unflatten


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


class _Elements:
    """A function of sparse arrays as one of their elements."""

    def __init__(self, fun: Callable, args: tuple, argnums: int | Sequence[int]):
        self.fun = fun
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        self.numbers = [n % len(args) for n in numbers]
        self.flat = {n: tree_flatten(args[n], is_leaf=_is_sparse) for n in self.numbers}
        self.args = tuple(
            tuple(x.data if _is_sparse(x) else x for x in self.flat[n][0]) if n in self.flat else arg
            for n, arg in enumerate(args)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        full = [self.rebuilt(n, arg) if n in self.flat else arg for n, arg in enumerate(args)]
        return self.fun(*full, **kwargs)

    def rebuilt(self, n: int, parts: Sequence[Any]) -> Any:
        leaves, tree = self.flat[n]
        return tree_unflatten(
            tree, [with_data(x, y) if _is_sparse(x) else y for x, y in zip(leaves, parts, strict=True)]
        )

    def results(self, argnums: int | Sequence[int], parts: Any, rebuild: Callable) -> Any:
        if isinstance(argnums, int):
            return rebuild(self.numbers[0], parts)
        return tuple(rebuild(n, part) for n, part in zip(self.numbers, parts, strict=True))


def value_and_grad(
    fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable:
    """As `purax.value_and_grad`, for arguments that may be sparse or contain sparse arrays."""

    def function(*args: Any, **keywords: Any) -> Any:
        elements = _Elements(fun, args, argnums)
        differentiated = autodiff.value_and_grad(elements, argnums, has_aux=has_aux, **kwargs)
        value, gradient = differentiated(*elements.args, **keywords)
        return value, elements.results(argnums, gradient, elements.rebuilt)

    return function


def grad(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any) -> Callable:
    """As `purax.grad`, for arguments that may be sparse or contain sparse arrays.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> sparse.grad(lambda m: jnp.sum((m @ jnp.ones(2)) ** 2))(sparse.eye(2)).data
    Array([2., 2.], dtype=float32)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    def function(*args: Any, **keywords: Any) -> Any:
        value, gradient = both(*args, **keywords)
        return (gradient, value[1]) if has_aux else gradient

    return function


def _jacobian(transform: Callable) -> Callable:
    def jacobian(
        fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
    ) -> Callable:
        def function(*args: Any, **keywords: Any) -> Any:
            elements = _Elements(fun, args, argnums)
            result = transform(elements, argnums, has_aux=has_aux, **kwargs)(*elements.args, **keywords)
            table, aux = result if has_aux else (result, None)

            def rebuild(n: int, parts: Sequence[Any]) -> Any:
                leaves, tree = elements.flat[n]
                pairs = zip(leaves, parts, strict=True)
                return tree_unflatten(
                    tree, [_sparse_jacobian(x, y) if _is_sparse(x) else y for x, y in pairs]
                )

            # The result has the structure of the function's result, with a tuple of elements for each argument inside.
            inner = tuple if isinstance(argnums, int) else (lambda parts: tuple(map(tuple, parts)))
            is_inner = lambda x: isinstance(x, tuple) and _fits(x, elements, argnums)  # noqa: E731
            out = tree_map(
                lambda parts: elements.results(argnums, inner(parts), rebuild), table, is_leaf=is_inner
            )
            return (out, aux) if has_aux else out

        return function

    return jacobian


def _fits(x: tuple, elements: _Elements, argnums: Any) -> bool:
    counts = [len(elements.flat[n][0]) for n in elements.numbers]
    if isinstance(argnums, int):
        return len(x) == counts[0] and all(hasattr(y, "shape") for y in x)
    return len(x) == len(counts) and all(
        isinstance(y, tuple) and len(y) == n for y, n in zip(x, counts, strict=True)
    )


def _sparse_jacobian(mat: Any, table: Any) -> Any:
    """(*result, *data) as a sparse array (*result, *shape), with the result's axes as batch axes."""
    if not isinstance(mat, BCOO):
        return with_data(mat, table)
    outer = table.shape[: table.ndim - mat.data.ndim]
    indices = jnp.broadcast_to(mat.indices, (*outer, *mat.indices.shape))
    return BCOO(
        (table, indices),
        shape=(*outer, *mat.shape),
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


jacfwd = _jacobian(jacobians.jacfwd)
jacfwd.__doc__ = "As `purax.jacfwd`, for arguments that may be sparse."
jacrev = _jacobian(jacobians.jacrev)
jacrev.__doc__ = "As `purax.jacrev`, for arguments that may be sparse."
jacobian = jacrev
