"""What a profile says of single instructions."""

from __future__ import annotations

import glob
import os

from purax.core.source import located
from purax.xla import jaxlib_api

__all__ = ["get_profiled_instructions_proto"]


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """The costs of instructions that a profile measured, as XLA's `ProfiledInstructionsProto`; empty but on GPUs.

    Args:
        tensorboard_dir: the folder of one trace, `<log_dir>/plugins/profile/<run>`.
    """
    if not glob.glob(os.path.join(glob.escape(os.fspath(tensorboard_dir)), "*.xplane.pb")):
        raise located(FileNotFoundError, f"there is no trace (*.xplane.pb) in {tensorboard_dir}")
    return bytes(jaxlib_api.profiler().get_profiled_instructions_proto(os.fspath(tensorboard_dir)))
