"""What each parameter of a public function may be: rules by the parameter's name, or by function and parameter.

A rule takes the draw of a call and returns a value, or the text of an expression. Parameters without a rule are arrays
if they are required and fail the test if they are not, unless `NOT_DRAWN` says why.
"""

from __future__ import annotations

from typing import Any

from tests.fuzz.function_values import DTYPES, SIZES, Draw, Rule

NOT_DRAWN = {
    "out": "raises unless it is None, which tests of arguments try",
    "out_sharding": "shardings change no value; tests of shardings try them",
    "sharding": "as out_sharding",
    "device": "devices change no value",
    "order": "C is the only order of arrays; of reshape, ravel and others it is drawn",
    "overwrite_a": "a hint",
    "overwrite_b": "a hint",
    "overwrite_c": "a hint",
    "overwrite_data": "a hint",
    "overwrite_input": "a hint",
    "check_finite": "a hint",
    "precision": "a hint on this platform",
    "accuracy": "depends on the platform",
    "implementation": "depends on the platform",
    "use_magma": "depends on the platform",
    "lwork": "a hint",
    "lapack_driver": "a hint",
    "turbo": "a hint",
    "debug": "prints",
    "disp": "prints",
    "_dot_general": "a private way to other products",
    "_split_transpose": "private",
    "kw": "arguments of functions that are given",
    "kwargs": "arguments of functions that are given, or of a mode (see the call rule of pad)",
    "kind": "a hint of sort and argsort; of others it is drawn",
    "max_steps": "purax's own",
    "dynamic_shape": "of an algorithm that is not used here",
    "select_callable": "jax has none",
    "enable_eigvec_derivs": "changes derivatives only",
    "reduction_input_size_override": "of accelerators",
    "aggregate_to_topk": "of accelerators",
    "recall_target": "of accelerators",
    "prevent_mlir_dce": "changes no value",
    "name": "a name",
    "_": "ignored",
    "impl": "the default generator",
    "linear": "old",
    "M": "a preconditioner; of windows and matrices it is drawn",
    "per_platform": "depends on the platform",
    "tangent_solve": "changes derivatives only",
    "transpose_solve": "changes derivatives only",
    "symmetric": "changes derivatives only",
    "inplace": "raises unless it is False, which is always given",
    "batch_group_count": "with feature_group_count, in the call rule",
    "key": "the default; where it is required it is drawn",
    "group_offset": "raises",
    "max_squarings": "the default",
    "series_order": "the default",
    "n_iter": "the default",
    "diff_n": "jax has no other value",
    "n_max": "the default",
    "eps": "the default",
    "max_iterations": "the default",
    "blocksize": "jax has no other value",
    "tol": "the default",
    "eigvals": "jax has no other value",
    "bucket_size": "a hint",
    "select_range": "see the call rule",
    "select": "see the call rule",
    "args": "see the call rules",
    "has_aux": "of functions that are given",
    "return_weak_type_flag": "purax's own",
    "edge_order": "raises",
}

boolean: Rule = lambda d: d.chance(0.5)  # noqa: E731
vector: Rule = lambda d: d.array(shape=(d.integer(0, 5) if d.chance(0.9) else d.one_of(SIZES),))  # noqa: E731
small: Rule = lambda d: d.integer(0, 5)  # noqa: E731
size: Rule = lambda d: d.one_of((0, 1, 3, 7))  # noqa: E731
offset: Rule = lambda d: d.integer(-4, 4)  # noqa: E731
axis: Rule = lambda d: d.axis()  # noqa: E731
any_array: Rule = lambda d: d.array()  # noqa: E731
scalar: Rule = lambda d: d.array(shape=())  # noqa: E731
positive: Rule = lambda d: d.array(low=0.1, high=4.0, kinds="h")  # noqa: E731
probability: Rule = lambda d: d.array(low=0.0, high=1.0, kinds="h")  # noqa: E731


def option(*values: Any) -> Rule:
    """One of some values, given as texts where they are strings."""
    return lambda d: repr(d.one_of(values))


def dtype(d: Draw) -> str:
    name = d.one_of(
        (*DTYPES, "float32", "float32", "int32")
    )  # purax honours 64 bits where they are asked for
    if name == "bool" or d.chance(0.1):
        return d.one_of(("bool", "int", "float", "complex", "jnp.bool_"))
    return f"jnp.{name}"


