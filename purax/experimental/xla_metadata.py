"""Attributes for XLA on operations and on calls: `frontend_attributes`, which passes of the compiler read.

They change no value. A block of code gets them by `with set_xla_metadata(...)`, a value by `set_xla_metadata(x, ...)`,
and a function, with what autodiff makes of it, by `xla_metadata_call`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from purax.control_flow.annotated_call import annotated_call, metadata_call_p, metadata_value_p
from purax.core.metadata import metadata_of, metadata_scope
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.tree.registry import tree_flatten, tree_unflatten

__all__ = ["fuse_limit", "must_fuse_call", "set_xla_metadata", "xla_metadata_call", "xla_metadata_call2"]


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Gives attributes to the operations of a `with` block, or to those that computed `x`.

    Args:
        x: an array, or a tree of them; left out, the result is a context manager.
        kwargs: the attributes.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental.xla_metadata import set_xla_metadata
    >>> @px.jit
    ... def f(x):
    ...     with set_xla_metadata(block=3):
    ...         y = jnp.sin(x)
    ...     return y
    >>> 'block = "3"' in f.lower(1.0).as_text()
    True
    """
    metadata = metadata_of(kwargs, "set_xla_metadata")
    if x is None:
        return metadata_scope(metadata)
    leaves, tree = tree_flatten(x)
    values = [metadata_value_p.bind(to_array(leaf), metadata=metadata)[0] for leaf in leaves]
    return tree_unflatten(tree, values)


def xla_metadata_call(f: Callable | None = None, /, **meta: Any) -> Callable:
    """A function as one call with attributes, in all that is made of it.

    Args:
        f: the function; left out, the result is a decorator.
        meta: the attributes.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental.xla_metadata import xla_metadata_call
    >>> f = xla_metadata_call(lambda x: jnp.sin(x) * 2, tag="block")
    >>> 'tag = "block"' in px.jit(px.grad(f)).lower(1.0).as_text()
    True
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(
    f: Callable | Mapping[str, Any] | None = None,
    /,
    metadata: Mapping[str, Any] | None = None,
    *,
    ad_metadata: str | Mapping[str, Any] = "same",
) -> Callable:
    """`xla_metadata_call` with the attributes as a dict.

    Args:
        f: the function; left out, or a dict of attributes in its place, the result is a decorator.
        metadata: the attributes.
        ad_metadata: those of what autodiff derives: "same", "drop" for none, or a dict.
    """
    if isinstance(f, Mapping):
        f, metadata = None, f
    own = metadata_of(metadata or {}, "xla_metadata_call")
    if isinstance(ad_metadata, Mapping):
        derived = metadata_of(ad_metadata, "xla_metadata_call")
    elif ad_metadata in ("same", "drop"):
        derived = own if ad_metadata == "same" else ()
    else:
        raise located(
            ValueError,
            f"xla_metadata_call2: ad_metadata is 'same', 'drop' or a dict, got {shown(ad_metadata)}",
        )
    if f is None:
        return lambda f: annotated_call(metadata_call_p, f, own, derived)
    return annotated_call(metadata_call_p, f, own, derived)


def must_fuse_call(identifier: str) -> Callable[[Callable], Callable]:
    """A decorator for functions whose operations XLA is to fuse into one kernel, where the platform can.

    Args:
        identifier: names the group.
    """
    return xla_metadata_call(MUST_FUSE=identifier)


def fuse_limit() -> Any:
    """A context whose operations XLA does not fuse with others, where the platform listens to it."""
    return set_xla_metadata(FUSE_LIMIT=True)
