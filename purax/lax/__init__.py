"""Operations one level below `purax.numpy`, and structured control flow, as `jax.lax`."""

# ruff: noqa: F401
from purax.control_flow.branches import cond, switch
from purax.control_flow.scan import scan
from purax.control_flow.while_loop import fori_loop, while_loop
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
