"""Sparse arrays: every operation agrees with the same operation on the dense array, in every layout.

`jax.experimental.sparse` is asked for the forms of results: indices, numbers of stored elements, layouts.
"""

from __future__ import annotations

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest
import scipy.sparse
from jax.experimental import sparse as jax_sparse

import purax
import purax.numpy as jnp
from purax.experimental import sparse
from purax.experimental.sparse import BCOO
from tests.against_jax import QUICKLY

generator = np.random.default_rng(0)
LAYOUTS = [(n_batch, n_dense, extra) for n_batch in (0, 1) for n_dense in (0, 1) for extra in (0, 3)]


def pair(shape, n_batch=0, n_dense=0, extra=0):
    """A sparse array, with `extra` entries that are not there, and the dense one."""
    x = generator.normal(size=shape) * (generator.uniform(size=shape) < 0.5)
    x = jnp.asarray(x, jnp.float32)
    m = BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense)
    return BCOO.fromdense(x, n_batch=n_batch, n_dense=n_dense, nse=m.nse + extra), x


def same(given, wanted, what):
    given, wanted = (np.asarray(sparse.todense(array)) for array in (given, wanted))
    assert given.shape == wanted.shape, f"{what}: shape {given.shape}, wanted {wanted.shape}"
    np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-5, err_msg=str(what))


OPERATIONS = {
    "twice": (lambda m: 2 * m, lambda x: 2 * x),
    "half": (lambda m: m / 2, lambda x: x / 2),
    "negative": (lambda m: -m, lambda x: -x),
    "magnitude": (abs, abs),
    "square": (lambda m: m**2, lambda x: x**2),
    "times dense": (lambda m: m * jnp.arange(5.0), lambda x: x * jnp.arange(5.0)),
    "dense times": (lambda m: jnp.arange(4.0)[:, None] * m, lambda x: jnp.arange(4.0)[:, None] * x),
    "times itself": (lambda m: m * m, lambda x: x * x),
    "sum": (lambda m: m + m * 2, lambda x: 3 * x),
    "difference": (lambda m: m - m * 3, lambda x: -2 * x),
    "plus dense": (lambda m: m + jnp.ones((3, 4, 5)), lambda x: x + 1),
    "dense minus": (lambda m: jnp.ones((3, 4, 5)) - m, lambda x: 1 - x),
    "matrix product": (
        lambda m: m @ jnp.arange(10.0).reshape(5, 2),
        lambda x: x @ jnp.arange(10.0).reshape(5, 2),
    ),
    "times vector": (lambda m: m @ jnp.arange(5.0), lambda x: x @ jnp.arange(5.0)),
    "from the left": (lambda m: jnp.ones((2, 4)) @ m, lambda x: jnp.ones((2, 4)) @ x),
    "all": (lambda m: m.sum(), jnp.sum),
    "first axis": (lambda m: m.sum(0), lambda x: x.sum(0)),
    "two axes": (lambda m: m.sum((0, 2), keepdims=True), lambda x: x.sum((0, 2), keepdims=True)),
    "last axis": (lambda m: m.sum(-1), lambda x: x.sum(-1)),
    "reversed": (lambda m: sparse.bcoo_rev(m, (0, 1, 2)), lambda x: x[::-1, ::-1, ::-1]),
    "joined 0": (
        lambda m: sparse.bcoo_concatenate([m, m], dimension=0),
        lambda x: jnp.concatenate([x, x], 0),
    ),
    "joined 1": (
        lambda m: sparse.bcoo_concatenate([m, m], dimension=1),
        lambda x: jnp.concatenate([x, x], 1),
    ),
    "joined 2": (
        lambda m: sparse.bcoo_concatenate([m, m], dimension=2),
        lambda x: jnp.concatenate([x, x], 2),
    ),
    "new axis before": (
        lambda m: sparse.bcoo_broadcast_in_dim(m, shape=(2, 3, 4, 5), broadcast_dimensions=(1, 2, 3)),
        lambda x: jnp.broadcast_to(x, (2, 3, 4, 5)),
    ),
    "new axis between": (
        lambda m: sparse.bcoo_broadcast_in_dim(m, shape=(3, 2, 4, 5), broadcast_dimensions=(0, 2, 3)),
        lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4, 5)),
    ),
    "new axis after": (
        lambda m: sparse.bcoo_broadcast_in_dim(m, shape=(3, 4, 5, 2), broadcast_dimensions=(0, 1, 2)),
        lambda x: jnp.broadcast_to(x[..., None], (3, 4, 5, 2)),
    ),
    "slice": (
        lambda m: sparse.bcoo_slice(m, start_indices=(0, 1, 1), limit_indices=(3, 4, 5), strides=(2, 1, 2)),
        lambda x: x[0:3:2, 1:4, 1:5:2],
    ),
    "dynamic slice": (
        lambda m: sparse.bcoo_dynamic_slice(m, (9, 1, -4), (2, 2, 2)),
        lambda x: x[1:3, 1:3, 1:3],
    ),
    "item": (lambda m: m[0], lambda x: x[0]),
    "items": (lambda m: m[0, ..., 2], lambda x: x[0, ..., 2]),
    "part": (lambda m: m[::-1, None, 1:3], lambda x: x[::-1, None, 1:3]),
    "element": (lambda m: m[1, 2, -1], lambda x: x[1, 2, -1]),
    "sorted": (lambda m: sparse.bcoo_rev(m, (1,)).sort_indices(), lambda x: x[:, ::-1]),
    "summed": (lambda m: (m + m).sum_duplicates(nse=m.nse * 2), lambda x: 2 * x),
    "all sparse": (lambda m: m.update_layout(n_batch=0, n_dense=0), lambda x: x),
    "batched": (lambda m: m.update_layout(n_batch=1, n_dense=0, on_inefficient=None), lambda x: x),
    "more dense": (lambda m: m.update_layout(n_batch=0, n_dense=2, on_inefficient=None), lambda x: x),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_operations_agree_with_dense_ones(layout):
    m, x = pair((3, 4, 5), *layout)
    results = {name: function(m) for name, (function, _) in OPERATIONS.items()}
    for name, (_, dense) in OPERATIONS.items():
        same(results[name], dense(x), (name, layout))


