"""The CronJob of `examples/spark_loop` as it stands: its build is run, and the file of its image is read.

The container is made by namespaces, with what the manifest says: the user of the image, a read-only root, the
volumes, the variables. Only the addresses of other machines are replaced, and a jar is shipped, as with a connector.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from broker_core_spark.commands.build_command import EXIT_REFUSED
from broker_core_spark.store import open_store
from broker_core_spark.store.published_pointers import current_pointer
from tests.examples.test_spark_loop import EXAMPLE
from tests.support.containers import can_run_containers, run_container
from tests.support.distributions import DISTRIBUTIONS, ROOT
from tests.support.narrowed import present
from tests.support.spark_catalogues import fill

JOB: dict[str, Any] = yaml.safe_load((EXAMPLE / "cronjob.yaml").read_text())["spec"]["jobTemplate"]["spec"]
#: A jar of PySpark, which is there.
JAR = next(Path(str(find_spec("pyspark").origin)).parent.glob("jars/slf4j-api-*.jar"))  # type: ignore[union-attr]
POD: dict[str, Any] = JOB["template"]["spec"]


def replaced(words: list[str], addresses: Mapping[str, str]) -> list[str]:
    """The words of a container with other addresses, each of which must be there."""
    names = [word.partition("=")[0] for word in words]
    assert addresses.keys() <= set(names)
    return [
        f"{name}={addresses[name]}" if name in addresses else word
        for name, word in zip(names, words, strict=True)
    ]


@pytest.mark.long
@pytest.mark.skipif(not can_run_containers(), reason="this machine lets nobody make namespaces")
def test_the_build_runs_as_the_manifest_says(tmp_path: Path) -> None:
    for folder in ("settings", "scratch", "data", "root"):
        (tmp_path / folder).mkdir()
    for name in ("broker-core.toml", "always.jsonl"):
        shutil.copy(EXAMPLE / name, tmp_path / "settings")
    payments = {
        "name": "payments-1",
        "properties": {"team": "red"},
    }  # the example asks for them by the property
    fill(
        tmp_path / "data" / "topics.sqlite",
        {"public/default": [payments, *(f"orders-{n}" for n in range(50))]},
    )
    question = {"namespace": "public/default", "pattern": "public/default/orders-.*", "properties": {}}
    (tmp_path / "scratch" / "patterns.jsonl").write_text(json.dumps(question) + "\n")
    (build,) = POD["containers"]
    addresses = {"--catalogue": "/data/topics.sqlite", "--out": "/scratch/store"}
    volumes = {mount["mountPath"]: tmp_path / mount["name"] for mount in build["volumeMounts"]}
    assert build["securityContext"]["readOnlyRootFilesystem"] is True
    done = run_container(
        tmp_path / "root",
        [*build["command"], *replaced(build["args"], addresses), f"--conf=spark.jars={JAR}"],
        user=POD["securityContext"]["runAsUser"],
        group=POD["securityContext"]["runAsGroup"],
        variables={one["name"]: one.get("value", "of the secret") for one in build["env"]},
        volumes={**volumes, "/data": tmp_path / "data"},
        readonly=[mount["mountPath"] for mount in build["volumeMounts"] if mount.get("readOnly")],
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    published = present(current_pointer(open_store(str(tmp_path / "scratch" / "store"))))
    assert json.loads(done.stdout)["generation"] == published.generation
    left = {path.name for path in (tmp_path / "scratch").iterdir()}
    assert left == {"patterns.jsonl", "store"}  # Spark's own files have gone


def test_the_image_has_what_the_batch_needs() -> None:
    text = (EXAMPLE / "Containerfile").read_text()
    spark = next(each for each in DISTRIBUTIONS if each.package == "broker_core_spark")
    wanted = set(spark.project["optional-dependencies"]["batch"])
    assert set(re.findall(r"'([a-z0-9]+>=[^']+)'", text)) == wanted
    assert re.search(r"openjdk-(17|21)-jre-headless", text)
    (user,) = re.findall(r"^USER (6\S+)$", text, re.MULTILINE)
    assert f"USER {user}\n" in (ROOT / "Containerfile").read_text()
    context = POD["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
    assert "FROM ${IMAGE}\n" in text


def test_a_closed_gate_ends_the_job() -> None:
    first = JOB["podFailurePolicy"]["rules"][0]
    assert first["action"] == "FailJob"
    assert first["onExitCodes"]["values"] == [EXIT_REFUSED]
    assert first["onExitCodes"]["containerName"] in [one["name"] for one in POD["containers"]]
    assert POD["restartPolicy"] == "Never"  # without it Kubernetes refuses the policy
