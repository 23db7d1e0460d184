"""Sums of products over shared axes: `dot_general`, of which dot, matmul, tensordot and einsum are made.

Operands are real, complex, integer or bool, both of one kind; their widths may differ. Narrow floats are summed in
float32, integers wrap around. The axes of the result are: batch axes, free axes of `lhs`, free axes of `rhs`.
"""

from __future__ import annotations

import enum
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from purax.config import config
from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.limits import finite, shallow
from purax.core.memo import Memo
from purax.core.primitive import Primitive, is_linear
from purax.errors import ShardingTypeError, shown
from purax.primitives import layouts
from purax.primitives.elementwise.elementwise import add
from purax.primitives.products.native_products import native_product
from purax.primitives.reductions.stored_reductions import dot_of_vectors
from purax.primitives.shape.broadcasting import transpose
from purax.xla.stablehlo import element_type

DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]

_FLOAT16 = np.dtype(np.float16)
_FLOAT32 = np.dtype(np.float32)
_FLOAT64 = np.dtype(np.float64)
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_FLOAT8_E5M2 = np.dtype(ml_dtypes.float8_e5m2)
_GEMM_FLOATS8 = {
    np.dtype(ml_dtypes.float8_e4m3fn),
    _FLOAT8_E5M2,
}  # what a GPU multiplies, also one by the other


# --- precision


class Precision(enum.Enum):
    """How exactly accelerators multiply float32: DEFAULT is fastest, HIGHEST is float32 throughout.

    The CPU always computes in full precision.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """How a product of matrices is computed on accelerators: element types of the factors and of the sum.

    Attributes:
        lhs_precision_type, rhs_precision_type: what the factors are rounded to.
        accumulation_type: in what the products are summed.
        lhs_component_count, rhs_component_count: into how many parts a factor is split.
        num_primitive_operations: how many products of parts are summed.
        allow_imprecise_accumulation: whether the sum may lose low bits for speed.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named algorithms for products of matrices: the types of the factors, then that of the sum.

    `X3`, `X6` and `X9` split float32 factors into parts and sum that many products of parts.
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISION_NAMES = {
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
}