def float_dtype(d: Draw) -> str:
    return d.one_of(("jnp.float32", "jnp.float16", "jnp.bfloat16", "float"))


def shape(d: Draw) -> Any:
    return d.one_of((d.some_shape(d.integer(0, 3)), d.integer(0, 4)))


def some_shape(d: Draw) -> tuple[int, ...]:
    return d.some_shape(d.integer(0, 3))


def where(d: Draw) -> str:
    rank = d.integer(0, len(d.first))
    kept = tuple(1 if d.chance(0.2) else n for n in d.first[len(d.first) - rank :])
    return d.array(shape=kept, dtype="bool")


def initial(d: Draw) -> str:
    return d.one_of((scalar, scalar, "2", "-1.5", "inf", "nan", "0"))


def fill_value(d: Draw) -> str:
    return d.one_of((scalar, scalar, "nan", "1.5", "-1", "7", "True", "1j", "inf"))


def index_like(d: Draw) -> str:
    """Indices into the first array, some of them outside."""
    n = max(d.first[0] if d.first else 1, 1)
    reach = n if d.chance(0.7) else n + 3
    return d.array(shape=d.some_shape(d.integer(0, 2)), kinds="iu", low=-reach, high=reach - 1)


def along_axis(d: Draw) -> str:
    """Indices of the first array's rank, and along the last axis."""
    n = max(d.first[-1] if d.first else 1, 1)
    shape = (*d.first[:-1], d.integer(0, 4)) if d.first else (2,)
    return d.array(shape=shape, kinds="iu", low=-n, high=n - 1)


def split_points(d: Draw) -> Any:
    return d.one_of((d.integer(1, 3), sorted(d.integer(-1, 5) for _ in range(d.integer(0, 3)))))


def arrays_alike(d: Draw) -> str:
    shape = d.shape if d.chance(0.85) else d.broadcastable()
    items = [d.array(shape=shape) for _ in range(d.integer(1, 3))]
    return (
        "[" + ", ".join(items) + "]"
        if d.chance(0.8)
        else d.array(shape=(d.integer(1, 3), *d.shape), plain=True)
    )


def lengths(d: Draw) -> Any:
    """Numbers of points of a transform along the last axes."""
    return d.one_of((None, tuple(d.integer(1, 5) for _ in range(min(2, max(1, len(d.first)))))))


def key(d: Draw) -> str:
    text = d.one_of(("m.random.key({})", "m.random.key({})", "m.random.PRNGKey({})")).format(d.integer(0, 99))
    return d.argument(text)


def axis_pair(d: Draw) -> Any:
    rank = len(d.first)
    return d.permutation(rank)[:2] if rank > 1 else (0, 1)


def tensordot_axes(d: Draw) -> Any:
    rank = len(d.first)
    if d.chance(0.5):
        return d.integer(0, min(rank, 2))
    count = d.integer(0, rank)
    chosen = d.permutation(rank)[:count]
    return (list(chosen), list(chosen))


def decimals(d: Draw) -> int:
    return d.one_of((0, 1, 2, -1, -2, 5, 8, 12, 20, 40, 60, 400, -5, -12, -40))


def bins(d: Draw) -> Any:
    if d.chance(0.6):
        return d.integer(1, 6)
    return f"jnp.asarray({sorted(round(d.random.uniform(-9, 9), 1) for _ in range(d.integer(2, 5)))})"


def quantile(d: Draw) -> str:
    high = 100.0 if "percentile" in d.drawn["function"] else 1.0
    return d.array(shape=d.one_of(((), (), (2,), (0,), (2, 2))), kinds="f", low=0.0, high=high)


def matrix_order(d: Draw) -> str:
    return d.one_of(("None", "1", "2", "-1", "-2", "inf", "-inf", "'fro'", "'nuc'", "0", "3", "0.5"))


def square(d: Draw) -> str:
    n = d.integer(0, 5) if d.chance(0.3) else d.integer(1, 4)
    batch = d.some_shape(d.one_of((0, 0, 1)))
    return d.array(shape=(*batch, n, n), kinds="fc" if d.chance(0.8) else "fciub", low=-4, high=4, plain=True)


def hermitian(d: Draw) -> str:
    """Either triangle says the same."""
    name = square(d)
    return f"({name} + jnp.swapaxes({name}, -1, -2).conj())"


