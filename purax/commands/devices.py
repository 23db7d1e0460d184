"""`purax devices`: what there is to compute on."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from purax.xla import client, plugins

USAGE = """usage: purax devices

Prints a line for each device, those of the default platform first."""


def devices(words: Sequence[str] = ()) -> int:
    """The command `purax devices`; returns the exit status.

    Args:
        words: what follows `devices` on the command line.
    """
    if words:
        is_help = words[0] in ("-h", "--help")
        print(USAGE, file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 2
    default = client.default_backend()
    names = dict.fromkeys([default, *plugins.find_plugins(), "cpu"])
    shown: set[str] = set()
    for name in names:
        try:
            found = client.devices(name)
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if found[0].platform in shown:
            continue
        shown.add(found[0].platform)
        for device in found:
            memory = device.memory_stats() if device.platform != "cpu" else None
            limit = (memory or {}).get("bytes_limit")
            print(
                f"{device.platform}:{device.id}  {device.device_kind}"
                + (f"  {limit / 2**30:.1f} GiB" if limit else "")
                + (f"  process {device.process_index}" if client.process_count(name) > 1 else "")
                + ("  (default)" if device == client.default_device() else "")
            )
    return 0
