"""What users call: jit, grad and friends, vmap, stages, and reports about them."""
