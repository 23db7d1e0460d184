"""Finding random keys that are used twice.

The flag `debug_key_reuse` switches it on, for the process or in a block; a key that is consumed again raises a
`KeyReuseError`.

>>> import purax as px
>>> with px.debug_key_reuse(True):
...     key = px.random.key(0)
...     first = px.random.normal(key)
...     second = px.random.normal(key)  # doctest: +IGNORE_EXCEPTION_DETAIL
Traceback (most recent call last):
    ...
KeyReuseError: ...
"""

from __future__ import annotations

from purax.config import debug_key_reuse
from purax.errors import KeyReuseError

__all__ = ["KeyReuseError", "debug_key_reuse"]
