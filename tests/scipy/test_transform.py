"""Rotations against SciPy, in double precision."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.spatial.transform as exact

import purax
import purax.numpy as jnp
from purax.scipy.spatial.transform import Rotation, Slerp

generator = np.random.default_rng(0)
QUATERNIONS = generator.normal(size=(20, 4))
THEIRS = exact.Rotation.from_quat(QUATERNIONS)
OURS = Rotation.from_quat(jnp.asarray(QUATERNIONS, "float64"))


def double(x):
    return jnp.asarray(x, "float64")


def test_forms_and_back():
    wanted = THEIRS.as_quat(canonical=True)
    for name in ("quat", "matrix", "rotvec", "mrp"):
        form = getattr(OURS, f"as_{name}")()
        if name != "quat":
            np.testing.assert_allclose(form, getattr(THEIRS, f"as_{name}")(), atol=1e-12, err_msg=name)
        np.testing.assert_allclose(getattr(Rotation, f"from_{name}")(form).as_quat(True), wanted, atol=1e-12)
    np.testing.assert_allclose(OURS.as_quat(True, scalar_first=True), np.roll(wanted, 1, 1), atol=1e-12)
    np.testing.assert_allclose(OURS.magnitude(), THEIRS.magnitude(), atol=1e-12)
    np.testing.assert_allclose(OURS.as_rotvec(degrees=True), THEIRS.as_rotvec(degrees=True), atol=1e-10)
    for angle in (0.0, 1e-9, 1e-4, 9e-4, 1.1e-3, 3.1):
        vector = np.array([angle, angle / 2, 0])
        rotation = Rotation.from_rotvec(double(vector))
        np.testing.assert_allclose(
            rotation.as_quat(), exact.Rotation.from_rotvec(vector).as_quat(), atol=1e-13
        )
        if angle < 3:
            np.testing.assert_allclose(rotation.as_rotvec(), vector, rtol=1e-10, atol=0)


AXES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]


def test_euler_angles():
    angles = generator.normal(size=(5, 3))
    for sequence in [s for axes in AXES for s in (axes, axes.upper())]:
        np.testing.assert_allclose(
            OURS.as_euler(sequence), THEIRS.as_euler(sequence), atol=1e-10, err_msg=sequence
        )
        turned = Rotation.from_euler(sequence, double(angles)).as_matrix()
        np.testing.assert_allclose(
            turned, exact.Rotation.from_euler(sequence, angles).as_matrix(), atol=1e-12
        )
        # Where the outer axes are parallel, the last angle is 0.
        for middle in (0, np.pi) if sequence[0] == sequence[2] else (np.pi / 2, -np.pi / 2):
            locked = exact.Rotation.from_euler(sequence, [0.3, middle, -1.2])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = locked.as_euler(sequence)
            given = Rotation.from_quat(double(locked.as_quat())).as_euler(sequence)
            np.testing.assert_allclose(given, wanted, atol=1e-7, err_msg=sequence)
    for sequence in ("x", "zy", "YZ"):
        angles = generator.normal(size=(4, len(sequence)))
        given = Rotation.from_euler(sequence, double(angles), degrees=True).as_matrix()
        np.testing.assert_allclose(
            given, exact.Rotation.from_euler(sequence, angles, degrees=True).as_matrix()
        )
    shapes = [
        Rotation.from_euler("x", angle).quat.shape
        for angle in (1.0, jnp.ones(1), jnp.ones(5), jnp.ones((5, 1)))
    ]
    assert shapes == [(4,), (4,), (5, 4), (5, 4)]


def test_operations():
    vectors = generator.normal(size=(20, 3))
    np.testing.assert_allclose(OURS.apply(double(vectors)), THEIRS.apply(vectors), atol=1e-12)
    np.testing.assert_allclose(OURS.apply(double(vectors), True), THEIRS.apply(vectors, True), atol=1e-12)
    np.testing.assert_allclose((OURS * OURS[3]).as_matrix(), (THEIRS * THEIRS[3]).as_matrix(), atol=1e-12)
    np.testing.assert_allclose((OURS * OURS.inv()).magnitude(), np.zeros(20), atol=1e-7)
    weights = generator.uniform(size=20)
    for w in (None, weights):
        np.testing.assert_allclose(OURS.mean(w).as_matrix(), THEIRS.mean(w).as_matrix(), atol=1e-6)
    times = np.sort(generator.uniform(size=20))
    between = np.linspace(times[0], times[-1], 7)
    given = Slerp.init(double(times), OURS)(double(between)).as_matrix()
    np.testing.assert_allclose(given, exact.Slerp(times, THEIRS)(between).as_matrix(), atol=1e-10)
    assert len(Rotation.concatenate([OURS, OURS[0]])) == 21 and OURS[0].single
    assert Rotation.identity(2).quat.shape == (2, 4) and Rotation.identity().magnitude() == 0
    many = Rotation.random(purax.random.PRNGKey(0), 2000).apply(jnp.array([1.0, 0.0, 0.0]))
    assert float(jnp.max(abs(jnp.mean(many, 0)))) < 0.06


def test_transformations():
    doubled = purax.jit(lambda r: r * r)(OURS)
    assert isinstance(doubled, Rotation)
    np.testing.assert_allclose(doubled.as_matrix(), (THEIRS * THEIRS).as_matrix(), atol=1e-12)
    np.testing.assert_allclose(purax.vmap(Rotation.magnitude)(OURS), THEIRS.magnitude(), atol=1e-12)
    # The derivative at no rotation is finite: a small vector turns as its cross product.
    jacobian = purax.jacobian(lambda v: Rotation.from_rotvec(v).as_matrix())(jnp.zeros(3))
    np.testing.assert_allclose(jacobian[:, :, 2], [[0, -1, 0], [1, 0, 0], [0, 0, 0]], atol=1e-6)
    there_and_back = purax.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())
    np.testing.assert_allclose(there_and_back(jnp.zeros(3)), np.eye(3), atol=1e-6)
    np.testing.assert_allclose(there_and_back(jnp.array([0.5, -1.0, 2.0])), np.eye(3), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: Rotation.from_quat(jnp.ones(3)), ValueError, "last axis has size 4"),
        (lambda: Rotation.from_matrix(jnp.ones((2, 2))), ValueError, "shape \\(3, 3\\)"),
        (lambda: Rotation.from_euler("xX", jnp.ones(2)), ValueError, "all of 'xyz' or all of 'XYZ'"),
        (lambda: Rotation.from_euler("xy", jnp.ones(3)), ValueError, "needs 2 angles"),
        (lambda: OURS.as_euler("xxy"), ValueError, "neighbouring axes must differ"),
        (lambda: OURS.as_euler("xy"), ValueError, "three axes"),
        (lambda: OURS[0][0], TypeError, "not subscriptable"),
        (lambda: len(OURS[0]), TypeError, "has no len"),
        (lambda: Slerp.init(jnp.ones(20), OURS), ValueError, "times must increase"),
        (lambda: Slerp.init(jnp.ones(2), OURS), ValueError, "as many times"),
        (lambda: Slerp.init(jnp.ones(1), OURS[0]), ValueError, "at least two rotations"),
    ],
)
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "test_transform.py" in str(caught.value)
