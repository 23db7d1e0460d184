"""What `_bind.c`, the part of `core` in C, has; None where it is not built, so that the versions in Python run."""

from __future__ import annotations

try:
    from purax.core import _bind as native  # type: ignore[attr-defined]

    _ = native.Operators, native.exact, native.drop_unused
except (ImportError, AttributeError):  # it was not compiled when purax was installed, or from other sources
    native = None
