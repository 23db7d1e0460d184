"""Arrays of examples of unequal lengths: the rows of all of them one after the other, and where each begins."""

from purax.ragged.arrays import RaggedArray, from_list, from_padded
from purax.ragged.functions import attention, logsumexp, softmax
from purax.ragged.mapping import vmap

__all__ = ["RaggedArray", "attention", "from_list", "from_padded", "logsumexp", "softmax", "vmap"]