def test_operations_agree_when_compiled():
    m, x = pair((3, 4, 5), 1, 0, 3)
    results = purax.jit(lambda m: {name: function(m) for name, (function, _) in OPERATIONS.items()})(m)
    for name, (_, dense) in OPERATIONS.items():
        same(results[name], dense(x), name)


CONTRACTIONS = [
    ((0,), (0,), (3, 2)),
    ((1,), (1,), (2, 4)),
    ((0, 2), (1, 0), (5, 3)),
    ((2, 0, 1), (0, 1, 2), (5, 3, 4)),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_products_over_all_kinds_of_axes(layout):
    m, x = pair((3, 4, 5), *layout)
    for left, right, shape in CONTRACTIONS:
        y = jnp.asarray(generator.normal(size=shape), jnp.float32)
        numbers = ((left, right), ((), ()))
        wanted = np.tensordot(np.asarray(x), np.asarray(y), (left, right))
        same(sparse.bcoo_dot_general(m, y, dimension_numbers=numbers), wanted, (layout, left))
        wanted = np.tensordot(np.asarray(y), np.asarray(x), (right, left))
        numbers = ((right, left), ((), ()))
        same(sparse.bcoo_dot_general(y, m, dimension_numbers=numbers), wanted, (layout, left))
    if layout[0]:
        numbers = (((2,), (2,)), ((0,), (0,)))
        wanted = jnp.einsum("abc,adc->abd", x, x)
        same(sparse.bcoo_dot_general(m, x, dimension_numbers=numbers), wanted, layout)
        if not layout[1]:
            same(sparse.bcoo_dot_general(m, m, dimension_numbers=numbers), wanted, layout)
    if not layout[1]:
        n, y = pair((5, 2))
        same(m @ n, x @ y, layout)
        same(
            sparse.bcoo_dot_general(m, m, dimension_numbers=(((0, 1, 2),) * 2, ((), ()))),
            jnp.sum(x * x),
            layout,
        )


def compiled_quickly(function, *arguments):
    """What a function of jax gives; by one program, unless the number of elements depends on values."""
    try:
        return jax.jit(function).lower(*arguments).compile(QUICKLY)(*arguments)
    except (TypeError, ValueError):
        return function(*arguments)


def test_forms_of_results_are_those_of_jax():
    x = np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]], np.float32)
    ours, theirs = (library.BCOO.fromdense(x) for library in (sparse, jax_sparse))
    for expression in (
        *(
            "m",
            "m.T",
            "m @ m",
            "m + m",
            "m * 2",
            "m * m",
            "m[0]",
            "m[0, 1]",
            "m[1:, None]",
            "m.sum(0)",
            "m.reshape(9)",
        ),
        *(
            "m.sum_duplicates()",
            "m.sum_duplicates(nse=5)",
            "m.sum_duplicates(remove_zeros=False)",
            "-m",
            "m.astype(int)",
        ),
        *(
            "S.BCOO.fromdense(m.todense(), nse=5)",
            "S.BCOO.fromdense(m.todense(), n_batch=1)",
            "S.eye(3, 4, 1)",
        ),
        *("S.BCOO.fromdense(m.todense(), n_dense=1)", "S.empty((2, 3))", "S.bcoo_reduce_sum(m, axes=(1,))"),
        *(
            "S.bcoo_concatenate([m, m], dimension=1)",
            "S.sparsify(lambda a: a + a.T)(m)",
            "S.grad(lambda a: a.sum())(m)",
        ),
        *(
            "S.bcoo_extract(m, 5 * m.todense())",
            "S.jacrev(lambda a: a @ a.todense()[0])(m)",
            "m.update_layout(n_dense=0)",
        ),
    ):
        given = eval(expression, {"m": ours, "S": sparse, "int": int})
        wanted = compiled_quickly(lambda m, e=expression: eval(e, {"m": m, "S": jax_sparse, "int": int}), theirs)
        assert repr(given) == repr(wanted), expression
        same(given, wanted.todense(), expression)
        if expression not in ("m.T", "m @ m", "m * m", "m[1:, None]"):  # where the order of entries differs
            np.testing.assert_array_equal(given.indices, wanted.indices, expression)
    assert repr(sparse.BCSR.from_bcoo(ours).indptr) == repr(jax_sparse.BCSR.from_bcoo(theirs).indptr)
    twice = [(np.array([1.0, 2.0, 3.0], np.float32), np.array([[0, 0], [0, 0], [1, 1]]))] * 2
    ours, theirs = sparse.BCOO(twice[0], shape=(3, 3)), jax_sparse.BCOO(twice[1], shape=(3, 3))
    for unique in (None, True, False):
        given = sparse.bcoo_extract(ours, jnp.ones((3, 3)), assume_unique=unique).data
        wanted = jax_sparse.bcoo_extract(theirs, jax_numpy.ones((3, 3)), assume_unique=unique).data
        np.testing.assert_array_equal(given, wanted)


