"""`ManualAxisType`: along which axes of a mesh the parts of an array differ, or are parts of a sum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from purax.core.limits import finite
from purax.errors import shown


class ManualAxisType:
    """How a value inside of `shard_map` depends on the axes of the mesh.

    Args:
        varying: the axes along which devices have different values.
        unreduced: those along which the value is the sum of what devices have.
        reduced: those along which the cotangent is.

    >>> from purax.sharding import ManualAxisType
    >>> ManualAxisType(varying={"x"}).empty
    False
    """

    __slots__ = ("reduced", "unreduced", "varying")

    def __init__(
        self,
        *,
        varying: Iterable[Any] = frozenset(),
        unreduced: Iterable[Any] = frozenset(),
        reduced: Iterable[Any] = frozenset(),
    ):
        given = (varying, unreduced, reduced)
        self.varying, self.unreduced, self.reduced = (frozenset(finite(axes)) for axes in given)
        kinds = {"varying": self.varying, "unreduced": self.unreduced, "reduced": self.reduced}
        names = list(kinds)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                if kinds[first] & kinds[second]:
                    raise ValueError(
                        f"{first} and {second} cannot have common mesh axes. Got {first}={set(kinds[first])} and "
                        f"{second}={set(kinds[second])}"
                    )

    @property
    def empty(self) -> bool:
        """Whether the value depends on no axis."""
        return not (self.varying or self.unreduced or self.reduced)

    @property
    def vur(self) -> frozenset:
        """All axes that are named."""
        return self.varying | self.unreduced | self.reduced

    def invarying(self, mesh: Any) -> frozenset:
        """The axes of type `Manual` of a mesh along which all devices have the same value."""
        return frozenset(mesh.manual_axes) - self.vur

    def to_ct_mat(self) -> ManualAxisType:
        """That of a cotangent: a sum becomes what is the same everywhere, and the other way round."""
        return ManualAxisType(varying=self.varying, unreduced=self.reduced, reduced=self.unreduced)

    def update(self, **changes: Any) -> ManualAxisType:
        """With other axes for some kinds."""
        return ManualAxisType(**{name: getattr(self, name) for name in self.__slots__} | changes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ManualAxisType) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.varying, self.unreduced, self.reduced))

    def __repr__(self) -> str:
        return f"ManualAxisType(varying={self.varying}, unreduced={self.unreduced}, reduced={self.reduced})"


def varying_of(given: Any) -> frozenset[Any]:
    """The axes along which a value varies, of an argument that must be a `ManualAxisType`."""
    if not isinstance(given, ManualAxisType):
        raise TypeError(f"manual_axis_type must be a ManualAxisType, got {shown(given)}")
    return given.varying
