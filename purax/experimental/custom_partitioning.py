"""Functions that say how they are cut up over devices: `custom_partitioning`.

Where the shardings of the arguments are known (concrete arrays, and types over `Explicit` axes), the function that
`partition` gives runs on the parts, by `shard_map`. In a compiled function over `Auto` axes, shardings are found by
XLA's partitioner, which cannot call Python here; there it cuts up the operations of the function itself, whose results
are the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from purax.api.jit import eval_shape, jit
from purax.api.stages import ShapeDtypeStruct
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import aval_of_argument
from purax.sharding.mesh import Mesh, PartitionSpec
from purax.sharding.shard_map import shard_map
from purax.sharding.shardings import NamedSharding
from purax.tree.registry import tree_flatten, tree_unflatten

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

BATCHING = "…"


def _check_factor(name: Any, kind: str) -> str:
    if not isinstance(name, str):
        raise located(
            ValueError, f"Each element of {kind} must be a str or CompoundFactor, but got {type(name)}"
        )
    if not name[:1].isalpha() or not name.replace("_", "").isalnum():
        raise located(
            ValueError, f"Factor names have to start with a letter, but got {name[:1]!r} in {shown(name)}"
        )
    return name


class CompoundFactor(tuple):
    """An axis that is the product of several factors: `CompoundFactor("b", "c")`."""

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise located(ValueError, "A compound factor should contain at least two factors")
        return super().__new__(cls, [_check_factor(name, "CompoundFactor") for name in factors])


class ArrayMapping(tuple):
    """A factor for each axis of an array, a name or a `CompoundFactor`; `BATCHING` in front is for batch axes.

    >>> from purax.experimental.custom_partitioning import ArrayMapping, CompoundFactor
    >>> ArrayMapping(CompoundFactor("b", "c"), "d")
    (('b', 'c'), 'd')
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for i, entry in enumerate(dim_mappings):
            if entry == BATCHING:
                if i:
                    raise located(ValueError, "BATCHING stands in front of the other factors")
            elif not isinstance(entry, CompoundFactor):
                _check_factor(entry, "ArrayMapping")
        return super().__new__(cls, dim_mappings)


class SdyShardingRule:
    """Which axes of operands and results belong together, as Shardy says it.

    Args:
        operand_mappings: an `ArrayMapping` for each operand.
        result_mappings: one for each result.
        reduction_factors: factors that are summed over.
        need_replication_factors: factors that cannot be cut.
        permutation_factors: factors along which parts are sent around.
        factor_sizes: the sizes of factors that stand in compound ones only.
    """

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings, self.result_mappings = tuple(operand_mappings), tuple(result_mappings)
        self.factor_sizes = factor_sizes
        self.special = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        entries = [x for mapping in (*operand_mappings, *result_mappings) for x in mapping]
        alone = {x for x in entries if isinstance(x, str)}
        inside = {name for x in entries if isinstance(x, CompoundFactor) for name in x}
        for name in sorted(inside - alone - set(factor_sizes)):
            raise located(
                ValueError, f"Factor {name} is only used in compound factors; must specify its size"
            )
        for name in sorted(set(factor_sizes) - inside):
            raise located(ValueError, f"Factor {name} represents a whole dimension; do not specify its size")
        for kind, names in self.special.items():
            for name in names:
                if name not in alone | inside:
                    raise located(ValueError, f"Factor {name} in {kind} is not used by any array")

    def __repr__(self) -> str:
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes})"


def _parsed(rule: str) -> tuple[tuple[ArrayMapping, ...], tuple[ArrayMapping, ...]]:
    """A rule such as `"i j, j k -> i k"`; compound factors stand in parentheses, `...` is `BATCHING`."""
    sides = rule.split("->")
    if len(sides) != 2:
        raise located(ValueError, f"sharding_rule: there must be one '->' in {shown(rule)}")

    def mapping(text: str) -> ArrayMapping:
        words = re.findall(r"\([^()]*\)|\.\.\.|[^\s()]+", text)
        entries: list[Any] = []
        for word in words:
            if word.startswith("("):
                entries.append(CompoundFactor(*word[1:-1].split()))
            else:
                entries.append(BATCHING if word in ("...", BATCHING) else word)
        return ArrayMapping(*entries)

    operands, results = (tuple(mapping(part) for part in side.split(",")) for side in sides)
    return operands, results


