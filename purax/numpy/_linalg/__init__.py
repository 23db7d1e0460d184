"""Products, factorizations and solvers behind `purax.numpy` and `purax.numpy.linalg`."""
