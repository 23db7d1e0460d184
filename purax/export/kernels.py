"""Which kernels an exported program may call, and with what: they trust the shapes and settings that they are given.

`refused_kernel` looks at names, where a program is exported and where it is read; `check_kernel_call` at the operands,
results and attributes of a call in a program that was read. The rules of LAPACK's routines are written as the types
of operands and results after the axes of the batch: `t` is the dtype of the routine, `r` its real and `c` its complex
one, `i` an int32.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

# Kernels of jaxlib's, which keep their names and what they do from version to version.
_LASTING_KERNELS = re.compile(
    r"lapack_\w+|tridiagonal_solve_perturbed_ffi|(cu|hip)(solver|sparse|blas)_\w+|(cu|hip)_lu_pivots_to_permutation|"
    r"mhlo\.\w+|"
    r"Cholesky|Eigh|LuDecomposition|Qr|ProductOfElementaryHouseholderReflectors|ApproxTopK|TopK"
)
# Kernels that nobody can allow: they trust what they are told by programs that this process made.
_PRIVATE_KERNELS = re.compile(r"purax_.*|.*(callback|CallbackTarget|python).*", re.DOTALL)


def refused_kernel(targets: Iterable[str], allowed: Iterable[str]) -> str | None:
    """The first kernel that a program may not call if it is to run elsewhere, or came from there.

    Args:
        targets: the kernels that it calls.
        allowed: those that somebody vouches for.
    """
    known = set(allowed)
    for target in dict.fromkeys(targets):
        is_allowed = target in known and not _PRIVATE_KERNELS.fullmatch(target)
        if not is_allowed and not _LASTING_KERNELS.fullmatch(target):
            return target
    return None


Sizes = dict[str, int]
Attributes = Mapping[str, str]


class _Routine(NamedTuple):
    operands: str
    results: str
    attributes: dict[str, str] = {}  # the letters that are allowed, or the names below
    complex_results: str | None = None
    sizes: Callable[[Sizes, Attributes], bool] | None = None


_TEXTS: dict[str, Callable[[Sizes], set[str]]] = {
    "bool": lambda sizes: {"true", "false"},
    "one": lambda sizes: {"1 : i32"},
    "n": lambda sizes: {f"{sizes['n']} : i32"},
}


def _letter(attributes: Attributes, name: str) -> str:
    return chr(int(attributes[name].split()[0]))


def _has_bases(sizes: Sizes, attributes: Attributes) -> bool:
    """Of the singular vectors all are wanted, or as many as there are values."""
    k, m, n = sizes["k"], sizes["m"], sizes["n"]
    return (sizes["u"], sizes["v"]) == ((m, n) if _letter(attributes, "mode") == "A" else (k, k))


_SVD = _Routine("t[m,n]", "t[m,n] r[k] t[m,u] t[v,n] i[]", {"mode": "ASN"}, sizes=_has_bases)
_ROUTINES = {
    "potrf": _Routine("t[n,n]", "t[n,n] i[]", {"uplo": "LU"}),
    "getrf": _Routine("t[m,n]", "t[m,n] i[k] i[]"),
    "geqrf": _Routine("t[m,n]", "t[m,n] t[k]"),
    "geqp3": _Routine("t[m,n] i[n]", "t[m,n] i[n] t[k]"),
    "orgqr": _Routine("t[m,n] t[p]", "t[m,n]", sizes=lambda s, _: s["p"] <= s["n"] <= s["m"]),
    "ormqr": _Routine(
        "t[s,q] t[p] t[m,n]",
        "t[m,n]",
        {"left": "bool", "transpose": "bool"},
        sizes=lambda s, a: s["s"] == s["m" if a["left"] == "true" else "n"] and s["p"] <= min(s["q"], s["s"]),
    ),
    "gesdd": _SVD,
    "gesvd": _SVD,
    "syevd": _Routine("t[n,n]", "t[n,n] r[n] i[]", {"mode": "VN", "uplo": "LU"}),
    "sytrd": _Routine("t[n,n]", "t[n,n] r[n] r[n-1] t[n-1] i[]", {"uplo": "LU"}),
    "gehrd": _Routine("t[n,n]", "t[n,n] t[n-1] i[]", {"high": "n", "low": "one"}),
    "gees": _Routine(
        "t[n,n]", "t[n,n] t[n,n] t[n] t[n] i[] i[]", {"mode": "VN", "sort": "N"}, "t[n,n] t[n,n] t[n] i[] i[]"
    ),
    "geev": _Routine(
        "t[n,n]",
        "t[n] t[n] c[n,n] c[n,n] i[]",
        {"compute_left": "VN", "compute_right": "VN"},
        "t[n] t[n,n] t[n,n] i[]",
    ),
    "trsm": _Routine(
        "t[s,s] t[m,n]",
        "t[m,n]",
        {"diag": "UN", "side": "LR", "trans_x": "NTC", "uplo": "LU"},
        sizes=lambda s, a: s["s"] == s["m" if _letter(a, "side") == "L" else "n"],
    ),
    "gtsv": _Routine("t[n] t[n] t[n] t[n,p]", "t[n] t[n] t[n] t[n,p] i[]"),
    "tridiagonal_solve_perturbed": _Routine("t[n] t[n] t[n] t[n,p]", "t[n,p]"),
}
_COMPLEX_NAMES = {"ungqr": "orgqr", "unmqr": "ormqr", "heevd": "syevd", "hetrd": "sytrd"}
_REAL_ONLY = frozenset(_COMPLEX_NAMES.values())
_ELEMENTS = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}
_PARTS = {"f32": "f32", "f64": "f64", "complex<f32>": "f32", "complex<f64>": "f64"}
_TARGET = re.compile(r"lapack_([sdcz])(\w+)_ffi")
_SPEC = re.compile(r"(\w)\[([^\]]*)\]")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*)>")
Type = tuple[tuple[int, ...], str]


def _type(text: str) -> Type:
    found = _TENSOR.fullmatch(text)
    assert found is not None  # as the worker saw
    return tuple(int(length) for length in found[1].split("x")[:-1]), found[2]


def check_kernel_call(
    target: str,
    operands: Sequence[str],
    results: Sequence[str],
    attributes: Attributes,
    vouched_for: Iterable[str] = (),
) -> str | None:
    """What is wrong with a call on the CPU; None if nothing is.

    Args:
        target: the kernel, or `fft` for the operation, which XLA does not check either.
        operands, results: their types, as StableHLO writes them.
        attributes: what the kernel is told, as StableHLO writes it.
        vouched_for: kernels that need not be known.
    """
    ins, outs = list(map(_type, operands)), list(map(_type, results))
    if target == "fft":
        return None if _is_right_fft(ins, outs, attributes) else "the lengths of an FFT do not fit its arrays"
    found = _TARGET.fullmatch(target)
    if found is None and target != "tridiagonal_solve_perturbed_ffi":
        if target in vouched_for:
            return None
        return (
            f"the kernel {target!r:.100} is not known here. If you have it, and trust the file, set "
            "PURAX_ISOLATE_EXPORTED_PROGRAMS=0"
        )
    element = ins[0][1] if found is None and ins else _ELEMENTS[found[1]] if found is not None else ""
    name = "tridiagonal_solve_perturbed" if found is None else found[2]
    is_complex = element.startswith("complex")
    if name in (_REAL_ONLY if is_complex else _COMPLEX_NAMES) or element not in _PARTS:
        return f"the kernel {target!r} is not known for {element}"
    routine = _ROUTINES.get(_COMPLEX_NAMES.get(name, name))
    if routine is None:
        return f"the kernel {target!r} is not known"
    if not _fits(routine, element, ins, outs, attributes):
        given, made = ", ".join(operands), ", ".join(results)
        return f"the kernel {target!r} does not make {made} of {given} with {dict(attributes)}"
    return None


def _fits(routine: _Routine, element: str, ins: list[Type], outs: list[Type], attributes: Attributes) -> bool:
    real = _PARTS[element]
    elements = {"t": element, "r": real, "c": f"complex<{real}>", "i": "i32"}
    results = routine.complex_results if element != real and routine.complex_results else routine.results
    wanted = _SPEC.findall(routine.operands)
    if len(ins) != len(wanted) or not ins:
        return False
    batch = ins[0][0][: len(ins[0][0]) - len(wanted[0][1].split(","))]
    sizes: Sizes = {}
    if not _bind(wanted, ins, elements, batch, sizes):
        return False
    if "m" in sizes:
        sizes["k"] = min(sizes["m"], sizes["n"])
    if "n" in sizes:
        sizes["n-1"] = sizes["n"] - 1
    if not _bind(_SPEC.findall(results), outs, elements, batch, sizes):
        return False
    is_empty = 0 in batch or any(length == 0 for name, length in sizes.items() if name != "n-1")
    return not is_empty and _has_attributes(routine, sizes, attributes)


def _bind(
    wanted: list[tuple[str, str]],
    types: list[Type],
    elements: dict[str, str],
    batch: tuple[int, ...],
    sizes: Sizes,
) -> bool:
    """Whether types are as wanted; lengths that are not known yet are taken from them."""
    if len(wanted) != len(types):
        return False
    for (letter, text), (shape, element) in zip(wanted, types, strict=True):
        names = text.split(",") if text else []
        if (
            element != elements[letter]
            or len(shape) != len(batch) + len(names)
            or shape[: len(batch)] != batch
        ):
            return False
        for name, length in zip(names, shape[len(batch) :], strict=True):
            if sizes.setdefault(name, length) != length:
                return False
    return True


def _has_attributes(routine: _Routine, sizes: Sizes, attributes: Attributes) -> bool:
    if set(attributes) != set(routine.attributes):
        return False
    for name, allowed in routine.attributes.items():
        texts = (
            _TEXTS[allowed](sizes) if allowed in _TEXTS else {f"{ord(letter)} : ui8" for letter in allowed}
        )
        if attributes[name] not in texts:
            return False
    return routine.sizes is None or routine.sizes(sizes, attributes)


def _is_right_fft(ins: list[Type], outs: list[Type], attributes: Attributes) -> bool:
    kind = attributes.get("fft_type", "").rpartition(" ")[2].rstrip(">")
    lengths = tuple(map(int, re.findall(r"\d+", attributes.get("fft_length", "").partition(":")[2])))
    (operand, _), (result, _) = ins[0], outs[0]
    rank = len(lengths)
    if kind not in ("FFT", "IFFT", "RFFT", "IRFFT") or not 1 <= rank <= 3:
        return False
    if len(operand) < rank or len(result) != len(operand) or not all(lengths):
        return False
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    given = half if kind == "IRFFT" else lengths
    made = half if kind == "RFFT" else lengths
    return operand[-rank:] == given and result[-rank:] == made and operand[:-rank] == result[:-rank]
