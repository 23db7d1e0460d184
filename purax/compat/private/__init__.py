"""What libraries take from jax's private modules (`jax._src`): only the names that those in the docs' table use."""
