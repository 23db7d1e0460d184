"""Where the secret of a group comes from, by which its processes know each other.

It is given (`initialize(secret=...)`, PURAX_GROUP_SECRET, which `purax launch` sets), or the launcher shares one, or it
is the key of the user: a file that only the user can read, made when it is first needed. Processes of one user on one
machine, or on machines with a common home directory, so have the same without being told.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

from purax.xla import private_files


def find_secret(given: str | None, shared: str | None, environment: Mapping[str, str]) -> str:
    """The secret of the group of this process.

    Args:
        given: what the user passed to `initialize`.
        shared: what the launcher gave to all processes.
        environment: the environment variables.
    """
    if given is not None and not (isinstance(given, str) and given):
        raise ValueError("initialize: secret must be a string that is not empty, the same on all processes")
    return given or environment.get("PURAX_GROUP_SECRET") or shared or _key_of_user(environment)


def key_folders(environment: Mapping[str, str]) -> list[str]:
    """Where the key of the user may be, the first that can be written."""
    configured = environment.get("XDG_CONFIG_HOME", "")
    home = configured if os.path.isabs(configured) else os.path.join(os.path.expanduser("~"), ".config")
    user = os.getuid() if hasattr(os, "getuid") else 0
    return [os.path.join(home, "purax"), os.path.join(tempfile.gettempdir(), f"purax-{user}")]


def _key_of_user(environment: Mapping[str, str]) -> str:
    problems = []
    for folder in key_folders(environment):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            private_files.check_folder(folder)
            return private_files.make_key(folder).hex()
        except OSError as error:
            problems.append(str(error))
    raise RuntimeError(
        "initialize: the processes of a group need a secret that they all know, and there is no place for a key of the "
        f"user: {'; '.join(problems)}. Set PURAX_GROUP_SECRET to the same long random text for all of them"
    )
