"""The manifests of the examples: what they say, and where processes find themselves with what Kubernetes adds to it."""

from __future__ import annotations

import pytest

from purax.distributed.clusters import Member, detect
from tests.distributed.groups import ROOT

yaml = pytest.importorskip("yaml")
FOLDER = ROOT / "examples" / "kubernetes"


def environment_of(container) -> dict[str, str]:
    """What the manifest sets itself; fields and secrets have a value that stands for them."""
    fields = {"jobset-name": "train", "replicatedjob-name": "workers"}
    found = {}
    for one in container["env"]:
        reference = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        value = next((value for name, value in fields.items() if name in reference), "a secret")
        found[one["name"]] = one.get("value", value)
    return found


def test_a_jobset():
    manifest = yaml.safe_load((FOLDER / "jobset.yaml").read_text())
    spec = manifest["spec"]
    (job,) = spec["replicatedJobs"]
    pods = job["template"]["spec"]
    assert pods["parallelism"] == pods["completions"] and spec["network"]["subdomain"] == manifest["metadata"]["name"]
    (container,) = pods["template"]["spec"]["containers"]
    own = environment_of(container)
    assert own["NUM_PROCESSES"] == str(pods["completions"])
    for index in range(pods["completions"]):
        added = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": str(index), "HOSTNAME": "x"}
        found = detect(None, own | added)
        place = f"{manifest['metadata']['name']}-{job['name']}-0-0.{spec['network']['subdomain']}:8476"
        assert (found.address, found.count, found.id) == (place, 4, index)


def test_a_job_of_kubeflow():
    manifest = yaml.safe_load((FOLDER / "pytorchjob.yaml").read_text())
    kinds = manifest["spec"]["pytorchReplicaSpecs"]
    count = sum(kind["replicas"] for kind in kinds.values())
    for rank in range(count):
        added = {"MASTER_ADDR": "train-master-0", "MASTER_PORT": "23456"}
        added |= {"WORLD_SIZE": str(count), "RANK": str(rank)}
        found = detect(None, added)
        assert isinstance(found, Member)
        assert (found.address, found.count, found.id) == ("train-master-0:23456", 4, rank)
