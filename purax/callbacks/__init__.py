"""Calling Python from programs: `pure_callback`, `io_callback`, and the primitive behind `purax.debug`."""