def right_side(d: Draw) -> str:
    """Right sides of a system with the first array."""
    n = d.first[-1] if d.first else 1
    return d.array(
        shape=d.one_of(((n,), (n, 2), (*d.first[:-1], 3))),
        kinds="fc" if d.chance(0.8) else "fiub",
        low=-4,
        high=4,
        plain=True,
    )


def matrix(d: Draw) -> str:
    shape = (*d.some_shape(d.one_of((0, 0, 1))), d.integer(0 if d.chance(0.2) else 1, 4), d.integer(1, 4))
    return d.array(shape=shape, kinds="fc" if d.chance(0.8) else "fciub", low=-4, high=4, plain=True)


def product_with(d: Draw) -> str:
    """What may stand to the right of the first array in a product of matrices."""
    if not d.first:
        return d.array(shape=())
    n = d.first[-1]
    return d.array(shape=d.one_of(((n,), (n, d.integer(0, 3)), (*d.first[:-2], n, 2))))


def segments(d: Draw) -> str:
    n = d.first[0] if d.first else 1
    return d.array(
        shape=(n,), kinds="iu" if d.chance(0.1) else "i", dtype="int32", low=-1, high=4, plain=True
    )


PARAMETERS: dict[str, Rule] = {
    "axis": lambda d: d.axis(),
    "axes": lambda d: d.axes(),
    "dtype": dtype,
    "keepdims": boolean,
    "where": where,
    "initial": initial,
    "fill_value": fill_value,
    "size": size,
    "shape": shape,
    "key": key,
    "k": offset,
    "offset": offset,
    "n": small,
    "q": quantile,
    "norm": option(None, "ortho", "forward", "backward"),
    "s": lengths,
    "ddof": option(0, 1, 2, 0.5),
    "correction": option(0, 1, 1.5),
    "mean": lambda d: d.array(shape=d.first),
    "weights": lambda d: d.array(shape=d.first, kinds="f", low=0.0, high=3.0),
    "copy": boolean,
    "stable": boolean,
    "descending": boolean,
    "equal_nan": boolean,
    "rtol": option(1e-05, 0.1, 0.0),
    "atol": option(1e-08, 0.1, 0.0),
    "preferred_element_type": lambda d: d.one_of(("None", "jnp.float32", "jnp.complex64")),
    "shapes": lambda d: d.broadcastable(),
    "arrays": arrays_alike,
    "tup": arrays_alike,
    "arys": any_array,
    "operands": any_array,
    "indices_or_sections": split_points,
    "unique_indices": lambda d: False,
    "indices_are_sorted": lambda d: False,
    "side": option("left", "right"),
    "right": boolean,
    "include_initial": boolean,
    "promote_integers": boolean,
    "endpoint": boolean,
    "retstep": boolean,
    "num": option(0, 1, 2, 5, 50),
    "base": option(2.0, 10.0, 3),
    "rowvar": boolean,
    "bias": boolean,
    "deg": boolean,
    "decimals": decimals,
    "minlength": small,
    "length": size,
    "assume_unique": lambda d: False,
    "assume_unique_indices": lambda d: False,
    "return_indices": boolean,
    "return_index": boolean,
    "return_inverse": boolean,
    "return_counts": boolean,
    "sorted": lambda d: True,
    "invert": boolean,
    "bins": bins,
    "range": lambda d: d.one_of((None, (-3.0, 3.0), (0, 5))),
    "density": boolean,
    "returned": boolean,
    "bitorder": option("big", "little"),
    "count": lambda d: d.one_of((None, d.integer(-3, 12))),
    "indexing": option("xy", "ij"),
    "sparse": boolean,
    "increasing": boolean,
    "method": option("linear", "lower", "higher", "midpoint", "nearest"),
    "trim": option("fb", "f", "b"),
    "N": small,
    "discont": option(None, 1.0),
    "period": option(6.283185307179586, 3.0, 2),
    "dx": option(1.0, 2, 0.5),
    "prepend": lambda d: d.array(shape=d.one_of(((), d.first))),
    "append": lambda d: d.array(shape=d.one_of(((), d.first))),
    "to_end": vector,
    "to_begin": vector,
    "nan": scalar,
    "posinf": scalar,
    "neginf": scalar,
    "left": scalar,
    "trim_leading_zeros": lambda d: False,
    "strip_zeros": boolean,
    "unroll": option(1, 4, 16),
    "rcond": option(None, 1e-3, 0.1),
    "full": boolean,
    "cov": boolean,
    "axisa": axis,
    "axisb": axis,
    "axisc": axis,
    "axis1": axis,
    "axis2": axis,
    "ndim": option(1, 2, 3),
    "ndmin": option(0, 1, 2, 4),
    "total_repeat_length": option(0, 2, 7),
    "start": lambda d: d.axis(),
    "wrap_negative_indices": boolean,
    "wrap": boolean,
    "default": scalar,
    "optimize": option("auto", "optimal", False),
    "casting": option("safe", "same_kind", "unsafe", "no", "equiv"),
    # linear algebra
    "hermitian": lambda d: False,
    "full_matrices": boolean,
    "compute_uv": boolean,
    "symmetrize_input": boolean,
    "UPLO": option(None, "L", "U"),
    "upper": boolean,
    "lower": boolean,
    "numpy_resid": boolean,
    "ord": matrix_order,
    "subset_by_index": lambda d: None,
    "unit_diagonal": boolean,
    "trans": option(0, 1, 2),
    "pivoting": boolean,
    "left_side": boolean,
    "transpose_a": boolean,
    "conjugate_a": boolean,
    "sort_eigenvalues": lambda d: True,
    "compute_left_eigenvectors": boolean,
    "compute_right_eigenvectors": boolean,
    "compute_schur_vectors": boolean,
    "sort_eig_vals": lambda d: False,
    "is_hermitian": lambda d: False,
    "algorithm": lambda d: None,
    "perturb_singular": lambda d: False,
    "symmetrize_output": lambda d: True,
    "alpha": option(1.0, 0.5, 2),
    "beta": option(0.0, 2.0),
    "permute_l": boolean,
    "eigvals_only": boolean,
    "calc_q": boolean,
    "compute_expm": boolean,
    "upper_triangular": lambda d: False,
    "conjugate": boolean,
    "repetition": boolean,
    "exact": lambda d: False,
    "assume_a": option("gen", "pos"),
    # lax
    "dimension": lambda d: d.integer(0, max(len(d.first) - 1, 0)),
    "dimensions": lambda d: tuple(sorted(d.permutation(len(d.first))[: d.integer(0, len(d.first))])),
    "new_dtype": dtype,
    "index_dtype": lambda d: d.one_of(("jnp.int32", "jnp.uint8", "jnp.int16")),
    "reverse": boolean,
    "is_stable": lambda d: True,
    "num_keys": lambda d: 1,
    "allow_negative_indices": boolean,
    "out_dtype": lambda d: None,
    # nn, random, signal
    "return_sign": boolean,
    "approximate": boolean,
    "negative_slope": scalar,
    "epsilon": option(1e-5, 0.1, 0.0),
    "variance": lambda d: d.array(shape=d.first, kinds="f", low=0.1, high=3.0),
    "replace": boolean,
    "independent": boolean,
    "minval": scalar,
    "maxval": scalar,
    "sigma": positive,
    "nan_policy": option("propagate", "omit"),
    "num_segments": option(None, 0, 3, 6),
    "fs": option(1.0, 2.0),
    "window": option("hann", "boxcar"),
    "nperseg": option(4, 8),
    "noverlap": option(None, 2),
    "nfft": option(None, 8, 9),
    "detrend": option(False, "constant", "linear"),
    "return_onesided": boolean,
    "scaling": option("density", "spectrum"),
    "average": option("mean", "median"),
    "boundary": option(None, "zeros"),
    "padded": boolean,
    "input_onesided": lambda d: True,
    "time_axis": lambda d: -1,
    "freq_axis": lambda d: -2,
    "fillvalue": option(0, 1.5, 2),
    "antialias": boolean,
    "type": lambda d: 2,
    "bp": lambda d: 0,
    "cval": option(0.0, 1.5),
    "restart": option(20, 3),
    "maxiter": option(None, 3, 20),
    "solve_method": option("batched", "incremental"),
    "scale": option(1.0, 0.5),
    "column_axis": option(-1, 0),
    "in_axis": option(-2, 0),
    "out_axis": option(-1, 1),
    "batch_axis": lambda d: (),
    "stddev": option(0.01, 1.0),
    "return_residual": lambda d: False,
    "stride": option(1, 2),
    "batch_size": option(None, 2),
    "version": lambda d: 0,
    "loc": scalar,
}
