"""Structures of trees as JSON, and the registry of types that may occur in them.

None, tuples, lists and dicts need no registration. Other types have a name, which stands for them in the bytes, and
functions between their node data and bytes: nothing is pickled, and reading runs only code that was registered.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from purax.core.source import located
from purax.tree.registry import (
    InsertionOrderDict,
    PyTreeDef,
    default_registry,
    leaf_treedef,
    tree_structure,
    tree_unflatten,
)

T = TypeVar("T")

_PLAIN: dict[str, type] = {"none": type(None), "tuple": tuple, "list": list}
_MAPPINGS: dict[str, type] = {"dict": dict, "unsorted_dict": InsertionOrderDict, "ordered_dict": OrderedDict}
_NAMES = {kind: name for name, kind in (_PLAIN | _MAPPINGS).items()}
_KEYS = (str, int, bool, float, type(None))
_DEEPEST = 200


class _Registration(NamedTuple):
    node_type: type
    name: str
    serialize: Callable[[Any], bytes]
    deserialize: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence[Any]], Any] | None


_by_type: dict[type, _Registration] = {}
_by_name: dict[str, _Registration] = {}


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[T]:
    """Lets exported functions take and return a type of tree nodes after they were read from bytes.

    Args:
        nodetype: a type registered with `purax.tree_util.register_pytree_node`, or a named tuple.
        serialized_name: what stands for the type in the bytes; the reader must register the type by the same name.
        serialize_auxdata: makes bytes of the node data, what `flatten` returns besides the children.
        deserialize_auxdata: makes the node data again.
        from_children: makes a node of node data and children; if not given, the registered `unflatten` does.

    Returns:
        `nodetype`, so that it can be used as a decorator with `functools.partial`.

    >>> import purax as px
    >>> class Named:
    ...     def __init__(self, value, unit):
    ...         self.value, self.unit = value, unit
    >>> px.tree_util.register_pytree_node(Named, lambda x: ((x.value,), x.unit), lambda unit, xs: Named(*xs, unit))
    >>> px.export.register_pytree_node_serialization(
    ...     Named, serialized_name="example.Named",
    ...     serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode,
    ... ).__name__
    'Named'
    """
    if nodetype in _by_type:
        raise located(
            ValueError,
            f"Duplicate serialization registration for type `{nodetype}`: it has the serialized_name "
            f"{_by_type[nodetype].name!r} already",
        )
    taken = _by_name[serialized_name].node_type if serialized_name in _by_name else _builtin(serialized_name)
    if taken is not None:
        raise located(
            ValueError,
            f"Duplicate serialization registration for serialized_name {serialized_name!r}: it stands for "
            f"`{taken}` already",
        )
    if from_children is None and not default_registry.is_node(nodetype):
        raise located(
            ValueError,
            f"`{nodetype}` is not a type of tree nodes: call `purax.tree_util.register_pytree_node` for it first, "
            "or give `from_children`",
        )
    made = _Registration(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = made
    return nodetype


def _builtin(name: str) -> type | None:
    return _PLAIN.get(name) or _MAPPINGS.get(name)


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Lets exported functions take and return a type of named tuples after they were read from bytes.

    Args:
        nodetype: the type.
        serialized_name: what stands for it in the bytes.

    Returns:
        `nodetype`.

    >>> import purax as px
    >>> from collections import namedtuple
    >>> Point = namedtuple("Point", "x y")
    >>> px.export.register_namedtuple_serialization(Point, serialized_name="example.Point") is Point
    True
    """
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise located(ValueError, f"register_namedtuple_serialization needs a named tuple, got `{nodetype}`")
    names: Sequence[str] = nodetype._fields  # type: ignore[attr-defined]
    fields = "\n".join(names).encode()

    def deserialize(data: bytes) -> None:
        if data != fields:
            theirs = data.decode().split("\n")
            raise ValueError(
                f"the fields of {serialized_name!r} were {theirs} when the function was exported; `{nodetype}` has "
                f"{list(names)}"
            )

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: fields,
        deserialize_auxdata=deserialize,
        from_children=lambda _, children: nodetype(*children),
    )


