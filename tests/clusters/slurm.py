"""A Slurm of one machine, from the Debian packages slurmctld, slurmd and munge, in a folder of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from purax.xla.processes.addresses import free_port

NEEDED = ("slurmctld", "slurmd", "munged", "srun", "sbatch")

CONFIGURATION = """
ClusterName=purax
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
JobRequeue=1
MailProg=/bin/true
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=requeue_setup_env_fail,requeue_delay=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def is_here() -> bool:
    """Whether the programs are here, and may be started (munge wants the rights of root to be its own user)."""
    return os.getuid() == 0 and all(shutil.which(name, path=path()) for name in NEEDED)


def path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin"


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Starts the daemons; gives the environment in which `srun` and `sbatch` find them."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    ports = {"controller": free_port("127.0.0.1"), "daemon": free_port("127.0.0.1")}
    host = socket.gethostname().partition(".")[0]
    file = folder / "slurm.conf"
    file.write_text(CONFIGURATION.format(folder=folder, host=host, **ports))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PMI"))}
    environment = kept | {"SLURM_CONF": str(file), "PATH": path()}
    daemons: list[subprocess.Popen[bytes]] = []

    def daemon(*command: str) -> None:
        with (folder / f"{command[0]}.out").open("wb") as log:
            daemons.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
            )

    try:
        files = ["--key-file", str(key), "--log-file", str(folder / "munge.log"), "--seed-file", str(folder / "seed")]
        files += ["--socket", str(folder / "munge.socket"), "--pid-file", str(folder / "munge.pid")]
        daemon("munged", "--foreground", "--force", *files)
        daemon("slurmctld", "-D", "-f", str(file))
        daemon("slurmd", "-D", "-f", str(file), "-N", host)
        deadline = time.monotonic() + 60
        while "idle" not in subprocess.run(
            ["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True
        ).stdout:
            logs = [p.read_text(errors="replace")[-2000:] for p in sorted(folder.glob("*.log"))]
            assert time.monotonic() < deadline, "\n".join(logs)
            time.sleep(0.3)
        yield environment
    finally:
        for one in reversed(daemons):
            one.terminate()
        for one in daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(10)
            one.kill()
