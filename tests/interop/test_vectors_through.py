"""The recorded patterns through the gateway give the recorded answers; a standalone server differs as described.

Patterns that RE2 refuses are the broker's business if there is one: it evaluates them with an engine of its own, and
the gateway passes its answer on. A standalone server has no such engine and lists without filtering, and says so.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.names import Mode
from broker_core.wire.pulsar.messages import pulsar_api_pb2 as pb
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
            *(broker_core_command(), "topics", "import", "--as-names"),
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


def test_what_re2_knows_is_answered_alike_by_all(two: tuple[RawClient, RawClient]) -> None:
    differences = []
    for case in CASES:
        # google-re2 agrees with the broker about all of these but \C, which is no valid text.
        if case["re2"] and "\\C" not in (case["topics_pattern"] or ""):
            answers = [_recorded(case), *(_ask(client, case) for client in two)]
            if any(answer != answers[0] for answer in answers):
                differences.append(
                    (case["topics_pattern"], case["mode"], *(answer[:3] for answer in answers))
                )
    assert not differences


def test_what_re2_refuses_is_the_brokers_answer_or_everything(two: tuple[RawClient, RawClient]) -> None:
    differences = []
    for case in CASES:
        if not case["re2"]:
            recorded = _recorded(case)
            alone, through = (_ask(client, case) for client in two)
            # Never a part of what matches: all topics for the client to filter, or the broker's error.
            covered = alone == recorded if alone[0] == "error" else not alone[1]
            if through != recorded or not covered or not set(recorded[3]) <= set(alone[3]):
                answers = (recorded, alone, through)
                differences.append(
                    (case["topics_pattern"], case["mode"], *(answer[:3] for answer in answers))
                )
    assert not differences
