"""Products of arrays agree with NumPy in value and with jax in type; einsum does over random subscripts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import purax
import purax.numpy as jnp
from purax.xla.array import from_numpy
from tests.numpy.agreement import agree, values

DTYPES = ("bool", "int8", "int32", "uint8", "float16", "bfloat16", "float32", "complex64")

DOTS = [
    ((), ()), ((), (3,)), ((2, 3), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)),
    ((2, 5, 3), (3,)), ((2, 5, 3), (4, 3, 2)), ((0,), (0,)), ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((3,), (4, 3, 2)),
]  # fmt: skip
MATMULS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)),
    ((5, 1, 2, 3), (7, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)),
    ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((2, 1, 4, 2, 3), (3, 1, 3, 2)), ((0, 2, 3), (3, 2)), ((2, 0), (0, 3)),
    ((6, 1, 2, 3), (6, 5, 3, 1)), ((1, 1, 2, 3), (1, 1, 3, 2)),
]  # fmt: skip
OTHERS = {
    "inner": [((), (3,)), ((3,), (3,)), ((2, 3), (4, 3)), ((2, 3), (4, 5, 3))],
    "vdot": [((), ()), ((3,), (3,)), ((2, 3), (3, 2)), ((0,), (0,))],
    "outer": [((), ()), ((2,), (3,)), ((2, 2), (3,)), ((0,), (2,))],
    "kron": [((), (2,)), ((2,), (3,)), ((2, 3), (2,)), ((2, 3), (2, 1, 2)), ((2, 0), (3, 1))],
    "vecdot": [((3,), (3,)), ((2, 3), (4, 1, 3)), ((2, 0), (2, 0))],
    "matvec": [((2, 3), (3,)), ((5, 2, 3), (4, 1, 3))],
    "vecmat": [((2,), (2, 3)), ((4, 1, 3), (5, 3, 2))],
    "cross": [((3,), (3,)), ((4, 3), (3,)), ((4, 1, 3), (2, 3))],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "shapes"), [("dot", DOTS), ("matmul", MATMULS), *OTHERS.items()], ids=lambda x: str(x)[:8]
)
def test_products(name, shapes, dtype):
    if name == "cross" and dtype == "bool":
        return
    for left, right in shapes:
        x, y = values(left, dtype), values(right, dtype, 1)
        oracle = "jax" if dtype == "bool" and name == "vecdot" else "numpy"
        types = (name, dtype) != ("kron", "bool")  # which jax refuses
        agree(name, x, y, oracle=oracle, types=types, rtol={"float16": 4e-3, "bfloat16": 4e-2}.get(dtype))


@pytest.mark.parametrize("name", ["dot", "matmul", "inner", "vecdot", "kron", "tensordot"])
def test_mixed_dtypes(name):
    arguments = {"axes": 1} if name == "tensordot" else {}
    for left in DTYPES:
        for right in ("bool", "int8", "float16", "float32"):
            if (name, left, right) == ("kron", "bool", "bool"):
                continue
            agree(
                name,
                values((3,), left),
                values((3,), right, 1),
                rtol=3e-2 if "16" in left + right else None,
                **arguments,
            )


@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((5, 1, 2, 3), (7, 3, 4)), ((5, 2, 3), (5, 3, 4))])
def test_jit(shapes):
    agree("matmul", *[values(shape, "float32") for shape in shapes], jit=True)


def test_python_numbers_are_weak():
    agree("dot", 2, 3.0)
    agree("dot", 2.0, values((3,), "float16"))
    agree("vdot", 1j, 2j)
    agree("outer", 2, 3)
    agree("tensordot", 2, 3, axes=0)
    agree("kron", 2, values((2,), "int8"))


@pytest.mark.parametrize(
    "axes", [0, 1, 2, (0, 1), [0, 1], ((0, 1), (1, 0)), ((-1,), (-2,)), ((0, -1), (1, -2)), ((), ())]
)
def test_tensordot(axes):
    y = values((2, 3), "float32", 1) if axes == 2 else values((3, 2), "float32", 1)
    agree("tensordot", values((2, 3), "float32"), y, axes=axes)


@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        (((2,), (2,)), {}), (((2,), (3,)), {}), (((3,), (2,)), {}), (((5, 2), (5, 2)), {}), (((5, 2), (3,)), {}),
        (((3, 4), (3, 4)), {"axis": 0}), (((3, 4), (4, 3)), {"axisa": 0}), (((3, 4), (4, 3)), {"axisa": 0, "axisc": 0}),
        (((3, 4), (3, 4)), {"axisa": 0, "axisb": 0, "axisc": 1}),
    ],
)  # fmt: skip
def test_cross(shapes, axes):
    x, y = (values(s, "float32", i) for i, s in enumerate(shapes))
    if axes:
        agree("cross", x, y, **axes)
        return
    # New releases of NumPy and jax refuse vectors of two components; they have a third one, 0.
    with_third = [
        np.concatenate([v, np.zeros_like(v[..., :1])], -1) if v.shape[-1] == 2 else v for v in (x, y)
    ]
    expected = np.cross(*with_third)
    both_flat = x.shape[-1] == y.shape[-1] == 2
    agree("cross", x, y, expected=[expected[..., 2] if both_flat else expected], types=False)


def test_vecdot_along_another_axis():
    agree("vecdot", values((3, 2), "complex64"), values((3, 2), "complex64", 1), axis=0)
    agree("vecdot", values((3, 2), "float32"), values((3,), "float32", 1), axis=0)


def test_precision_and_preferred_element_type():
    x, y = values((3,), "float16"), values((3,), "float16", 1)
    for name in ("dot", "matmul", "inner", "vdot", "vecdot"):
        agree(name, x, y, preferred_element_type="float32", precision="highest", types=True, numpy_kwargs={})
    agree("dot", values((3,), "int8"), values((3,), "int8"), preferred_element_type="int32", oracle="jax")
    with purax.default_matmul_precision("highest"):
        assert "HIGHEST" in str(purax.make_jaxpr(jnp.dot)(from_numpy(x), from_numpy(y)))
    with pytest.raises(ValueError, match="precision must be"):
        jnp.dot(from_numpy(x), from_numpy(y), precision="perfect")


def test_errors():
    x = from_numpy(np.ones((2, 3), np.float32))
    for error in (TypeError, ValueError):  # jax raises the one, NumPy the other
        with pytest.raises(
            error, match=r"dot got incompatible shapes \(2, 3\) and \(2, 3\): axis 1.*size 3.*axis 0.*size 2"
        ):
            jnp.dot(x, x)
        with pytest.raises(error, match="matmul got incompatible shapes"):
            jnp.matmul(x, x)
    with pytest.raises(ValueError, match="matmul got incompatible shapes for broadcasting"):
        jnp.matmul(from_numpy(np.ones((5, 2, 3))), from_numpy(np.ones((7, 3, 2))))
    with pytest.raises(ValueError, match="input operand 1 must have ndim at least 1"):
        jnp.matmul(x, 2)
    with pytest.raises(TypeError, match="equal length"):
        jnp.tensordot(x, x, axes=((0,), (0, 1)))
    with pytest.raises(TypeError, match="exceeds the ranks"):
        jnp.tensordot(x, x, axes=3)
    with pytest.raises(ValueError, match="either 2 or 3"):
        jnp.cross(from_numpy(np.ones(4)), from_numpy(np.ones(4)))
    with pytest.raises(ValueError, match="matvec: x1 of shape"):
        jnp.matvec(from_numpy(np.ones(3)), from_numpy(np.ones(3)))


# --- einsum

EINSUMS = [
    ("i->", (3,)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)), ("ii", (3, 3)), ("ii->i", (3, 3)),
    ("iij->j", (3, 3, 2)), ("iii->i", (3, 3, 3)), ("ijij->ij", (2, 3, 2, 3)), ("ji", (3, 2)), ("", ()),
    ("i,i->", (3,), (3,)), ("i,i", (3,), (3,)), ("i,i->i", (3,), (3,)), ("i,j", (3,), (2,)),
    ("i,j->ji", (3,), (2,)), ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,kj->ik", (2, 3), (4, 3)), ("ij,kj", (2, 3), (4, 3)), ("ij , jk -> ik", (2, 3), (3, 4)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("bij,bjk->ikb", (5, 2, 3), (5, 3, 4)),
    ("ij,ij->", (2, 3), (2, 3)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij,ij->j", (2, 3), (2, 3)),
    ("ij,j->ij", (2, 3), (3,)), ("ijk,lk->", (2, 3, 4), (5, 4)), ("ij,kl->", (2, 3), (4, 5)),
    ("ii,i->i", (3, 3), (3,)), (",i->i", (), (3,)), (",->", (), ()), ("...i,i...->...", (2, 3), (3, 4, 1)),
    ("...i,...i", (2, 3), (4, 2, 3)), ("...ij,jk", (5, 2, 3), (3, 4)), ("...->...", (2, 3)),
    ("i...->...i", (2, 3, 4)), ("...,...->...", (2, 3), (3,)), ("i,i->i", (1,), (3,)),
    ("ij,jk->ik", (2, 1), (3, 4)), ("ij,jk->ik", (2, 3), (1, 4)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,ij,ij->j", (2, 3), (2, 3), (2, 3)), ("i,j,k->ijk", (2,), (3,), (4,)),
    ("ij,jk,ki->", (2, 3), (3, 4), (4, 2)),
    ("ea,fb,abcd,gc,hd->efgh", (2, 3), (2, 3), (3, 3, 3, 3), (2, 3), (2, 3)), ("ij->i", (2, 0)),
    ("ij,jk->ik", (2, 0), (0, 3)),
]  # fmt: skip


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum(case):
    subscripts, *shapes = case
    for dtype in ("float32", "int8", "complex64"):
        agree("einsum", subscripts, *[values(shape, dtype, i) for i, shape in enumerate(shapes)], rtol=1e-5)


def test_einsum_of_truth_values_is_or_of_ands():
    for subscripts, *shapes in EINSUMS[:40]:
        arrays = [values(shape, "bool", i) for i, shape in enumerate(shapes)]
        counts = np.einsum(subscripts, *[x.astype(int) for x in arrays])
        agree("einsum", subscripts, *arrays, expected=[counts > 0])


def test_einsum_takes_digits_as_names_beside_an_ellipsis():
    x, y = values((2, 5, 3, 4), "float32"), values((2, 6, 3, 1), "float32")
    for digits, letters in (
        ("...qhg,...kh1->...hqk", "...qhg,...khz->...hqk"),
        ("...qhg,...kh1", "...qhg,...khA"),
        ("0qh1,0kh2->0q", "bqhy,bkhz->bq"),
    ):
        expected = np.einsum(letters, x, y)
        np.testing.assert_allclose(jnp.einsum(digits, x, y), expected, rtol=1e-5, atol=1e-5, strict=True)


def test_einsum_under_jit():
    for subscripts, *shapes in (EINSUMS[6], EINSUMS[22], EINSUMS[33]):
        agree(
            "einsum",
            subscripts,
            *[values(s, "float32", i) for i, s in enumerate(shapes)],
            jit=True,
            rtol=1e-5,
        )


def test_einsum_with_lists_of_axes():
    x, y = values((2, 3), "float32"), values((3, 4), "float32")
    agree("einsum", x, [0, 1], y, [1, 2], [0, 2])
    agree("einsum", x, [0, 1], y, [1, 2])
    agree("einsum", x, [1, 0])
    agree("einsum", x, [Ellipsis, 0], y, [0, 7])


@pytest.mark.parametrize(
    "optimize", [True, False, "auto", "greedy", "optimal", [(1, 2), (0, 1)], [(0, 1, 2)]]
)
def test_einsum_orders(optimize):
    arrays = [values(s, "float32", i) for i, s in enumerate([(2, 3), (3, 4), (4, 5)])]
    agree(
        "einsum",
        "ij,jk,kl->il",
        *arrays,
        optimize=optimize,
        types=optimize != [(0, 1, 2)],
        numpy_kwargs={},
        rtol=1e-5,
    )


def test_einsum_preferred_element_type():
    agree("einsum", "i->", values((3,), "int8"), preferred_element_type="int32", numpy_kwargs={})
    agree(
        "einsum",
        "i,i->",
        values((3,), "float16"),
        values((3,), "float16"),
        preferred_element_type="float32",
        numpy_kwargs={},
    )
    agree(
        "einsum",
        "i,j->ij",
        values((3,), "float16"),
        values((3,), "float16"),
        preferred_element_type="float32",
        numpy_kwargs={},
    )
    agree("einsum", "i,i->", values((3,), "int8"), values((3,), "float32"))


@given(st.data())
def test_random_einsum(data):
    sizes = {"a": 2, "b": 3, "c": 1, "d": 4}
    terms = data.draw(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=3))
    known = sorted(set("".join(terms)))
    output = (
        "".join(data.draw(st.permutations(data.draw(st.lists(st.sampled_from(known), unique=True)))))
        if known
        else ""
    )
    arrays = [values(tuple(sizes[c] for c in term), "float32", i) for i, term in enumerate(terms)]
    agree("einsum", f"{','.join(terms)}->{output}", *arrays, types=False, rtol=2e-5)


def test_einsum_path_is_opt_einsum_s():
    x, y, z = (from_numpy(np.ones(s)) for s in [(2, 3), (3, 4), (4, 5)])
    path, report = jnp.einsum_path("ij,jk,kl->il", x, y, z)
    assert path == [(0, 1), (0, 1)] and "Complete contraction" in str(report)
    assert jnp.einsum_path("ij,jk,kl->il", x, y, z, optimize=False)[0] == [(0, 1, 2)]


@pytest.mark.parametrize(
    ("subscripts", "shapes", "message"),
    [
        ("i,i", [(3,), (4,)], "size of label 'i' for operand 1"),
        ("ij,i", [(3,), (3,)], "correct number of indices for operand 0"),
        ("i", [(3,), (3,)], "number of einsum subscripts, 1"),
        ("i->ii", [(3,)], "more than once"),
        ("i->j", [(3,)], "did not appear"),
        ("i!->i", [(3, 3)], "not a valid name"),
        ("i.->i", [(3,)], "not a valid name"),
    ],
)
def test_einsum_errors(subscripts, shapes, message):
    with pytest.raises(ValueError, match=message):
        jnp.einsum(subscripts, *[from_numpy(np.ones(s, np.float32)) for s in shapes])
    with pytest.raises(TypeError, match="requires ndarray or scalar"):
        jnp.einsum("i->", [1, 2])
    with pytest.raises(TypeError, match="needs subscripts first"):
        jnp.einsum(3, from_numpy(np.ones(3)))