class custom_partitioning:  # noqa: N801
    """A function that says how it is cut up over devices.

    Args:
        fun: the function, of whole arrays.
        static_argnums: the arguments that are not arrays.

    >>> import purax.numpy as jnp
    >>> from purax.experimental.custom_partitioning import custom_partitioning
    >>> f = custom_partitioning(lambda x: jnp.sin(x))
    >>> f.def_partition(
    ...     partition=lambda mesh, args, out: (mesh, jnp.sin, args[0].sharding, (args[0].sharding,)),
    ...     infer_sharding_from_operands=lambda mesh, args, out: args[0].sharding,
    ...     sharding_rule="... i -> ... i",
    ... )
    >>> f(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """

    def __init__(self, fun: Callable, static_argnums: int | Sequence[int] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self.partition: Callable | None = None
        self.infer_sharding_from_operands: Callable | None = None
        self.propagate_user_sharding: Callable | None = None
        self.decode_shardings = True
        self.sharding_rule: SdyShardingRule | None = None
        self._whole = jit(fun, static_argnums=self.static_argnums)

    def def_partition(
        self,
        partition: Callable,
        infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | None = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        """Says how the function is cut up.

        Args:
            partition: from static arguments, a mesh, the types of the arguments with their shardings and those of the
                results, to the mesh, the function of the parts, the shardings of the results and of the arguments.
            infer_sharding_from_operands: from the same to the shardings of the results.
            propagate_user_sharding: kept, for partitioners that ask backwards.
            decode_shardings: whether shardings are given as `NamedSharding`s; they always are.
            sharding_rule: which axes belong together: an `SdyShardingRule`, or a text such as "i j, j k -> i k".
            reduction_factors: of a rule that is a text.
            need_replication_factors: likewise.
            permutation_factors: likewise.
            factor_sizes: likewise.
        """
        if isinstance(sharding_rule, str):
            operands, results = _parsed(sharding_rule)
            sharding_rule = SdyShardingRule(
                operands,
                results,
                reduction_factors=reduction_factors,
                need_replication_factors=need_replication_factors,
                permutation_factors=permutation_factors,
                **factor_sizes,
            )
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.decode_shardings = decode_shardings
        self.sharding_rule = sharding_rule

    def __call__(self, *args: Any) -> Any:
        static = [args[i] for i in self.static_argnums]
        moving = [x for i, x in enumerate(args) if i not in self.static_argnums]
        leaves, tree = tree_flatten(tuple(moving))
        mesh = next((m for m in map(_mesh_of, leaves) if m is not None), None)
        if self.partition is None or mesh is None:
            return self._whole(*args)
        types = tree_unflatten(tree, [_typed(x, mesh) for x in leaves])
        shapes = eval_shape(self._with_static(static), *types)
        if self.infer_sharding_from_operands is not None:
            found = self.infer_sharding_from_operands(*static, mesh, types, shapes)
            out_leaves, out_tree = tree_flatten(shapes)
            places = tree_flatten(found)[0]
            typed = [
                ShapeDtypeStruct(s.shape, s.dtype, sharding=place)
                for s, place in zip(out_leaves, places, strict=True)
            ]
            shapes = tree_unflatten(out_tree, typed)
        mesh, lowered, out_shardings, in_shardings = self.partition(*static, mesh, types, shapes)
        in_specs = tree_unflatten(tree, [_spec(s) for s in tree_flatten(tuple(in_shardings))[0]])
        out_leaves, out_tree = tree_flatten(out_shardings)
        out_specs = tree_unflatten(out_tree, [_spec(s) for s in out_leaves])
        return shard_map(lowered, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)(*moving)

    def _with_static(self, static: Sequence[Any]) -> Callable:
        def function(*moving: Any) -> Any:
            rest = iter(moving)
            fixed = dict(zip(self.static_argnums, static, strict=True))
            count = len(moving) + len(static)
            return self.fun(*[fixed[i] if i in fixed else next(rest) for i in range(count)])

        return function


def _mesh_of(x: Any) -> Mesh | None:
    sharding = getattr(x, "sharding", None) if getattr(x, "committed", False) else None
    return sharding.mesh if isinstance(sharding, NamedSharding) else None


def _typed(x: Any, mesh: Mesh) -> ShapeDtypeStruct:
    aval = aval_of_argument(x)
    sharding = getattr(x, "sharding", None)
    if not isinstance(sharding, NamedSharding):
        sharding = NamedSharding(mesh, PartitionSpec())
    return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)


def _spec(sharding: Any) -> PartitionSpec:
    return sharding.spec if isinstance(sharding, NamedSharding) else sharding
