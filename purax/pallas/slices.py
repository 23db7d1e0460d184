"""`Slice` and `ds`: slices whose start may be a traced value, which all arrays take."""

from __future__ import annotations

from purax.numpy._indexing.slices import Slice, ds

dslice = ds

__all__ = ["Slice", "ds", "dslice"]
