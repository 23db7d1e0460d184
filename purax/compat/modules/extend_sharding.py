"""`jax.extend.sharding`: the protocol buffers in which XLA says how arrays are sharded."""

from __future__ import annotations

from typing import Any

from purax.xla import jaxlib_api

__all__ = [
    "get_hlo_sharding_from_serialized_proto",
    "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The protocol buffer of its bytes."""
    proto = jaxlib_api.OpSharding()
    proto.ParseFromString(sharding)
    return proto


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The sharding that a protocol buffer says."""
    return jaxlib_api.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """A sharding as the bytes of its protocol buffer."""
    return sharding.to_proto().SerializeToString()
