# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Pytrees: nested containers of leaves, such as the parameters of a model."""

from typing import Any
from collections.abc import Callable
from purax import tree_util as tree_util
from purax.tree import nodes as nodes

all: Callable[..., Any]
broadcast: Callable[..., Any]
flatten: Callable[..., Any]
flatten_with_path: Callable[..., Any]
leaves: Callable[..., Any]
leaves_with_path: Callable[..., Any]
map: Callable[..., Any]
map_with_path: Callable[..., Any]
reduce: Callable[..., Any]
reduce_associative: Callable[..., Any]
structure: Callable[..., Any]
transpose: Callable[..., Any]
unflatten: Callable[..., Any]
static: Callable[..., Any]

__all__ = ['all', 'broadcast', 'flatten', 'flatten_with_path', 'leaves', 'leaves_with_path', 'map', 'map_with_path', 'reduce', 'reduce_associative', 'static', 'structure', 'transpose', 'unflatten']
