# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Scientific functions with the names and arguments of `jax.scipy`, each package imported when it is first used."""

from purax.errors import shown as shown
from purax.scipy import cluster as cluster
from purax.scipy import fft as fft
from purax.scipy import integrate as integrate
from purax.scipy import interpolate as interpolate
from purax.scipy import linalg as linalg
from purax.scipy import ndimage as ndimage
from purax.scipy import optimize as optimize
from purax.scipy import signal as signal
from purax.scipy import sparse as sparse
from purax.scipy import spatial as spatial
from purax.scipy import special as special
from purax.scipy import stats as stats

__all__ = ['cluster', 'fft', 'integrate', 'interpolate', 'linalg', 'ndimage', 'optimize', 'signal', 'sparse', 'spatial', 'special', 'stats']
