"""What the environment says about the group of processes that this one belongs to.

Each kind of cluster is a function of the environment that returns a `Member`, or None where it does not apply. Nothing
here talks to the network, apart from the method "mpi4py", which is used only when asked for by name.
"""

from __future__ import annotations

import glob
import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from purax.xla.processes.addresses import free_port

Environment = Mapping[str, str]


@dataclass(frozen=True)
class Member:
    """What is known of this process; None is what the environment does not say.

    Attributes:
        address: "host:port" of the coordinator.
        count: the number of processes.
        id: the number of this one.
        local_id: its number among those of its machine.
        local_count: how many processes its machine has.
        secret: what the launcher told the processes of the group, and nobody else.
    """

    address: str | None = None
    count: int | None = None
    id: int | None = None
    local_id: int | None = None
    local_count: int | None = None
    secret: str | None = field(default=None, repr=False)


def _number(environment: Environment, *names: str) -> int | None:
    for name in names:
        value = environment.get(name, "").strip()
        if value:
            try:
                return int(value)
            except ValueError:
                raise ValueError(f"the environment variable {name} must be a number, not {value!r}") from None
    return None


def _port_of_job(job: str) -> int:
    """A port that all processes of a job compute alike, and those of another job most likely otherwise."""
    digits = re.sub(r"\D", "", job)
    return 61440 + (int(digits) if digits else sum(job.encode())) % 4096


def explicit(environment: Environment) -> Member | None:
    """`purax launch`, or variables that the user set."""
    address = environment.get("PURAX_COORDINATOR_ADDRESS") or environment.get("JAX_COORDINATOR_ADDRESS")
    count = _number(environment, "PURAX_NUM_PROCESSES", "JAX_NUM_PROCESSES")
    id = _number(environment, "PURAX_PROCESS_ID", "JAX_PROCESS_ID")
    return None if address is None or id is None else Member(address, count, id)


