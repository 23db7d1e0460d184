"""Operations one level below `purax.numpy`, and structured control flow, as `jax.lax`."""

# ruff: noqa: F401
from purax.control_flow.branches import cond, switch
from purax.control_flow.scan import scan
from purax.control_flow.while_loop import fori_loop, while_loop
from purax.lax import linalg
from purax.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
)
from purax.lax.convolution import (
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
    padtype_to_pads,
)
from purax.lax.fft import FftType, fft
from purax.ops.contraction import DotAlgorithm, DotAlgorithmPreset, Precision
from purax.ops.convolution import ConvDimensionNumbers
from purax.ops.gather_scatter import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
