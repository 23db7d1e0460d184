"""Making types into pytree nodes: registration, static types, dataclasses, and `Partial`.

A node type has children, which are trees, and node data, which must be hashable and comparable: it becomes part of the
treedef, and so of the key under which compiled functions are found.
"""

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from purax.errors import shown
from purax.tree.registry import default_registry

NodeType = TypeVar("NodeType", bound=type)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make a type a node of pytrees.

    Args:
        nodetype: the type; instances of its subclasses stay leaves.
        flatten_func: takes an instance and returns `(children, node_data)`. The node data must be hashable and
            comparable.
        unflatten_func: takes `(node_data, children)` and returns an instance. The children may be anything, not only
            arrays, so it should not compute with them.
        flatten_with_keys_func: as `flatten_func`, with pairs `(key, child)` for children; gives the key paths.

    Raises:
        ValueError: if the type is registered already.

    >>> from purax import tree_util
    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> tree_util.register_pytree_node(
    ...     Point, lambda point: ((point.x, point.y), None), lambda _, children: Point(*children)
    ... )
    >>> tree_util.tree_leaves([Point(1, 2), 3])
    [1, 2, 3]
    """
    _check_is_type("register_pytree_node", nodetype)
    for name, function in (("flatten_func", flatten_func), ("unflatten_func", unflatten_func)):
        if not callable(function):
            raise TypeError(f"register_pytree_node: {name} must be a function, got {shown(function)}.")
    default_registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: NodeType) -> NodeType:
    """Make a class with the methods `tree_flatten` and `tree_unflatten` a node of pytrees; a decorator.

    Args:
        cls: a class with a method `tree_flatten(self)` that returns `(children, node_data)`, and a class method
            `tree_unflatten(cls, node_data, children)`.

    Returns:
        The class.

    >>> from purax import tree_util
    >>> @tree_util.register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, value, unit):
    ...         self.value, self.unit = value, unit
    ...     def tree_flatten(self):
    ...         return (self.value,), self.unit
    ...     @classmethod
    ...     def tree_unflatten(cls, unit, children):
    ...         return cls(*children, unit)
    >>> tree_util.tree_flatten(Scaled(2.0, "m"))
    ([2.0], PyTreeDef(CustomNode(Scaled[m], [*])))
    """
    _check_has_methods("register_pytree_node_class", cls, "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make a type a node of pytrees whose children have keys.

    Args:
        nodetype: the type.
        flatten_with_keys: takes an instance and returns `(pairs, node_data)`, with a pair `(key, child)` per child.
            A key is a `GetAttrKey`, `DictKey`, `SequenceKey`, or any hashable object that `str` prints well.
        unflatten_func: takes `(node_data, children)`, children without keys, and returns an instance.
        flatten_func: `flatten_with_keys` without the keys, for speed.

    >>> from purax import tree_util
    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> tree_util.register_pytree_with_keys(
    ...     Point,
    ...     lambda point: ([(tree_util.GetAttrKey(name), getattr(point, name)) for name in "xy"], None),
    ...     lambda _, children: Point(*children),
    ... )
    >>> [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path([Point(1, 2)])]
    ['[0].x', '[0].y']
    """
    if flatten_func is None:

        def flatten_func(node: Any) -> tuple[Iterable[Any], Any]:
            pairs, node_data = flatten_with_keys(node)
            return [child for _, child in pairs], node_data

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: NodeType) -> NodeType:
    """Make a class with the methods `tree_flatten_with_keys` and `tree_unflatten` a node of pytrees; a decorator.

    Args:
        cls: a class with a method `tree_flatten_with_keys(self)` that returns `(pairs of key and child, node_data)`, a
            class method `tree_unflatten(cls, node_data, children)`, and optionally `tree_flatten(self)`.

    Returns:
        The class.

    >>> from purax import tree_util
    >>> @tree_util.register_pytree_with_keys_class
    ... class Pair:
    ...     def __init__(self, *items):
    ...         self.items = items
    ...     def tree_flatten_with_keys(self):
    ...         return [(tree_util.SequenceKey(i), item) for i, item in enumerate(self.items)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, _, children):
    ...         return cls(*children)
    >>> tree_util.tree_leaves(Pair(1, (2, 3)))
    [1, 2, 3]
    """
    _check_has_methods("register_pytree_with_keys_class", cls, "tree_flatten_with_keys", "tree_unflatten")
    register_pytree_with_keys(
        cls,
        operator.methodcaller("tree_flatten_with_keys"),
        cls.tree_unflatten,  # type: ignore[attr-defined]
        operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def register_static(cls: NodeType) -> NodeType:
    """Make a class a node without children: its instances are static under `jit`; a decorator.

    Args:
        cls: a class whose instances are hashable and comparable.

    Returns:
        The class.

    >>> from purax import tree_util
    >>> @tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> tree_util.tree_flatten((1.0, Mode("train")))
    ([1.0], PyTreeDef((*, CustomNode(Mode[train], []))))
    """
    _check_is_type("register_static", cls)
    register_pytree_node(
        cls, lambda instance: ((), instance), lambda instance, _: instance, lambda node: ((), node)
    )
    return cls


def static(**kwargs: Any) -> Any:
    """A dataclass field that `register_dataclass` treats as static.

    Args:
        **kwargs: the arguments of `dataclasses.field`.

    Returns:
        The field, with `static=True` in its metadata.

    >>> import dataclasses
    >>> from purax import tree, tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     activation: str = tree.static(default="tanh")
    >>> tree.flatten(Layer(0.5))
    ([0.5], PyTreeDef(CustomNode(Layer[('tanh',)], [*])))
    """
    kwargs["metadata"] = {"static": True, **(kwargs.get("metadata") or {})}
    return dataclasses.field(**kwargs)


def register_dataclass(
    nodetype: NodeType,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> NodeType:
    """Make a dataclass, or a class constructed from its attributes by keyword, a node of pytrees; a decorator.

    Args:
        nodetype: the class.
        data_fields: the names of the attributes that are children. For a dataclass the default is all fields but the
            static ones.
        meta_fields: the names of the attributes that are node data: static, hashable and comparable. For a dataclass
            the default is the fields with `metadata=dict(static=True)`; see `purax.tree.static`.
        drop_fields: fields of a dataclass to leave out; in a rebuilt instance they have their defaults.

    Returns:
        The class.

    Raises:
        ValueError: if the fields are not exactly those that the constructor of the dataclass takes, or if the class is
            registered already.
        TypeError: if only one of `data_fields` and `meta_fields` is given, or none for a class that is no dataclass.

    >>> import dataclasses
    >>> from purax import tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     activation: str = dataclasses.field(metadata=dict(static=True))
    >>> tree_util.tree_map(lambda x: 2 * x, Layer(0.5, "tanh"))
    Layer(weight=1.0, activation='tanh')
    """
    _check_is_type("register_dataclass", nodetype)
    is_dataclass = dataclasses.is_dataclass(nodetype)
    if data_fields is None and meta_fields is None:
        if not is_dataclass:
            raise TypeError(
                f"register_dataclass: {nodetype} is not a dataclass, so data_fields and meta_fields must be given."
            )
        kept = [field for field in dataclasses.fields(nodetype) if field.name not in drop_fields]
        data_fields = [field.name for field in kept if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in kept if field.metadata.get("static", False)]
    elif data_fields is None or meta_fields is None:
        raise TypeError(
            "register_dataclass: data_fields and meta_fields must both be specified when either is specified, "
            f"got {data_fields=} and {meta_fields=}; write [] for none."
        )
    for argument, names in (
        ("data_fields", data_fields),
        ("meta_fields", meta_fields),
        ("drop_fields", drop_fields),
    ):
        if isinstance(names, str):
            raise TypeError(
                f"register_dataclass: {argument} must be a sequence of names, got the string {shown(names)}."
            )
    _check_no_overlap(nodetype, data_fields, meta_fields)
    if is_dataclass:
        _check_dataclass_fields(nodetype, [*data_fields, *meta_fields], drop_fields)
    default_registry.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def _check_no_overlap(nodetype: type, data_fields: Sequence[str], meta_fields: Sequence[str]) -> None:
    overlap = sorted(set(data_fields) & set(meta_fields))
    if overlap:
        raise ValueError(
            f"register_dataclass({nodetype.__name__}): data_fields and meta_fields must not overlap; "
            f"both have {overlap}."
        )
    for argument, names in (("data_fields", data_fields), ("meta_fields", meta_fields)):
        repeated = sorted({name for name in names if list(names).count(name) > 1})
        if repeated:
            raise ValueError(f"register_dataclass({nodetype.__name__}): {argument} repeats {repeated}.")


def _check_dataclass_fields(nodetype: type, names: Sequence[str], drop_fields: Sequence[str]) -> None:
    """The named fields must be the ones that the constructor takes, and the dropped ones must have defaults."""
    fields = {field.name: field for field in dataclasses.fields(nodetype)}
    accepted = {name for name, field in fields.items() if field.init}
    missing = sorted(accepted - set(names) - set(drop_fields))
    unexpected = sorted(set(names) - (accepted - set(drop_fields)))
    if missing or unexpected:
        reasons = (
            [f"missing fields: {missing}; name them, or leave them out with drop_fields"] if missing else []
        )
        for name in unexpected:
            if name in drop_fields:
                reasons.append(f"unexpected field: {name!r} is also in drop_fields")
            elif name in fields:
                reasons.append(
                    f"unexpected field: {name!r} has init=False, so the constructor does not take it; "
                    "leave it out with drop_fields"
                )
            else:
                reasons.append(f"unexpected field: {nodetype.__name__} has no field {name!r}")
        raise ValueError(
            f"register_dataclass({nodetype.__name__}): data_fields and meta_fields must be all dataclass fields with "
            f"init=True and only them. " + "; ".join(reasons) + "."
        )
    generated = vars(nodetype).get("__dataclass_params__")
    for name in drop_fields:
        field = fields.get(name)
        if field is None or not field.init or generated is None or not generated.init:
            continue
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(
                f"register_dataclass({nodetype.__name__}): the dropped field {shown(name)} has no default, so an "
                "instance "
                "could not be rebuilt. Give it a default or make it a data or meta field."
            )


def _check_is_type(function: str, nodetype: Any) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"{function}: the node type must be a class, got {shown(nodetype)}.")


def _check_has_methods(function: str, cls: Any, *methods: str) -> None:
    _check_is_type(function, cls)
    missing = [method for method in methods if not hasattr(cls, method)]
    if missing:
        raise AttributeError(f"{function}: class {cls.__name__} has no {' and no '.join(missing)}.")


class _OpaqueFunction:
    """Keeps `functools.partial` from taking another partial's arguments as its own: they stay part of the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _OpaqueFunction):
            return bool(self.function == other.function)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial):
    """A `functools.partial` that is a tree: its bound arguments are children, the function is node data.

    It can be passed to transformed functions like any tree of arrays. Bound arguments of a partial that is given as
    `func` belong to the function and are no children.

    Args:
        func: the function.
        *args: the first positional arguments.
        **kw: keyword arguments.

    >>> import operator
    >>> from purax import tree_util
    >>> add_one = tree_util.Partial(operator.add, 1)
    >>> add_one(2)
    3
    >>> tree_util.tree_map(lambda x: 10 * x, add_one)(2)
    12
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kw: Any) -> "Partial":
        if isinstance(func, functools.partial):
            func = _OpaqueFunction(func)
        return super().__new__(cls, func, *args, **kw)


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