def slurm(environment: Environment) -> Member | None:
    """A step of SLURM, started by `srun`."""
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    count = _number(environment, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    if "SLURM_JOB_ID" not in environment or "SLURM_PROCID" not in environment or not nodes or count is None:
        return None
    per_node = re.match(r"\d+", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
    return Member(
        f"{first_node(nodes)}:{_port_of_job(environment['SLURM_JOB_ID'])}",
        count,
        _number(environment, "SLURM_PROCID"),
        _number(environment, "SLURM_LOCALID"),
        int(per_node[0]) if per_node else None,
    )


def first_node(nodes: str) -> str:
    """The first machine of a list as SLURM writes it.

    >>> first_node("gpu[007-012,20],login1")
    'gpu007'
    """
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes.strip())
    assert first is not None
    return re.sub(r"\[([^\],-]+)[^\]]*\]", r"\1", first[0])


def open_mpi(environment: Environment) -> Member | None:
    """Open MPI's `mpirun`. Version 5 does not say where its head is, which matters on several machines only."""
    if "OMPI_COMM_WORLD_SIZE" not in environment:
        return None
    count = _number(environment, "OMPI_COMM_WORLD_SIZE")
    local_count = _number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE")
    head = environment.get("OMPI_MCA_orte_hnp_uri", "")
    job = environment.get("PMIX_NAMESPACE") or head.partition(".")[0] or str(os.getppid())
    address = None
    if local_count == count:
        address = f"127.0.0.1:{_port_of_job(job)}"
    elif head:
        found = re.search(r"tcp://\[?([^,:;\]]+)", head)
        address = f"{found[1]}:{_port_of_job(job)}" if found else None
    local_id = _number(environment, "OMPI_COMM_WORLD_LOCAL_RANK")
    # 128 random bits that mpirun makes for its processes to find each other.
    secret = environment.get("OMPI_MCA_orte_precondition_transports") or None
    return Member(address, count, _number(environment, "OMPI_COMM_WORLD_RANK"), local_id, local_count, secret)


def mpich(environment: Environment) -> Member | None:
    """MPICH, Intel MPI and others that speak PMI."""
    count, id = _number(environment, "PMI_SIZE"), _number(environment, "PMI_RANK")
    if count is None or id is None:
        return None
    local_count = _number(environment, "MPI_LOCALNRANKS")
    is_local = local_count == count
    address = f"127.0.0.1:{_port_of_job(str(os.getppid()))}" if is_local else None
    return Member(address, count, id, _number(environment, "MPI_LOCALRANKID"), local_count)


def torchrun(environment: Environment) -> Member | None:
    """`torchrun`, and Kubeflow's training jobs, which set the same variables."""
    needed = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
    if not all(environment.get(name) for name in needed):
        return None
    # torchrun itself listens at MASTER_PORT, so that the coordinator takes the next.
    port = int(environment["MASTER_PORT"]) + (1 if "TORCHELASTIC_RUN_ID" in environment else 0)
    return Member(
        f"{environment['MASTER_ADDR']}:{port}",
        _number(environment, "WORLD_SIZE"),
        _number(environment, "RANK"),
        _number(environment, "LOCAL_RANK"),
        _number(environment, "LOCAL_WORLD_SIZE"),
    )


def kubernetes(environment: Environment) -> Member | None:
    """An indexed Job of Kubernetes, also in a JobSet, whose pods have names by a headless service.

    Kubernetes does not tell a pod how many there are: NUM_PROCESSES has to.
    """
    id = _number(environment, "JOB_GLOBAL_INDEX", "JOB_COMPLETION_INDEX")
    if "KUBERNETES_SERVICE_HOST" not in environment or id is None:
        return None
    count = _number(environment, "PURAX_NUM_PROCESSES", "JAX_NUM_PROCESSES", "NUM_PROCESSES", "WORLD_SIZE")
    port = _number(environment, "PURAX_COORDINATOR_PORT", "JAX_COORDINATOR_PORT") or 8476
    host = environment.get("PURAX_COORDINATOR_ADDRESS") or environment.get("JAX_COORDINATOR_ADDRESS")
    jobset, job = environment.get("JOBSET_NAME"), environment.get("REPLICATED_JOB_NAME")
    if host is None and jobset and job:
        host = f"{jobset}-{job}-0-0.{jobset}"
    elif host is None:
        name, dot, domain = socket.getfqdn(environment.get("HOSTNAME", "")).partition(".")
        host = f"{name.removesuffix(f'-{id}')}-0{dot}{domain}"
    return Member(host if re.search(r":\d+$", host) else f"{host}:{port}", count, id)


def mpi4py(environment: Environment) -> Member:
    """The package mpi4py: process 0 of its world chooses a port and a secret and tells the others."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    id, count = world.Get_rank(), world.Get_size()
    told = None
    if id == 0:
        host = socket.gethostname()
        try:
            host = socket.gethostbyname(host)
        except OSError:
            host = "127.0.0.1"
        told = f"{host}:{free_port('0.0.0.0')}", secrets.token_hex(32)
    address, secret = world.bcast(told, root=0)
    machine = world.Split_type(MPI.COMM_TYPE_SHARED)
    return Member(address, count, id, machine.Get_rank(), machine.Get_size(), secret)


# In the order in which they are asked. A launcher inside an allocation of SLURM is nearer than SLURM itself.
DETECTED: dict[str, Callable[[Environment], Member | None]] = {
    "explicit": explicit,
    "ompi": open_mpi,
    "torchrun": torchrun,
    "mpich": mpich,
    "slurm": slurm,
    "k8s": kubernetes,
}
METHODS = (*DETECTED, "mpi4py", "deactivate")


def detect(method: str | None, environment: Environment) -> Member:
    """What the environment says.

    Args:
        method: one of `METHODS`; None asks all that need no package.
        environment: the environment variables.
    """
    if method == "deactivate":
        return Member()
    if method == "mpi4py":
        return mpi4py(environment)
    for name, detected in DETECTED.items():
        member = detected(environment) if method in (None, name) else None
        if member is not None:
            return member
    return Member()


def own_accelerator(member: Member, environment: Environment) -> list[int] | None:
    """The accelerator of this process where several processes share a machine that has one for each."""
    if member.local_id is None or member.local_count is None or member.local_count < 2:
        return None
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    count = (
        len(list(filter(None, visible.split(","))))
        if visible is not None
        else len(glob.glob("/dev/nvidia[0-9]*"))
    )
    return [member.local_id] if count >= member.local_count else None