def canonical_precision(precision: Any) -> Any:
    """A user's `precision` as a parameter: None, a pair of `Precision`, or an algorithm.

    Args:
        precision: None (then the configured `default_matmul_precision`), a `Precision`, a name such as "highest", a
            pair of those for the two operands, a `DotAlgorithm`, or a `DotAlgorithmPreset` or its name.

    >>> canonical_precision("highest")
    (Precision.HIGHEST, Precision.HIGHEST)
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    return _canonical_precision(shallow(tuple(precision) if isinstance(precision, list) else precision))


@functools.lru_cache(maxsize=256)
def _canonical_precision(precision: Any) -> Any:
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    found = [p if isinstance(p, Precision) else _PRECISION_NAMES.get(p, "") for p in pair]
    found = [Precision.DEFAULT if p is None else given for p, given in zip(pair, found, strict=True)]
    if len(found) != 2 or "" in found:
        names = ", ".join(map(repr, _PRECISION_NAMES))
        presets = ", ".join(DotAlgorithmPreset.__members__)
        raise ValueError(
            f"precision must be None, a lax.Precision, one of {names}, a pair of these, a lax.DotAlgorithm, or one of "
            f"the algorithms {presets}; got {shown(precision)}"
        )
    return tuple(found)


def rounded_dtype(precision: Any, dtype: np.dtype) -> np.dtype:
    """What the algorithm `precision` rounds operands of `dtype` to before anything else, on every platform."""
    if isinstance(precision, DotAlgorithmPreset):
        for prefix, rounded in (("F16_", _FLOAT16), ("F64_", _FLOAT64), ("BF16_BF16_BF16", _BFLOAT16)):
            if precision.name.startswith(prefix):
                return rounded
    return dtype


def _algorithm_result(precision: DotAlgorithmPreset, rounded: np.dtype) -> np.dtype:
    return _FLOAT32 if precision.name.endswith("_F32") else rounded


def precision_attributes(precision: Any, platform: str, lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> str:
    """The StableHLO attributes of a product of matrices, each with a comma in front."""
    if precision is None:
        return ""
    if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
        names = ", ".join(f"#stablehlo<precision {p.name}>" for p in precision)
        return f", precision_config = [{names}]"
    if (
        platform == "cpu" or precision is DotAlgorithmPreset.DEFAULT
    ):  # the CPU is at least as exact as any of them
        return ""
    if isinstance(precision, DotAlgorithmPreset) and not _has_algorithm(precision, lhs, rhs, out):
        return ""
    left, right, total, *counts, fast = _algorithm(precision, lhs, rhs, out)
    fields = (
        f"lhs_precision_type = {left}, rhs_precision_type = {right}, accumulation_type = {total}, "
        f"lhs_component_count = {counts[0]}, rhs_component_count = {counts[1]}, "
        f"num_primitive_operations = {counts[2]}, allow_imprecise_accumulation = {'true' if fast else 'false'}"
    )
    return f", algorithm = #stablehlo.dot_algorithm<{fields}>"


def _has_algorithm(preset: DotAlgorithmPreset, lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> bool:
    """Whether XLA has an algorithm for these dtypes on a GPU; without it, it is at least as exact, as on the CPU."""
    name = preset.name
    if name.startswith("ANY_F8"):
        return {lhs, rhs} <= _GEMM_FLOATS8 and {lhs, rhs} != {_FLOAT8_E5M2} and "f32" in (
            name.split("_")[4].lower(), element_type(out)
        )  # fmt: skip
    if name.startswith("F16_F16_F32"):
        return lhs == rhs == _FLOAT16
    if name == "BF16_BF16_F32":
        return lhs == rhs and lhs in (_BFLOAT16, _FLOAT32) and out == _FLOAT32
    if name.startswith("F64"):
        return lhs == rhs == out == _FLOAT64
    return name not in ("F16_F16_F16", "BF16_BF16_BF16") and lhs == rhs == out == _FLOAT32


def _algorithm(precision, lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> tuple:
    """The fields of a dot algorithm, with its types as StableHLO names them."""
    if isinstance(precision, DotAlgorithm):
        types = [t if t == "tf32" else element_type(dtypes.as_exact_dtype(t)) for t in precision[:3]]
        return (*types, *precision[3:])
    name = precision.name
    fast = name.endswith("_FAST_ACCUM")
    parts = name.removesuffix("_FAST_ACCUM").split("_")
    if name.startswith("ANY_F8"):
        total = "f32" if parts[-1] == "F32" else element_type(out)
        return element_type(lhs), element_type(rhs), total, 1, 1, 1, fast
    operations = int(parts[3][1:]) if len(parts) > 3 else 1
    return (*(part.lower() for part in parts[:3]), 1, 1, operations, False)


# --- the primitive


class DotGeneral(Primitive):
    """Sums of products of `lhs` and `rhs` over pairs of contracted axes, for each index of the pairs of batch axes."""

    name = "dot_general"
    is_bilinear = True
    is_matrix_product = True
    is_heavy = True
    is_fused = False
    reads_transposes = True

    def infer(self, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        _check_pairs("contracting", lhs, rhs, lhs_contract, rhs_contract)
        _check_pairs("batch", lhs, rhs, lhs_batch, rhs_batch)
        for side, contract, batch in (("lhs", lhs_contract, lhs_batch), ("rhs", rhs_contract, rhs_batch)):
            if set(contract) & set(batch):
                raise TypeError(
                    f"dot_general requires {side} batch dimensions to be disjoint from contracting dimensions, got "
                    f"{side}_batch {batch} and {side}_contracting {contract}."
                )
        shape = tuple(lhs.shape[d] for d in lhs_batch)
        shape += tuple(n for d, n in enumerate(lhs.shape) if d not in lhs_contract and d not in lhs_batch)
        shape += tuple(n for d, n in enumerate(rhs.shape) if d not in rhs_contract and d not in rhs_batch)
        dtype = _common_dtype(lhs.dtype, rhs.dtype)
        if preferred_element_type is not None:
            check_preferred(self.name, dtype, preferred_element_type)
            dtype = preferred_element_type
        return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)

    def lay_out(self, out, lhs, rhs, *, dimension_numbers, **params):
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        for i, j in zip(lhs_contract, rhs_contract, strict=True):
            if lhs.spec[i] is not None and rhs.spec[j] is not None:
                raise ShardingTypeError(
                    f"dot_general of {lhs.str_short()} and {rhs.str_short()} sums along axis {i} of the one and axis "
                    f"{j} of the other, which are both cut: the sum could lie in several ways"
                )
        pairs = zip(lhs_batch, rhs_batch, strict=True)
        return (
            *[layouts.one_of(self.name, (lhs, rhs), (lhs.spec[i], rhs.spec[j])) for i, j in pairs],
            *layouts.drop(lhs.spec, (*lhs_contract, *lhs_batch)),
            *layouts.drop(rhs.spec, (*rhs_contract, *rhs_batch)),
        )

    def host(self, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
        dtype = lhs.dtype
        if (
            dtype is not rhs.dtype
            or dtype not in _NATIVE
            or (preferred_element_type is not None and preferred_element_type != dtype)
            or type(precision) is DotAlgorithmPreset
        ):
            return _host_mixed(lhs, rhs, dimension_numbers, precision, preferred_element_type)
        try:
            recipe = _recipes[dimension_numbers, lhs.ndim, rhs.ndim]
        except KeyError:
            recipe = _recipe(dimension_numbers, lhs.ndim, rhs.ndim)
        return recipe(lhs, rhs)

    def host_function(self, avals, params):
        lhs, rhs = avals
        numbers, dtype = params["dimension_numbers"], lhs.dtype
        preferred = params.get("preferred_element_type")
        if (
            dtype == rhs.dtype
            and dtype in _NATIVE
            and (preferred is None or preferred == dtype)
            and type(params.get("precision")) is not DotAlgorithmPreset
        ):
            return _recipes.get((numbers, lhs.ndim, rhs.ndim)) or _recipe(numbers, lhs.ndim, rhs.ndim)
        return super().host_function(avals, params)

    def host_work(self, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
        contracted = math.prod(lhs.shape[d] for d in dimension_numbers[0][0])
        if contracted > 1 and not config.host_products and dtypes.is_inexact(lhs.dtype):
            return math.inf
        batch = math.prod(lhs.shape[d] for d in dimension_numbers[1][0])
        products = lhs.size * rhs.size // max(1, contracted * batch)
        blas = lhs.dtype in _BLAS and lhs.dtype == rhs.dtype
        return max(lhs.size, rhs.size, products // 64 if blas else products)

    def streaming_cost(self, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
        if preferred_element_type not in (None, lhs.dtype) or type(precision) is DotAlgorithmPreset:
            return 0
        return 0.5 if lhs.ndim == rhs.ndim == 1 and lhs.dtype == rhs.dtype and lhs.dtype in _BLAS else 0

    def padded(self, at, avals, operands, *, dimension_numbers, **params):
        contracted, _ = dimension_numbers
        filled = [
            at.filled(x, aval, axes, 0) for x, aval, axes in zip(operands, avals, contracted, strict=True)
        ]
        return self.bind(*filled, dimension_numbers=dimension_numbers, **params)

    def lower(self, builder, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None):
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        out = self.infer(
            lhs.aval,
            rhs.aval,
            dimension_numbers=dimension_numbers,
            preferred_element_type=preferred_element_type,
        )
        result = out
        lhs_dtype, rhs_dtype = lhs.dtype, rhs.dtype
        is_native = _is_native_pair(builder.platform, lhs_dtype, rhs_dtype, out.dtype)
        if is_native and builder.platform != "cpu" and lhs_dtype.itemsize == 1 and out.dtype.name == "int32":
            is_native = _is_right_on_gpu(out.size, math.prod(lhs.shape[d] for d in lhs_contract))
        if not is_native:
            lhs_dtype = rhs_dtype = _summed_dtype(lhs_dtype, rhs_dtype, out.dtype)
            result = out.update(dtype=lhs_dtype)
        rounded = rounded_dtype(precision, lhs_dtype)
        if rounded != lhs_dtype:
            lhs_dtype = rhs_dtype = rounded
            result = out.update(dtype=_algorithm_result(precision, rounded))
        operands = builder.convert(lhs, lhs_dtype), builder.convert(rhs, rhs_dtype)
        product = None
        if not lhs_batch and len(lhs_contract) == 1 and result.dtype == lhs_dtype:
            product = dot_of_vectors(builder, *operands)
        if product is None:
            product = native_product(builder, *operands, dimension_numbers, result)
        if product is not None:
            return builder.convert(product, out.dtype)
        axes = (
            f"dot_dimension_numbers = #stablehlo.dot<"
            f"lhs_batching_dimensions = {_list(lhs_batch)}, rhs_batching_dimensions = {_list(rhs_batch)}, "
            f"lhs_contracting_dimensions = {_list(lhs_contract)}, rhs_contracting_dimensions = {_list(rhs_contract)}>"
        )
        attributes = axes + precision_attributes(
            precision, builder.platform, lhs_dtype, rhs_dtype, result.dtype
        )
        return builder.convert(builder.op("dot_general", operands, result, attributes), out.dtype)

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        (lhs, rhs), (dlhs, drhs) = primals, tangents
        if type(dlhs) is Zero and type(drhs) is Zero:
            return out, Zero.like(out)
        if type(drhs) is Zero:
            return out, self.bind(dlhs, rhs, **params)
        tangent = self.bind(lhs, drhs, **params)
        return out, tangent if type(dlhs) is Zero else add(self.bind(dlhs, rhs, **params), tangent)

    def transpose(
        self, cotangent, lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None
    ):
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        if is_linear(lhs):
            return _transpose_lhs(cotangent, lhs.aval, rhs, dimension_numbers, precision, False), None
        swapped = ((rhs_contract, lhs_contract), (rhs_batch, lhs_batch))
        if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
            precision = precision[::-1]
        return None, _transpose_lhs(cotangent, rhs.aval, lhs, swapped, precision, True)

    def batch(self, operands, batch_axes, *, dimension_numbers, **params):
        (lhs, rhs), (lhs_axis, rhs_axis) = operands, batch_axes
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        if lhs_axis is not None:
            lhs_contract, lhs_batch = _make_room(lhs_contract, lhs_axis), _make_room(lhs_batch, lhs_axis)
        if rhs_axis is not None:
            rhs_contract, rhs_batch = _make_room(rhs_contract, rhs_axis), _make_room(rhs_batch, rhs_axis)
        if lhs_axis is not None and rhs_axis is not None:
            lhs_batch, rhs_batch = (lhs_axis, *lhs_batch), (rhs_axis, *rhs_batch)
            out_axis = 0
        elif lhs_axis is not None:  # one more free axis of lhs
            taken = sum(d < lhs_axis for d in (*lhs_contract, *lhs_batch))
            out_axis = len(lhs_batch) + lhs_axis - taken
        else:
            taken = sum(d < rhs_axis for d in (*rhs_contract, *rhs_batch))
            out_axis = aval_of(lhs).ndim - len(lhs_contract) + rhs_axis - taken
        numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
        return self.bind(lhs, rhs, dimension_numbers=numbers, **params), out_axis


dot_general_p = DotGeneral()


def dot_general(
    lhs, rhs, dimension_numbers: DotDimensionNumbers, precision=None, preferred_element_type=None
):
    """Sums of products over contracted axes, for each index of the batch axes.

    Args:
        lhs: an array.
        rhs: an array of the same kind of numbers.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, pairs of axes.
        precision: see `canonical_precision`.
        preferred_element_type: the dtype of the result.

    Returns:
        An array whose axes are the batch axes, then the other axes of `lhs`, then those of `rhs`.
    """
    try:
        numbers = _canonical_numbers[dimension_numbers]
    except (KeyError, TypeError):
        numbers = _make_canonical(dimension_numbers)
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=numbers,
        precision=canonical_precision(precision),
        preferred_element_type=None
        if preferred_element_type is None
        else dtypes.as_exact_dtype(preferred_element_type),
    )


_canonical_numbers: Memo[Any, tuple] = Memo()


def _make_canonical(dimension_numbers) -> tuple:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = tuple(
        tuple(tuple(operator.index(d) for d in finite(axes)) for axes in finite(pair))
        for pair in ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    )
    _canonical_numbers[numbers] = numbers
    return numbers


# --- types


def _common_dtype(lhs: np.dtype, rhs: np.dtype) -> np.dtype:
    """The dtype of a product of two dtypes of one kind."""
    if lhs == rhs:
        return lhs
    if dtypes.kind(lhs) != dtypes.kind(rhs):
        raise TypeError(
            f"dot_general needs operands of one kind of numbers, got {dtypes.dtype_name(lhs)} and "
            f"{dtypes.dtype_name(rhs)}; convert one of them with `.astype`"
        )
    if (
        dtypes.kind(lhs) == "float" and max(lhs.itemsize, rhs.itemsize) == 1
    ):  # no promotion among 8-bit floats
        return rhs
    return dtypes.promote_types(lhs, rhs)


def check_preferred(name: str, dtype: np.dtype, preferred: np.dtype) -> None:
    """Raises unless sums of products of a dtype can be asked for in another one."""
    kinds = (dtypes.kind(dtype), dtypes.kind(preferred))
    if kinds[0] != kinds[1] and kinds not in (("integer", "float"), ("bool", "integer"), ("bool", "float")):
        raise TypeError(
            f"{name}: preferred_element_type {dtypes.dtype_name(preferred)} is of another kind than the product, "
            f"{dtypes.dtype_name(dtype)}; convert the result with `.astype`"
        )
    if kinds == ("integer", "integer") and dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype):
        raise TypeError(
            f"{name}: preferred_element_type must not be narrower than the product, got "
            f"{dtypes.dtype_name(preferred)} for {dtypes.dtype_name(dtype)}"
        )


def _summed_dtype(lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> np.dtype:
    """The dtype in which products are made and summed."""
    common = _common_dtype(lhs, rhs)
    if dtypes.kind(common) != dtypes.kind(out):
        return _FLOAT32 if out.itemsize <= 2 and dtypes.is_inexact(out) else out
    if dtypes.kind(common) in ("float", "complex"):
        wide = out if out.itemsize >= common.itemsize else common
        return _FLOAT32 if wide.itemsize <= 2 else wide
    return out


def _is_native_pair(platform: str, lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> bool:
    """Whether XLA takes these dtypes as they are and sums as `_summed_dtype` says."""
    if lhs != rhs:  # XLA's compiler for GPUs ends the process for some other pairs of floats of one byte
        return platform != "cpu" and {lhs, rhs} == _GEMM_FLOATS8
    if lhs == out:
        return lhs.itemsize > 1 or dtypes.kind(lhs) != "float" or platform != "cpu"
    return (dtypes.kind(lhs), lhs.itemsize <= 2, out.name) in (
        ("integer", True, "int32"),
        ("float", True, "float32"),
    )


def _is_right_on_gpu(results: int, summed: int) -> bool:
    """Whether XLA's products of integers of one byte on GPUs are right.

    Small ones whose sums are not of a multiple of four terms come out doubled (2×3 by 3×4, jaxlib 0.11.2 on an H200).
    """
    return summed % 4 == 0 or results * summed >= 1 << 20


def _check_pairs(what: str, lhs: ShapedArray, rhs: ShapedArray, lhs_axes, rhs_axes) -> None:
    for side, aval, axes in (("lhs", lhs, lhs_axes), ("rhs", rhs, rhs_axes)):
        if any(not 0 <= d < aval.ndim for d in axes):
            raise TypeError(
                f"dot_general requires {side} dimension numbers to be nonnegative and less than the number of axes of "
                f"the {side} value, got {side}_{what} of {axes} for {side} of rank {aval.ndim}, an array of shape "
                f"{aval.shape}"
            )
        if len(set(axes)) != len(axes):
            raise TypeError(
                f"dot_general requires {side} {what} dimensions to be distinct, got {side}_{what} {axes}: these are "
                f"axes of an array of shape {aval.shape}"
            )
    if len(lhs_axes) != len(rhs_axes):
        raise TypeError(
            f"dot_general requires equal numbers of lhs_{what} and rhs_{what} dimensions, got lhs_{what} {lhs_axes} "
            f"and rhs_{what} {rhs_axes} for arrays of shapes {lhs.shape} and {rhs.shape}"
        )
    left, right = tuple(lhs.shape[d] for d in lhs_axes), tuple(rhs.shape[d] for d in rhs_axes)
    if left != right:
        pair = "lhs batch dimensions and rhs batch" if what == "batch" else what
        raise TypeError(
            f"dot_general requires {pair} dimensions to have the same shape, got {left} and {right}: axes {lhs_axes} "
            f"of lhs of shape {lhs.shape} and axes {rhs_axes} of rhs of shape {rhs.shape}"
        )


# --- rules


def _list(axes: Sequence[int]) -> str:
    return f"[{', '.join(map(str, axes))}]"


def _make_room(axes: Sequence[int], axis: int) -> tuple[int, ...]:
    """`axes` of an array that got a new axis at `axis`."""
    return tuple(d + (d >= axis) for d in axes)


def _transpose_lhs(cotangent, lhs: ShapedArray, rhs, dimension_numbers, precision, swapped: bool):
    """The cotangent of `lhs`; if `swapped`, the result of the product has the free axes of `rhs` first."""
    numbers, order, rhs_first = _transposed_numbers(lhs.ndim, aval_of(rhs).ndim, dimension_numbers, swapped)
    dtype = aval_of(cotangent).dtype
    preferred = None if lhs.dtype == dtype == aval_of(rhs).dtype else lhs.dtype
    operands = (cotangent, rhs)
    if rhs_first:
        operands = (rhs, cotangent)
        if isinstance(precision, tuple) and not isinstance(precision, DotAlgorithm):
            precision = precision[::-1]
    product = dot_general_p.bind(
        *operands, dimension_numbers=numbers, precision=precision, preferred_element_type=preferred
    )
    return transpose(product, order)


@functools.lru_cache(4096)
def _transposed_numbers(
    lhs_ndim: int, rhs_ndim: int, dimension_numbers, swapped: bool
) -> tuple[tuple, tuple[int, ...], bool]:
    """The dimension numbers of the product that gives the cotangent of `lhs`, how its axes are reordered then, and
    whether `rhs` is the first operand: in the order in which fewer axes must move.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = [d for d in range(lhs_ndim) if d not in lhs_contract and d not in lhs_batch]
    rhs_free = [d for d in range(rhs_ndim) if d not in rhs_contract and d not in rhs_batch]
    start = len(lhs_batch) + (0 if swapped else len(lhs_free))
    contracting = (tuple(range(start, start + len(rhs_free))), tuple(rhs_free))
    batch = (tuple(range(len(lhs_batch))), tuple(rhs_batch))
    contracted = [lhs_contract[i] for i in np.argsort(rhs_contract)]
    first, second = [*lhs_batch, *lhs_free, *contracted], [*lhs_batch, *contracted, *lhs_free]
    rhs_first = _inversions(second) < _inversions(first)
    numbers = (contracting[::-1], batch[::-1]) if rhs_first else (contracting, batch)
    return numbers, tuple(int(i) for i in np.argsort(second if rhs_first else first)), rhs_first


