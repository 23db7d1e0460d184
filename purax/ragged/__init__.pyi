# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Arrays of examples of unequal lengths: the rows of all of them one after the other, and where each begins."""

from purax.ragged.arrays import RaggedArray as RaggedArray
from purax.ragged.arrays import from_list as from_list
from purax.ragged.arrays import from_padded as from_padded
from purax.ragged.functions import attention as attention
from purax.ragged.functions import logsumexp as logsumexp
from purax.ragged.functions import softmax as softmax
from purax.ragged.mapping import vmap as vmap

__all__ = ['RaggedArray', 'attention', 'from_list', 'from_padded', 'logsumexp', 'softmax', 'vmap']
