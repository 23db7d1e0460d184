"""What programs for accelerators look like, on a machine without one: every case of every primitive is lowered for each
platform and the module verified; calls of libraries are those that jax makes; and what is written differently from the
CPU's, in plain StableHLO, is run by the CPU.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
import warnings

import jax
import ml_dtypes
import numpy as np
import pytest

import purax
from purax.core import dtypes
from purax.core.avals import aval_of
from purax.core.promotion import TypePromotionError
from purax.primitives.products.contraction import DotAlgorithmPreset, dot_general_p
from purax.primitives.products.convolution import ConvDimensionNumbers, conv_general_dilated_p
from purax.testing import laws
from purax.testing.case import case, numbers
from purax.xla import jaxlib_api
from tests import cases

PLATFORMS = ["cuda", "rocm", "tpu"]
MODULES = sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
# What a platform cannot do, and says so: the primitive, and what the message names as the way out.
REFUSED = {
    ("tpu", "eig"): r"eig of .* is not available on tpu.*devices\('cpu'\)",
    ("tpu", "schur"): r"schur of .* is not available on tpu.*devices\('cpu'\)",
    ("tpu", "svd"): "the algorithm SvdAlgorithm.QR is not available on tpu; leave it out",
    ("tpu", "eigh"): "the implementation EighImplementation.QR is not available on tpu; leave it out",
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("module", MODULES)
def test_every_case_is_lowered_for_every_platform(module, platform):
    rows = []
    for row in importlib.import_module(f"tests.cases.{module}").CASES:
        try:
            laws.joint_program([row], platform)
        except NotImplementedError as error:
            assert re.search(REFUSED[platform, row.primitive.name], str(error)), error
        else:
            rows.append(row)
    for start in range(0, len(rows), 100):
        jaxlib_api.parse_module(laws.joint_program(rows[start : start + 100], platform).text())  # verifies it


# --- products and convolutions of all dtypes

FLOATS8 = [
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3,
]  # fmt: skip
OTHERS = [
    ml_dtypes.bfloat16, np.float16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64,
    np.complex64, np.complex128, np.bool_,
]  # fmt: skip
DTYPES = [np.dtype(t) for t in (*FLOATS8, *OTHERS)]
MATRIX = (((1,), (0,)), ((), ()))


def values(shape, dtype, seed=0):
    """Small integers in any dtype, so that all sums are exact."""
    return numbers(shape, np.int64, 0 if dtype.kind in "ub" else -3, 3, seed).astype(dtype)


def product(lhs, rhs, preferred=None, precision=None):
    operands = values((2, 3), lhs), values((3, 4), rhs, 1)
    settings = dict(precision=precision, preferred_element_type=preferred, dimension_numbers=MATRIX)
    return case(dot_general_p, *operands, **settings)


def convolution(dtype, preferred=None, n=2, features=4, inputs=4, **changes):
    settings = dict(
        window_strides=(1, 1), padding=((1, 1), (0, 2)), lhs_dilation=(1, 1), rhs_dilation=(1, 1),
        dimension_numbers=ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)), feature_group_count=1,
        batch_group_count=1, precision=None, preferred_element_type=preferred,
    )  # fmt: skip
    operands = values((n, features, 6, 5), dtype), values((4, inputs, 3, 2), dtype, 1)
    moved = changes.pop("moved", False)
    if moved:
        operands = np.moveaxis(operands[0], 1, 3).copy(), np.moveaxis(operands[1], (0, 1), (3, 2)).copy()
        settings["dimension_numbers"] = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    return case(conv_general_dilated_p, *operands, **{**settings, **changes})


def allowed(rows):
    """The cases whose types are right."""
    found = []
    for row in rows:
        try:
            row.primitive.infer(*map(aval_of, row.operands), **row.params)
        except (TypeError, TypePromotionError):
            continue
        found.append(row)
    return found


def check(rows):
    """The CPU runs what is written for a GPU."""
    results = laws.lowered_results(rows, "cuda")
    for row, found in zip(rows, results, strict=True):
        laws.compare_lowered(row, found)


def test_products_of_all_dtypes_are_lowered_to_what_a_gpu_multiplies():
    rows = [product(a, b) for a, b in itertools.product(DTYPES, DTYPES)]
    rows += [product(a, a, preferred) for a, preferred in itertools.product(DTYPES, DTYPES)]
    rows = allowed(rows)
    # With other pairs XLA's compiler for GPUs fails or ends the process, as for bool or int8 with a float32 result.
    pairs = {f"{a}, {b}" for a, b in itertools.permutations(("f8E4M3FN", "f8E5M2"), 2)}
    wide = {"i8": "i32", "ui8": "i32", "i16": "i32", "bf16": "f32", "f16": "f32"}
    for row in rows:
        text = laws.joint_program([row], "cuda").text()
        types = re.findall(
            r'"stablehlo.dot_general".*: \(tensor<2x3x(.*)>, tensor<3x4x(.*)>\) -> tensor<2x4x(.*)>', text
        )
        for a, b, out in types:
            assert a == b or f"{a}, {b}" in pairs, row
            assert a == out or wide.get(a) == out or (a.startswith("f8") and out in ("f32", b)), (
                row,
                a,
                b,
                out,
            )
    check(rows[::6])


def test_algorithms_that_a_gpu_does_not_have_are_left_out():
    for preset, dtype in itertools.product(
        DotAlgorithmPreset, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
    ):
        text = laws.joint_program(
            [product(np.dtype(dtype), np.dtype(dtype), precision=preset)], "cuda"
        ).text()
        jaxlib_api.parse_module(text)
        found = re.search("accumulation_type = (f16|bf16)", text)
        assert found is None, (preset, dtype)
    text = laws.joint_program(
        [product(*[np.dtype(np.float32)] * 2, precision=DotAlgorithmPreset.TF32_TF32_F32)], "cuda"
    )
    assert "lhs_precision_type = tf32" in text.text()


def test_convolutions_of_all_dtypes_are_lowered_to_what_a_gpu_has():
    preferred = [None, *[np.dtype(t) for t in (np.float32, np.int32, np.float64, np.complex128)]]
    plain = allowed([convolution(dtype, wanted) for dtype in DTYPES for wanted in preferred])
    rows = []
    for dtype in map(np.dtype, (np.int32, np.bool_, np.complex64)):
        rows += [
            convolution(dtype, window_strides=(2, 3), rhs_dilation=(2, 1)),
            convolution(dtype, lhs_dilation=(2, 3), padding=((-1, 2), (3, -2))),
            convolution(dtype, inputs=2, feature_group_count=2),
            convolution(dtype, n=4, batch_group_count=2),
            convolution(dtype, moved=True, window_strides=(1, 2)),
        ]
    for row in plain + rows:
        text = laws.joint_program([row], "cuda").text()
        for a, b, out in re.findall(
            r'"stablehlo.convolution".*: \(tensor<[\dx]*x(.*)>, tensor<[\dx]*x(.*)>\) -> tensor<[\dx]*x(.*)>',
            text,
        ):
            assert a == b in ("bf16", "f16", "f32", "f64") and out in (a, "f32" if a != "f64" else a), row
    check([row for row in rows + plain[::4] if not _rounds(row)])


def _rounds(row):
    """Whether the result is rounded otherwise by the host, as sums of narrow floats are."""
    dtype = row.operands[0].dtype
    return dtypes.is_inexact(dtype) and dtype.itemsize == 1


def test_an_integer_convolution_with_a_huge_kernel_is_refused():
    row = convolution(np.dtype(np.int32))
    huge = row._replace(operands=(row.operands[0], np.ones((4, 4, 40, 40), np.int32)))
    huge.params["padding"] = ((40, 40), (40, 40))
    with pytest.raises(NotImplementedError, match="not available on cuda.*convert the operands to float32"):
        laws.joint_program([huge], "cuda")


# --- libraries

square, tall, vector = (
    np.zeros((4, 4), np.float32),
    np.zeros((2, 4, 3), np.float32),
    np.zeros((4,), np.float32),
)
CALLS = {
    "lu": (lambda m, x: m.lax.linalg.lu(x), tall),
    "qr": (lambda m, x: m.lax.linalg.qr(x), tall),
    "qr with pivoting": (lambda m, x: m.lax.linalg.qr(x, pivoting=True), tall),
    "eigh": (lambda m, x: m.lax.linalg.eigh(x, symmetrize_input=False), square.astype(np.complex64)),
    "svd": (lambda m, x: m.lax.linalg.svd(x), tall),
    "singular values": (lambda m, x: m.lax.linalg.svd(x, compute_uv=False), tall),
    "svd by QR": (lambda m, x: m.lax.linalg.svd(x, algorithm=m.lax.linalg.SvdAlgorithm.QR), tall),
    "svd of a large one": (lambda m, x: m.lax.linalg.svd(x), np.zeros((1100, 2), np.float32)),
    "cholesky": (lambda m, x: m.lax.linalg.cholesky(x, symmetrize_input=False), square),
    "triangular_solve": (lambda m, x: m.lax.linalg.triangular_solve(x, x), square),
    "tridiagonal": (lambda m, x: m.lax.linalg.tridiagonal(x), square),
    "tridiagonal_solve": (lambda m, x: m.lax.linalg.tridiagonal_solve(x, x, x, x[:, None]), vector),
    "eig": (lambda m, x: m.lax.linalg.eig(x), square),
    "householder_product": (lambda m, x: m.lax.linalg.householder_product(x, x[0]), square),
    "fft": (lambda m, x: m.numpy.fft.irfftn(m.numpy.fft.rfftn(x)), square),
    "sort": (lambda m, x: m.numpy.sort(x), square),
    "random bits": (lambda m, x: m.random.bits(m.random.wrap_key_data(x), (5,)), np.array([0, 1], np.uint32)),
}


def library_calls(text):
    """The kernels that a program calls, with what they are told, and the types and layouts of arrays."""
    found = []
    for line in text.splitlines():
        if "custom_call" in line:
            target = re.search(r'call_target_name = "([^"]*)"|custom_call @([\w$.]+)', line)
            config = re.search(r"backend_config = \{([^}]*)\}", line)
            orders = re.findall(r"dense<\[?([\d, ]*)\]?> : tensor<\d+xindex>", line)
            aliases = re.findall(r"output_tuple_indices = \[(\d*)\], operand_index = (\d)", line)
            types = re.findall(r"tensor<([\dx]*(?:complex<)?[a-z]+\d+)>", line.rsplit(" : ", 1)[1])
            settings = sorted(config[1].split(", ")) if config else [""]
            found.append((target[1] or target[2], settings, orders, aliases, types))
    return found, sorted(set(re.findall(r"stablehlo\.(fft|sort|triangular_solve)\b", text)))


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
@pytest.mark.parametrize("name", list(CALLS))
def test_libraries_are_called_as_jax_calls_them(name, platform):
    function, argument = CALLS[name]
    texts = []
    for m in (jax, purax):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = m.jit(lambda x, m=m: function(m, x)).trace(argument)
            texts.append(traced.lower(lowering_platforms=(platform,)).as_text())
    expected, found = map(library_calls, texts)
    assert found == ([(t, s or [""], *rest) for t, s, *rest in expected[0]], expected[1])


def test_precision_is_said_as_jax_says_it():
    """Nothing, which means the fastest, unless the user says more; then the same."""
    x = np.zeros((4, 4), np.float32)
    for precision in (None, "default", "high", "highest"):
        texts = []
        for m in (jax, purax):
            function = m.jit(lambda a, m=m, p=precision: m.lax.dot(a, a, precision=p))
            texts.append(function.trace(x).lower(lowering_platforms=("cuda",)).as_text())
        found = [re.findall(r"\b(DEFAULT|HIGHEST|HIGH)\b", text) or ["DEFAULT"] * 2 for text in texts]
        assert found[0] == found[1], precision


def test_other_platforms_call_no_python():
    with pytest.raises(NotImplementedError, match="pure_callback.*tpu"):
        shape = purax.ShapeDtypeStruct((4,), np.float32)
        purax.jit(lambda x: purax.pure_callback(np.sin, shape, x)).trace(vector).lower(
            lowering_platforms=("tpu",)
        )
