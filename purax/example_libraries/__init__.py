"""Small libraries written on purax, under the names of `jax.example_libraries`: `optimizers` and `stax`.

They are meant to be read and to carry programs that use them; for new programs Optax and Flax offer more.
"""
