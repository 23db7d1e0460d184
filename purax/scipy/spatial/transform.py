"""Rotations in three dimensions, as `jax.scipy.spatial.transform`.

A rotation is a unit quaternion (x, y, z, w); an array of them has the quaternions on its last axis. Both classes are
pytrees, so that rotations pass through `jit`, `vmap` and `grad`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import concrete_value
from purax.random.normals import normal


class Rotation(NamedTuple):
    """A rotation, or an array of rotations.

    >>> import purax as px
    >>> r = px.scipy.spatial.transform.Rotation.from_euler("z", 90, degrees=True)
    >>> r.apply(px.numpy.array([1.0, 0.0, 0.0])).round(4)
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Array

    # --- from other forms

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """From quaternions (x, y, z, w) of any length."""
        quat = _last_axis("from_quat", quat, 4)
        return cls(quat / _length(quat))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """From rotation matrices, on the last two axes."""
        matrix = _floats(matrix)
        if matrix.shape[-2:] != (3, 3):
            raise located(
                ValueError, f"Rotation.from_matrix needs matrices of shape (3, 3), got shape {matrix.shape}"
            )
        m = [[matrix[..., i, j] for j in range(3)] for i in range(3)]
        # 4 q qᵀ, of which all rows are multiples of the quaternion; the longest one has the least rounding errors.
        xx, yy, zz = m[0][0], m[1][1], m[2][2]
        xy, xz, yz = m[0][1] + m[1][0], m[0][2] + m[2][0], m[1][2] + m[2][1]
        xw, yw, zw = m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]
        rows = [
            [1 + xx - yy - zz, xy, xz, xw],
            [xy, 1 - xx + yy - zz, yz, yw],
            [xz, yz, 1 - xx - yy + zz, zw],
            [xw, yw, zw, 1 + xx + yy + zz],
        ]
        squares = jnp.stack([rows[i][i] for i in range(4)], axis=-1)
        table = jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
        longest = jnp.argmax(squares, axis=-1)[..., None, None]
        return cls.from_quat(jnp.take_along_axis(table, longest, axis=-2)[..., 0, :])

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """From rotation vectors: the axis times the angle."""
        rotvec = _last_axis("from_rotvec", rotvec, 3)
        if degrees:
            rotvec = jnp.deg2rad(rotvec)
        square = jnp.sum(rotvec * rotvec, axis=-1, keepdims=True)
        is_small = square < 1e-6
        angle = jnp.sqrt(jnp.where(is_small, 1, square))
        # sin(θ/2) / θ and cos(θ/2), by their series where θ is small
        scale = jnp.where(is_small, 0.5 - square / 48, jnp.sin(angle / 2) / angle)
        cosine = jnp.where(is_small, 1 - square / 8, jnp.cos(angle / 2))
        return cls(jnp.concatenate([scale * rotvec, cosine], axis=-1))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """From modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
        mrp = _last_axis("from_mrp", mrp, 3)
        square = jnp.sum(mrp * mrp, axis=-1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """From angles of rotations one after the other.

        Args:
            seq: up to three axes: "xyz" stay where they are, "XYZ" turn with the body.
            angles: a number if there is one axis, else the angles of a rotation on the last axis.
            degrees: whether angles are in degrees.
        """
        axes, is_intrinsic = _axes(seq, (1, 2, 3))
        angles = _floats(angles)
        if len(axes) == 1 and (not angles.ndim or angles.shape[-1] != 1 or angles.ndim == 1):
            angles = angles if angles.shape == (1,) else angles[..., None]
        if angles.shape[-1] != len(axes):
            raise located(
                ValueError,
                f"Rotation.from_euler: {shown(seq)} needs {len(axes)} angles on the last axis, got shape "
                f"{angles.shape}",
            )
        half = (jnp.deg2rad(angles) if degrees else angles) / 2
        total: Any = None
        for i, axis in enumerate(axes):
            sine, cosine = jnp.sin(half[..., i]), jnp.cos(half[..., i])
            parts = [sine if place == axis else jnp.zeros_like(sine) for place in range(3)]
            single = jnp.stack([*parts, cosine], axis=-1)
            if total is None:
                total = single
            else:
                total = _compose(total, single) if is_intrinsic else _compose(single, total)
        return cls(total)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that turns nothing, or an array of `num` of them."""
        one = jnp.array([0.0, 0.0, 0.0, 1.0], dtypes.canonicalize_dtype(dtype))
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Uniformly distributed rotations: one, or an array of `num`."""
        return cls.from_quat(normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Several rotations, or arrays of them, as one array."""
        return cls(jnp.concatenate([jnp.atleast_2d(rotation.quat) for rotation in finite(rotations)]))

    # --- to other forms

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """As quaternions.

        Args:
            canonical: whether to choose, of the two quaternions of a rotation, the one whose first component that is
                not 0, in the order w, x, y, z, is positive.
            scalar_first: whether the order is (w, x, y, z).
        """
        quat = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def as_matrix(self) -> Array:
        """As matrices of shape (3, 3)."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """As vectors: the axis times the angle, which is at most π."""
        quat = _canonical(self.quat)
        vector, w = quat[..., :3], quat[..., 3:]
        square = jnp.sum(vector * vector, axis=-1, keepdims=True)
        is_small = square < 1e-6
        sine = jnp.sqrt(jnp.where(is_small, 1, square))
        safe = jnp.where(is_small, w, 1)
        # θ / sin(θ/2), by its series where θ is small
        scale = jnp.where(
            is_small, (2 - square / (3 * safe * safe) * 2) / safe, 2 * jnp.arctan2(sine, w) / sine
        )
        rotvec = scale * vector
        return jnp.rad2deg(rotvec) if degrees else rotvec

    def as_mrp(self) -> Array:
        """As modified Rodrigues parameters, of length 1 at most."""
        quat = _canonical(self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """As angles about three axes; see `from_euler`.

        The second angle lies in [-π/2, π/2], or in [0, π] if the first and the last axis are the same. Where the others
        are not unique, the last one is 0.
        """
        axes, is_intrinsic = _axes(seq, (3,))
        # Bernardes and Viollet, "Quaternion to Euler angles conversion" (2022), for axes that stay where they are;
        # turning ones are the same in reverse order.
        i, j, k = axes[::-1] if is_intrinsic else axes
        if i == j or j == k:
            raise located(ValueError, f"Rotation.as_euler: neighbouring axes must differ, got {shown(seq)}")
        is_symmetric = i == k
        k = 3 - i - j if is_symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = [self.quat[..., place] for place in range(4)]
        if is_symmetric:
            a, b, c, d = q[3], q[i], q[j], q[k] * sign
        else:
            a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
        second = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        # Nearly parallel axes: only a sum or a difference of the angles is known.
        tolerance = 1e-7 if dtypes.itemsize_bits(second.dtype) == 64 else 1e-6
        is_zero, is_half_turn = abs(second) <= tolerance, abs(second - np.pi) <= tolerance
        outer, inner = half_sum - half_difference, half_sum + half_difference
        first, third = (inner, outer) if is_intrinsic else (outer, inner)
        turned = 2 * half_difference * (1 if is_intrinsic else -1)
        scale = 1 if is_symmetric else sign
        if is_intrinsic:
            first = first * scale
            alone = jnp.where(is_zero, 2 * half_sum * scale, turned * scale)
        else:
            third = third * scale
            alone = jnp.where(is_zero, 2 * half_sum, turned)
        is_degenerate = is_zero | is_half_turn
        first = jnp.where(is_degenerate, alone, first)
        third = jnp.where(is_degenerate, 0, third)
        second = second if is_symmetric else second - np.pi / 2
        angles = jnp.stack([first, second, third], axis=-1)
        angles = jnp.where(angles < -np.pi, angles + 2 * np.pi, angles)
        angles = jnp.where(angles > np.pi, angles - 2 * np.pi, angles)
        return jnp.rad2deg(angles) if degrees else angles

    # --- operations

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """Vectors after the rotation, or after its inverse. Vectors and rotations are broadcast against each other."""
        vectors = _last_axis("apply", vectors, 3)
        matrix = self.as_matrix()
        subscripts = "...ji,...j->...i" if inverse else "...ij,...j->...i"
        return jnp.einsum(subscripts, matrix, vectors, precision="highest")

    def inv(self) -> Rotation:
        """The inverse."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """The angle, between 0 and π."""
        length = _length(self.quat[..., :3])[..., 0]
        return 2 * jnp.arctan2(length, abs(self.quat[..., 3]))

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation that is nearest to all of an array: the least sum of squared chordal distances, with weights."""
        quats = self.quat.reshape(-1, 4)
        weighted = quats if weights is None else quats * jnp.asarray(weights, quats.dtype).reshape(-1, 1)
        products = jnp.matmul(weighted.T, quats, precision="highest")
        return Rotation(jnp.linalg.eigh(products)[1][:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation and not an array of them."""
        return self.quat.ndim == 1

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """The rotation that turns as `other`, and then as `self`."""
        if not isinstance(other, Rotation):
            return NotImplemented
        return Rotation(_compose(self.quat, other.quat))

    def __getitem__(self, index: Any) -> Rotation:  # type: ignore[override]
        if self.single:
            raise located(TypeError, "a single rotation is not subscriptable")
        return Rotation(self.quat[index])

    def __len__(self) -> int:
        if self.single:
            raise located(TypeError, "a single rotation has no len()")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        return True


class Slerp(NamedTuple):
    """Rotations between given ones, along the shortest way, at constant speed; made by `Slerp.init`.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.scipy.spatial.transform import Rotation, Slerp
    >>> ends = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
    >>> Slerp.init(jnp.array([0.0, 1.0]), ends)(0.5).as_euler("xyz", degrees=True).round(3)
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """From times, which increase, and an array with as many rotations, at least two."""
        times = _floats(times)
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            raise located(ValueError, "Slerp.init needs an array of at least two rotations")
        if times.shape != (len(rotations),):
            raise located(
                ValueError,
                f"Slerp.init needs as many times as rotations, got times of shape {times.shape} for "
                f"{len(rotations)} rotations",
            )
        known = concrete_value(times)
        if known is not None and not np.all(np.diff(known) > 0):
            raise located(ValueError, f"Slerp.init: times must increase, got {known}")
        starts: Any = rotations[:-1]
        ways = (starts.inv() * rotations[1:]).as_rotvec()
        return cls(times, jnp.diff(times), starts, ways)

    def __call__(self, times: Any) -> Rotation:
        """The rotations at times; beyond the ends they go on turning."""
        times = _floats(times)
        part = jnp.clip(jnp.searchsorted(self.times, times, side="right") - 1, 0, self.timedelta.shape[0] - 1)
        share = (times - self.times[part]) / self.timedelta[part]
        return Rotation(self.rotations.quat[part]) * Rotation.from_rotvec(
            self.rotvecs[part] * share[..., None]
        )


def _floats(x: Any) -> Array:
    x = jnp.asarray(x)
    return x.astype(dtypes.to_inexact_dtype(x.dtype))


def _last_axis(name: str, x: Any, size: int) -> Array:
    x = _floats(x)
    if not x.ndim or x.shape[-1] != size:
        raise located(
            ValueError, f"Rotation.{name} needs arrays whose last axis has size {size}, got shape {x.shape}"
        )
    return x


def _length(x: Array) -> Array:
    return jnp.linalg.norm(x, axis=-1, keepdims=True)


def _canonical(quat: Array) -> Array:
    """The sign for which the first of w, x, y, z that is not 0 is positive."""
    x, y, z, w = (quat[..., i] for i in range(4))
    leading = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
    return jnp.where(leading[..., None] < 0, -quat, quat)


def _compose(p: Array, q: Array) -> Array:
    """The product of quaternions, normalized: rounding errors would add up in a chain of them."""
    (a, b, c, d), (e, f, g, h) = ([quat[..., i] for i in range(4)] for quat in (p, q))
    product = jnp.stack(
        [
            d * e + a * h + b * g - c * f,
            d * f - a * g + b * h + c * e,
            d * g + a * f - b * e + c * h,
            d * h - a * e - b * f - c * g,
        ],
        axis=-1,
    )
    return product / _length(product)


def _axes(seq: str, counts: Sequence[int]) -> tuple[list[int], bool]:
    """The numbers of the axes, and whether they turn with the body."""
    is_intrinsic = str(seq).isupper()
    if len(seq) not in counts or any(c not in ("XYZ" if is_intrinsic else "xyz") for c in seq):
        wanted = "three axes" if counts == (3,) else "one to three axes"
        raise located(ValueError, f"seq must name {wanted}, all of 'xyz' or all of 'XYZ', got {shown(seq)}")
    return ["xyz".index(c) for c in seq.lower()], is_intrinsic
