"""`jax._src.earray`: arrays of extended dtypes."""

from purax.transforms.physical import ExtendedArray as EArray

__all__ = ["EArray"]
