"""Signals: convolution and correlation, trends, and spectra, as `jax.scipy.signal`."""

# ruff: noqa: F401
from purax.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve
from purax.scipy.signal.detrending import detrend
from purax.scipy.signal.spectra import csd, istft, periodogram, stft, welch
