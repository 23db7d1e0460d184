"""Modules of jax that have no home of their own in purax: thin ones, which collect or rename what purax has."""
