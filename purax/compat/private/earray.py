"""`jax._src.earray`: arrays of extended dtypes."""

from purax.interpreters.extended_dtypes import ExtendedArray as EArray

__all__ = ["EArray"]