def test_derivatives():
    m, x = pair((3, 4), extra=2)
    y = jnp.asarray(generator.normal(size=(4, 2)), jnp.float32)
    loss = lambda a, y: jnp.sum(jnp.sin(a @ y))  # noqa: E731
    dense, other = purax.grad(loss, (0, 1))(x, y)
    gradient, with_respect_to_y = sparse.grad(loss, (0, 1))(m, y)
    same(gradient, sparse.bcoo_extract(m, dense), "with respect to the elements")
    same(with_respect_to_y, other, "with respect to the dense factor")
    value, tree = purax.jit(sparse.value_and_grad(lambda p: loss(p["m"], p["y"])))({"m": m, "y": y})
    assert float(value) == pytest.approx(float(loss(x, y)), rel=1e-5)
    same(tree["m"], sparse.bcoo_extract(m, dense), "in a tree")
    whole = purax.jacobian(lambda a: a @ y)(x)
    mask = sparse.bcoo_extract(m, jnp.ones((3, 4))).todense()
    for jacobian in (sparse.jacfwd, sparse.jacrev):
        table = jacobian(lambda a: {"out": a @ y})(m)["out"]
        assert (table.n_batch, table.shape) == (2, (3, 2, 3, 4))
        same(table, whole * mask, jacobian)
    same(purax.vmap(lambda column: m @ column, 1, 1)(y), x @ y, "vmap over the dense factor")
    scaled = purax.vmap(lambda s: (s * m) @ y)(jnp.arange(3.0))
    same(scaled, jnp.arange(3.0)[:, None, None] * (x @ y), "vmap over the elements")


