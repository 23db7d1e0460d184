"""Operations that other libraries take from `jax.experimental.pallas.ops`: the same results, by XLA programs.

Their sizes of blocks, warps and stages are taken and make no difference.
"""