def tree_to_json(tree: PyTreeDef, depth: int = 0) -> Any:
    """A structure as lists, strings and numbers."""
    if depth > _DEEPEST:
        raise located(ValueError, f"a tree nested more than {_DEEPEST} deep cannot be serialized")
    found = tree.node_data()
    if found is None:
        return "*"
    node_type, node_data = found
    children = [tree_to_json(child, depth + 1) for child in tree.children()]
    if node_type in _by_type:
        entry = _by_type[node_type]
        data = entry.serialize(node_data)
        if not isinstance(data, (bytes, bytearray)):
            raise located(
                TypeError,
                f"serialize_auxdata of {entry.name!r} must return bytes, returned {type(data).__name__}",
            )
        return ["custom", entry.name, base64.b64encode(data).decode(), children]
    if node_type in _MAPPINGS.values():
        for key in node_data:
            if type(key) not in _KEYS:
                raise located(
                    TypeError,
                    "an exported function is serialized with dicts whose keys are strings or numbers; found the "
                    f"key {key!r} of type {type(key).__name__}",
                )
        return [_NAMES[node_type], list(node_data), children]
    if node_type in _NAMES:
        return [_NAMES[node_type], children]
    raise located(
        ValueError,
        f"Cannot serialize PyTreeDef containing an unregistered type `{node_type}`. Use "
        "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization`.",
    )


def tree_from_json(made: Any, depth: int = 0) -> PyTreeDef:
    """The structure that `tree_to_json` wrote; ValueError if it did not, or a type in it is not registered here."""
    if made == "*":
        return leaf_treedef
    if depth > _DEEPEST:
        raise ValueError(f"a tree is nested more than {_DEEPEST} deep")
    if not (
        isinstance(made, list) and len(made) >= 2 and isinstance(made[0], str) and isinstance(made[-1], list)
    ):
        raise ValueError(f"a tree has the node {made!r:.100}")
    kind, *rest, children = made
    treedefs = [tree_from_json(child, depth + 1) for child in children]
    if kind == "custom" and len(rest) == 2 and all(isinstance(part, str) for part in rest):
        return _custom_node(rest[0], rest[1], treedefs)
    if kind in _MAPPINGS and len(rest) == 1:
        return _node(_MAPPINGS[kind], _keys(kind, rest[0], len(treedefs)), treedefs)
    if kind in _PLAIN and not rest and not (kind == "none" and treedefs):
        return _node(_PLAIN[kind], None, treedefs)
    raise ValueError(f"a tree has the node {made!r:.100}")


def _keys(kind: str, keys: Any, count: int) -> Any:
    """The node data of a mapping: its keys, each once, sorted in a dict."""
    if (
        not isinstance(keys, list)
        or not all(type(key) in _KEYS for key in keys)
        or len(set(keys)) != len(keys)
    ):
        raise ValueError(f"a tree has a {kind} with the keys {keys!r:.100}")
    if len(keys) != count:
        raise ValueError(f"a tree has a {kind} with {len(keys)} keys and {count} children")
    if kind != "dict":
        return tuple(keys)
    try:
        found = tree_structure(dict.fromkeys(keys, 0)).node_data()
    except Exception:  # keys that cannot be compared
        found = None
    if found is None or list(map(repr, found[1])) != list(map(repr, keys)):
        raise ValueError(f"a tree has a dict whose keys {keys!r:.100} are not sorted")
    return keys


def _custom_node(name: str, text: str, children: list[PyTreeDef]) -> PyTreeDef:
    if name not in _by_name:
        raise ValueError(
            f"the exported function has nodes of a type called {name!r:.100}, which nobody registered here. Call "
            "`export.register_pytree_node_serialization` or `export.register_namedtuple_serialization` "
            "with this serialized_name before `deserialize`."
        )
    entry = _by_name[name]
    leaves = sum(child.num_leaves for child in children)
    try:
        node_data = entry.deserialize(base64.b64decode(text, validate=True))
        if entry.from_children is not None:
            parts = [tree_unflatten(child, [0] * child.num_leaves) for child in children]
            made = tree_structure(entry.from_children(node_data, parts))
        else:
            made = _node(entry.node_type, node_data, children)
            tree_unflatten(made, [0] * leaves)  # as a call will
    except Exception as error:
        raise ValueError(
            f"a node of type {name!r} cannot be made: {type(error).__name__}: {error}"
        ) from error
    if made.num_leaves != leaves:
        raise ValueError(
            f"a node of type {name!r} has {made.num_leaves} leaves, and its children have {leaves}"
        )
    return made


def _node(node_type: type, node_data: Any, children: list[PyTreeDef]) -> PyTreeDef:
    if node_type is type(None):
        return tree_structure(None)
    return PyTreeDef.from_node_data_and_children(default_registry, (node_type, node_data), children)
