# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Small libraries written on purax, under the names of `jax.example_libraries`: `optimizers` and `stax`."""