def test_sparsify():
    m, x = pair((3, 3))

    def function(a, b):
        return (
            *(
                jnp.sin(a) @ b + 1,
                a + a.T,
                a * a,
                jnp.sum(a),
                a.sum(0),
                a[0],
                a[1:, None],
                jnp.tanh(-a),
                a**2,
            ),
            *(
                a.reshape(9),
                jnp.concatenate([a, a]),
                jnp.squeeze(a[None]),
                a.astype(int),
                a / 2.0,
                jnp.flip(a, 0),
            ),
            *(jnp.einsum("ij,kj->ik", a, b), jnp.sqrt(abs(a)), purax.jit(lambda x: x * 3)(a), jnp.expm1(a)),
            *(
                jnp.broadcast_to(a, (2, 3, 3)),
                a - a,
                a[jnp.array([0, 2])],
                b - a,
                a * b,
                b * a,
                {"two": 2 * a},
            ),
        )

    for transform in (lambda f: f, purax.jit):
        given = purax.tree.leaves(
            transform(sparse.sparsify(function))(m, x + 1), is_leaf=lambda a: isinstance(a, BCOO)
        )
        for number, (mine, wanted) in enumerate(
            zip(given, purax.tree.leaves(function(x, x + 1)), strict=True)
        ):
            same(mine, wanted, number)
            assert isinstance(mine, BCOO) == (number not in (0, 3, 15, 22)), number
    for bad in (
        jnp.cos,
        lambda a: a + 1,
        lambda a: a > 0,
        lambda a: 1 / a,
        lambda a: jnp.concatenate([a, x]),
    ):
        with pytest.raises(NotImplementedError, match="sparse.todense") as caught:
            sparse.sparsify(bad)(m)
        assert "test_sparse.py" in str(caught.value)


