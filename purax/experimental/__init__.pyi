# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""What is not settled yet, under jax's names; submodules are loaded when they are first used."""

from purax.callbacks.io import io_callback as io_callback
from purax.config import enable_x64 as enable_x64
from purax.experimental import array_serialization as array_serialization
from purax.experimental import buffer_callback as buffer_callback
from purax.experimental import checkify as checkify
from purax.experimental import colocated_python as colocated_python
from purax.experimental import compilation_cache as compilation_cache
from purax.experimental import compute_on as compute_on
from purax.experimental import control_deps as control_deps
from purax.experimental import custom_partitioning as custom_partitioning
from purax.experimental import fused as fused
from purax.experimental import jet as jet
from purax.experimental import key_reuse as key_reuse
from purax.experimental import layout as layout
from purax.experimental import mesh_utils as mesh_utils
from purax.experimental import multihost_utils as multihost_utils
from purax.experimental import ode as ode
from purax.experimental import profiler as profiler
from purax.experimental import pytree_serialization as pytree_serialization
from purax.experimental import random as random
from purax.experimental import rnn as rnn
from purax.experimental import roofline as roofline
from purax.experimental import scheduling_groups as scheduling_groups
from purax.experimental import serialize_executable as serialize_executable
from purax.experimental import shard_alike as shard_alike
from purax.experimental import shard_map as shard_map
from purax.experimental import sparse as sparse
from purax.experimental import topologies as topologies
from purax.experimental import xla_metadata as xla_metadata

__all__ = ['enable_x64', 'io_callback']
