# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Signals: convolution and correlation, trends, and spectra, as `jax.scipy.signal`."""

from purax.scipy.signal.convolution import convolve as convolve
from purax.scipy.signal.convolution import convolve2d as convolve2d
from purax.scipy.signal.convolution import correlate as correlate
from purax.scipy.signal.convolution import correlate2d as correlate2d
from purax.scipy.signal.convolution import fftconvolve as fftconvolve
from purax.scipy.signal.detrending import detrend as detrend
from purax.scipy.signal.spectra import csd as csd
from purax.scipy.signal.spectra import istft as istft
from purax.scipy.signal.spectra import periodogram as periodogram
from purax.scipy.signal.spectra import stft as stft
from purax.scipy.signal.spectra import welch as welch