@pytest.mark.parametrize("form", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_other_forms(form):
    m, y = sparse.eye(3, 4, k=1, sparse_format=form), jnp.arange(8.0).reshape(4, 2)
    dense = jnp.eye(3, 4, k=1)
    kind = type(m)
    assert sparse.empty((3, 2), sparse_format=form).nse == 0
    for given, wanted in (
        (m, dense), (m.T, dense.T), (m @ y, dense @ y), (y.T @ m.T, y.T @ dense.T), (2 * m, 2 * dense), (-m, -dense),
        (m.sum(), 3.0), (purax.jit(lambda m: m @ y)(m), dense @ y), (kind.fromdense(dense, nse=5), dense),
        (m @ y[:, 0], dense @ y[:, 0]), (purax.jit(lambda m: m * 2)(m), 2 * dense),
    ):  # fmt: skip
        same(given, wanted, form)
    gradient = sparse.grad(lambda m: jnp.sum((m @ y) ** 2))(m)
    assert isinstance(gradient, kind)
    np.testing.assert_allclose(gradient.data, [26, 82, 170])  # 2 Σ y² of each row


def test_batches_in_compressed_rows_and_conversions():
    x = jnp.asarray(generator.normal(size=(2, 3, 3)) * (generator.uniform(size=(2, 3, 3)) < 0.5), jnp.float32)
    m = sparse.BCSR.fromdense(x, n_batch=1)
    same(m, x, "BCSR")
    same(m @ jnp.ones((3, 2)), x @ jnp.ones((3, 2)), "product")
    np.testing.assert_allclose(sparse.bcsr_extract(m.indices, m.indptr, x), m.data)
    matrix = scipy.sparse.random(5, 6, 0.4, random_state=0, dtype=np.float32)
    for kind in (BCOO, sparse.BCSR):
        same(kind.from_scipy_sparse(matrix), matrix.toarray(), kind)
    system = sparse.CSR.fromdense(x[0] + 4 * jnp.eye(3))
    solve = lambda data, b: sparse.linalg.spsolve(data, system.indices, system.indptr, b)  # noqa: E731
    np.testing.assert_allclose(
        solve(system.data, jnp.ones(3)), jnp.linalg.solve(system.todense(), jnp.ones(3)), rtol=1e-5
    )
    purax.test_util.check_grads(
        solve, (system.data, jnp.ones(3)), order=1, modes=("rev",), atol=2e-2, rtol=2e-2
    )
    drawn = sparse.random_bcoo(purax.random.PRNGKey(0), (2, 4, 5), nse=4, n_batch=1, sorted_indices=True)
    assert (drawn.nse, int(jnp.sum(drawn.todense() != 0))) == (4, 8)


def test_eigenvalues():
    a = generator.normal(size=(60, 60))
    a = a @ a.T
    values, vectors, steps = sparse.linalg.lobpcg_standard(
        jnp.asarray(a, jnp.float32), jnp.asarray(generator.normal(size=(60, 3)), jnp.float32)
    )
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[::-1][:3], rtol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-5)
    assert 0 < int(steps) < 100


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda m: BCOO((jnp.ones(2), jnp.zeros((3, 2), int)), shape=(3, 3)),
            ValueError,
            "data must have the shape",
        ),
        (
            lambda m: BCOO((jnp.ones(2), jnp.zeros((2, 2))), shape=(3, 3)),
            TypeError,
            "indices must be integers",
        ),
        (lambda m: m.update_layout(n_batch=1), sparse.SparseEfficiencyError, "stores more"),
        (lambda m: m == m, NotImplementedError, "gives a dense one"),
        (lambda m: m**0, NotImplementedError, "is dense"),
        (lambda m: m + 1, NotImplementedError, "larger than that"),
        (lambda m: m[9], IndexError, "out of bounds"),
        (lambda m: m[0, 0, 0], IndexError, "too many indices"),
        (lambda m: m @ jnp.ones(5), TypeError, "equal sizes"),
        (lambda m: m.reshape(4), ValueError, "cannot have the shape"),
        (lambda m: np.asarray(m), TypeError, "todense"),
        (lambda m: hash(m), TypeError, "unhashable"),
        (lambda m: sparse.empty((2,), sparse_format="dok"), ValueError, "sparse_format must be one of"),
        (
            lambda m: purax.jit(lambda x: BCOO.fromdense(x).data)(m.todense()),
            purax.errors.ConcretizationTypeError,
            "give it as nse",
        ),
        (
            lambda m: purax.jit(lambda m: sparse.bcoo_sum_duplicates(m).data)(m),
            purax.errors.ConcretizationTypeError,
            "give it as nse",
        ),
    ],
)
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call(BCOO.fromdense(jnp.eye(3)))
    assert "test_sparse.py" in str(caught.value)


def test_arrays_taken_apart_into_buffers():
    from purax.experimental.sparse import util, values

    matrix, env = sparse.BCOO.fromdense(jnp.eye(3)), values.SparsifyEnv()
    parts = values.arrays_to_spvalues(env, (matrix, jnp.ones(3)))
    assert parts[0].is_bcoo() and parts[1].is_dense() and parts[0].unique_indices
    back = values.spvalues_to_arrays(env, parts)
    assert (back[0].todense() == jnp.eye(3)).all() and back[1].tolist() == [1, 1, 1]
    assert values.spvalues_to_avals(env, parts)[0].shape == (3, 3)
    results, tree = values.sparsify_raw(lambda m, v: m @ v)(env, *parts)
    assert tree.num_leaves == 1 and env.data(results[0]).tolist() == [1, 1, 1]
    compressed = values.arrays_to_spvalues(env, sparse.BCSR.fromdense(jnp.eye(2)))
    assert compressed.is_bcsr() and values.spvalues_to_arrays(env, compressed).todense().tolist() == [
        [1, 0],
        [0, 1],
    ]
    with pytest.raises(RuntimeError, match="has no indices"):
        env.indices(parts[1])
    assert util.broadcasting_vmap(lambda x, y: x * y)(jnp.ones((1, 3)), jnp.ones((2, 3))).shape == (2, 3)
    assert util.nfold_vmap(lambda x, y: x + y, 2)(jnp.ones((2, 3)), jnp.ones((2, 1))).shape == (2, 3)
    stored = sparse.BCSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]), nse=4)
    assert sparse.compressed.bcsr_eliminate_zeros(stored).data.tolist() == [1, 2]