def _inversions(order: list[int]) -> int:
    """How many pairs are out of order."""
    return sum(a > b for i, a in enumerate(order) for b in order[i + 1 :])


# --- on the host

_NATIVE = {np.dtype(t) for t in "fdFDilqILQhHbB?"}
_BLAS = {np.dtype(t) for t in "fdFD"}
_recipes: Memo[tuple, Callable] = Memo()


def _recipe(
    dimension_numbers, lhs_ndim: int, rhs_ndim: int
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A function that computes such a product of arrays of one dtype that NumPy multiplies as XLA does."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    recipe: Callable | None = None
    if not lhs_batch and len(lhs_contract) == 1 and 1 <= lhs_ndim <= 2 and 1 <= rhs_ndim <= 2:
        lhs_last, rhs_first = lhs_contract[0] == lhs_ndim - 1, rhs_contract[0] == 0
        if lhs_last and rhs_first:
            recipe = np.ndarray.dot
        elif lhs_last:
            recipe = _dot_right_transposed
        elif rhs_first:
            recipe = _dot_left_transposed
        else:
            recipe = _dot_both_transposed
    elif not lhs_contract and not lhs_batch and (lhs_ndim == 0 or rhs_ndim == 0):
        recipe = np.multiply
    if recipe is None:
        recipe = _matmul_recipe(dimension_numbers, lhs_ndim, rhs_ndim)
    _recipes[dimension_numbers, lhs_ndim, rhs_ndim] = recipe
    return recipe


def _dot_right_transposed(lhs, rhs):
    return lhs.dot(rhs.T)


def _dot_left_transposed(lhs, rhs):
    return lhs.T.dot(rhs)


def _dot_both_transposed(lhs, rhs):
    return lhs.T.dot(rhs.T)


def _matmul_recipe(dimension_numbers, lhs_ndim: int, rhs_ndim: int):
    """Axes put in order, then one batched product of matrices."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = [d for d in range(lhs_ndim) if d not in lhs_contract and d not in lhs_batch]
    rhs_free = [d for d in range(rhs_ndim) if d not in rhs_contract and d not in rhs_batch]
    lhs_order, rhs_order = (*lhs_batch, *lhs_free, *lhs_contract), (*rhs_batch, *rhs_contract, *rhs_free)
    batches, lhs_stop, rhs_stop = (
        len(lhs_batch),
        len(lhs_batch) + len(lhs_free),
        len(rhs_batch) + len(rhs_contract),
    )

    def recipe(lhs, rhs):
        lhs, rhs = lhs.transpose(lhs_order), rhs.transpose(rhs_order)
        batch, free, contracted = (
            lhs.shape[:batches],
            lhs.shape[batches:lhs_stop],
            math.prod(lhs.shape[lhs_stop:]),
        )
        matrix = lhs.reshape(*batch, math.prod(free), contracted)
        columns = rhs.reshape(*batch, contracted, math.prod(rhs.shape[rhs_stop:]))
        return np.matmul(matrix, columns).reshape((*batch, *free, *rhs.shape[rhs_stop:]))

    return recipe


def _host_mixed(lhs, rhs, dimension_numbers, precision, preferred_element_type):
    """`host` for dtypes that NumPy does not multiply as XLA does: convert, multiply, convert."""
    out = _common_dtype(lhs.dtype, rhs.dtype) if preferred_element_type is None else preferred_element_type
    rounded = rounded_dtype(precision, out)
    result = out
    if rounded != out:
        lhs, rhs = lhs.astype(rounded), rhs.astype(rounded)
        result = _algorithm_result(precision, rounded)
    wide = _summed_dtype(lhs.dtype, rhs.dtype, result)
    recipe = _recipes.get((dimension_numbers, lhs.ndim, rhs.ndim)) or _recipe(
        dimension_numbers, lhs.ndim, rhs.ndim
    )
    if wide not in _NATIVE:  # integers of less than a byte
        return recipe(lhs.astype(np.int32), rhs.astype(np.int32)).astype(out)
    return np.asarray(recipe(lhs.astype(wide), rhs.astype(wide))).astype(result).astype(out)
