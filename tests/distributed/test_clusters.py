"""What environments say about a process's place, each as the launcher in question writes it."""

from __future__ import annotations

import os
import sys
import types

import pytest

from purax.distributed.clusters import Member, detect, first_node, own_accelerator

SLURM = {
    "SLURM_JOB_ID": "4242",
    "SLURM_STEP_NODELIST": "gpu[007-010]",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_TASKS_PER_NODE": "2(x4)",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
}
KUBERNETES = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2", "NUM_PROCESSES": "4"}
TORCH = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}
OWN = {"PURAX_COORDINATOR_ADDRESS": "h:1", "PURAX_NUM_PROCESSES": "2", "PURAX_PROCESS_ID": "1"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Member()),
        ({"HOME": "/"}, Member()),
        (OWN, Member("h:1", 2, 1)),
        ({name.replace("PURAX", "JAX"): value for name, value in OWN.items()}, Member("h:1", 2, 1)),
        (SLURM, Member(f"gpu007:{61440 + 4242 % 4096}", 8, 5, 1, 2)),
        (SLURM | OWN, Member("h:1", 2, 1)),
        # A batch script that is no step: nobody started the other tasks.
        ({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "a"}, Member()),
        (OPEN_MPI, Member(f"10.96.0.1:{61440 + 1531576320 % 4096}", 8, 3, 1, 2)),
        (SLURM | OPEN_MPI, Member(f"10.96.0.1:{61440 + 1531576320 % 4096}", 8, 3, 1, 2)),
        (
            {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
            | {"PMIX_NAMESPACE": "prterun-host-77@1"},
            Member(f"127.0.0.1:{61440 + 771 % 4096}", 2, 1, None, 2),
        ),
        (
            {"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "1"},
            Member(f"127.0.0.1:{61440 + os.getppid() % 4096}", 2, 1, 1, 2),
        ),
        (TORCH, Member("node1:29500", 4, 3, 1)),
        (TORCH | {"TORCHELASTIC_RUN_ID": "x"}, Member("node1:29501", 4, 3, 1)),
        (KUBERNETES | {"JAX_COORDINATOR_ADDRESS": "train-0.train"}, Member("train-0.train:8476", 4, 2)),
        (
            KUBERNETES | {"JOBSET_NAME": "run", "REPLICATED_JOB_NAME": "w", "JOB_GLOBAL_INDEX": "3"},
            Member("run-w-0-0.run:8476", 4, 3),
        ),
        (
            KUBERNETES | {"HOSTNAME": "train-2.invalid", "PURAX_COORDINATOR_PORT": "99"},
            Member("train-0.invalid:99", 4, 2),
        ),
    ],
)
def test_environments(environment, expected):
    assert detect(None, environment) == expected


def test_a_method_asks_one_kind_only():
    assert detect("slurm", OPEN_MPI) == Member()
    assert detect("slurm", SLURM | OPEN_MPI).id == 5
    assert detect("deactivate", SLURM | OWN) == Member()


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("a", "a"),
        ("a,b", "a"),
        ("n[1-3]", "n1"),
        ("n[01,07-9],m", "n01"),
        ("r[2-3]c[1-4]", "r2c1"),
        ("x-1.y", "x-1.y"),
    ],
)
def test_lists_of_nodes(nodes, first):
    assert first_node(nodes) == first


def test_a_variable_that_is_no_number():
    with pytest.raises(ValueError, match="SLURM_PROCID must be a number, not 'x'"):
        detect(None, SLURM | {"SLURM_PROCID": "x"})


def test_an_accelerator_for_each_process_of_a_machine():
    member = Member("a:1", 8, 5, 1, 2)
    assert own_accelerator(member, {"CUDA_VISIBLE_DEVICES": "0,1"}) == [1]
    assert own_accelerator(member, {"CUDA_VISIBLE_DEVICES": "1"}) is None
    assert own_accelerator(Member("a:1", 8, 5), {"CUDA_VISIBLE_DEVICES": "0,1"}) is None


def test_mpi4py(monkeypatch):
    told = []

    class World:
        def __init__(self, rank, size):
            self.rank, self.size = rank, size

        def Get_rank(self):  # noqa: N802
            return self.rank

        def Get_size(self):  # noqa: N802
            return self.size

        def bcast(self, value, root):
            told.append((value, root))
            return value if self.rank == root else told[0][0]

        def Split_type(self, kind):  # noqa: N802
            return World(self.rank % 2, 2)

    def found(rank):
        mpi = types.SimpleNamespace(COMM_WORLD=World(rank, 4), COMM_TYPE_SHARED=0)
        monkeypatch.setitem(sys.modules, "mpi4py", types.SimpleNamespace(MPI=mpi))
        return detect("mpi4py", {})

    first, third = found(0), found(3)
    assert (first.count, first.id, third.id, third.local_id, third.local_count) == (4, 0, 3, 1, 2)
    assert first.address == third.address and first.address.rpartition(":")[2].isdecimal()
