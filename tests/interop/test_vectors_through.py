"""The recorded patterns asked of the live broker through the gateway: as recorded, and as a standalone server says."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.names import Mode
from broker_core.wire import pulsar_api_pb2 as pb
from tests.benchmarks.wire_client import RawClient
from tests.support.served import Served, broker_core_command
from tests.support.vectors import pattern_vectors

pytestmark = pytest.mark.interop

VECTORS = pattern_vectors()
CASES: list[dict[str, Any]] = VECTORS["cases"]


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that has the recorded names in its own catalogue."""
    folder: Path = tmp_path_factory.mktemp("standalone")
    names = folder / "names.txt"
    names.write_text("".join(f"{name}\n" for name in VECTORS["stored_names"]), encoding="utf-8")
    served = Served(folder, {"catalog": {"path": str(folder / "catalog.sqlite")}})
    subprocess.run(
        [
            *(broker_core_command(), "topics", "import"),
            *("--config", str(served.config), VECTORS["namespace"], str(names)),
        ],
        check=True,
        capture_output=True,
    )
    with served:
        yield served


@pytest.fixture(scope="module")
def two(standalone: Served, gateway: Served) -> Iterator[tuple[RawClient, RawClient]]:
    clients = RawClient(standalone.address), RawClient(gateway.address)
    yield clients
    for client in clients:
        client.close()


def _ask(client: RawClient, case: dict[str, Any]) -> tuple[str, bool, str, list[str]]:
    asked = pb.CommandGetTopicsOfNamespace(request_id=3, namespace=VECTORS["namespace"])
    asked.mode = Mode[case["mode"]].value
    if case["topics_pattern"] is not None:
        asked.topics_pattern = case["topics_pattern"]
    command = pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=asked)
    body = command.SerializeToString()
    frame = (len(body) + 4).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body
    answer = pb.BaseCommand.FromString(bytes(client.ask(frame)[8:]))
    if answer.HasField("error"):
        return "error", False, "", []
    listing = answer.getTopicsOfNamespaceResponse
    return "listing", listing.filtered, listing.topics_hash, sorted(listing.topics)


def _recorded(case: dict[str, Any]) -> tuple[str, bool, str, list[str]]:
    if case["outcome"] == "error":
        return "error", False, "", []
    base = f"{VECTORS['namespace']}/"
    names = [name if "://" in name else f"persistent://{base}{name}" for name in case["topics"]]
    return "listing", case["filtered"], case["topics_hash"], sorted(names)


@pytest.mark.parametrize("re2", [True, False], ids=["re2", "not-re2"])
def test_recorded_cases(two: tuple[RawClient, RawClient], re2: bool) -> None:
    differences: list[Any] = []
    for case in CASES:
        if case["re2"] is not re2:
            continue
        alone, through = (_ask(client, case) for client in two)
        if alone != through:
            differences.append(
                (case["topics_pattern"], case["mode"], "standalone", alone[:3], "gateway", through[:3])
            )
        # google-re2 agrees with the broker about all of these, but refuses \C, which is no valid text.
        if re2 and "\\C" not in (case["topics_pattern"] or "") and through != _recorded(case):
            differences.append(
                (case["topics_pattern"], case["mode"], "gateway", through[:3], _recorded(case)[:3])
            )
    assert not differences
