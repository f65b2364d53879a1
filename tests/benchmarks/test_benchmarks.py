"""The benchmark: its names and its client are right, and it runs from end to end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from broker_core.wire.pulsar.messages import pulsar_api_pb2 as pb
from tests.benchmarks.http_namespaces import measure_namespaces
from tests.benchmarks.names import LOCAL_LENGTH, Questions, local_names
from tests.benchmarks.own_code import pool_times, tls_memory
from tests.benchmarks.quotas import measure_quotas
from tests.benchmarks.rules import measured
from tests.benchmarks.small_listings import fill, measure_small, small_questions
from tests.benchmarks.start import COMMANDS, NOTHING, measure_starts
from tests.benchmarks.wire_client import (
    connect_frame,
    get_topics_frame,
    lookup_frame,
    partitions_frame,
    ping_frame,
    read_answer,
)
from tests.support.postgres_server import PostgresServer
from tests.support.served import Served

SIZE = 10_000


def test_names_give_the_matches_that_questions_promise() -> None:
    names = list(local_names(SIZE))
    assert len(set(names)) == SIZE
    assert {len(name) for name in names} == {LOCAL_LENGTH}
    about = Questions(SIZE)
    base = f"persistent://{about.namespace}/"
    for turn in (0, 1, SIZE // 10 - 1):
        pattern = re.compile(about.prefix(turn))
        assert sum(pattern.fullmatch(base + name) is not None for name in names) == 10
    infixes = {about.infix(turn) for turn in range(about.infixes)}
    assert len(infixes) == about.infixes
    tags = Counter(tag for name in names for tag in name.split("-")[2:])
    assert len(tags) == about.infixes
    assert set(tags.values()) == {1_000}


def _command(frame: bytes) -> pb.BaseCommand:
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == len(frame) - 8
    return pb.BaseCommand.FromString(frame[8:])


def test_its_frames_say_what_they_should() -> None:
    assert _command(connect_frame()).connect.protocol_version == 21
    assert _command(ping_frame()).HasField("ping")
    asked = _command(get_topics_frame(300, "a/b", "a/b/.*", "cafe")).getTopicsOfNamespace
    assert (asked.request_id, asked.namespace, asked.topics_pattern, asked.topics_hash) == (
        300,
        "a/b",
        "a/b/.*",
        "cafe",
    )
    assert not _command(get_topics_frame(1, "a/b")).getTopicsOfNamespace.HasField("topics_pattern")
    partitions, lookup = _command(partitions_frame(7, "t")), _command(lookup_frame(8, "t"))
    assert (partitions.partitionMetadata.topic, partitions.partitionMetadata.request_id) == ("t", 7)
    assert (lookup.lookupTopic.topic, lookup.lookupTopic.request_id) == ("t", 8)
    with_pairs = _command(
        get_topics_frame(1, "a/b", properties={"k": "v" * 200, "l": ""})
    ).getTopicsOfNamespace
    assert {pair.key: pair.value for pair in with_pairs.properties} == {"k": "v" * 200, "l": ""}


@pytest.mark.parametrize("topics", [0, 1, 300])
def test_it_counts_what_it_is_answered(topics: int) -> None:
    listing = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=300, filtered=True, topics_hash="cafe", changed=False
    )
    listing.topics.extend(f"persistent://a/b/{number}" for number in range(topics))
    command = pb.BaseCommand(
        type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, getTopicsOfNamespaceResponse=listing
    )
    body = command.SerializeToString()
    frame = (len(body) + 4).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body
    answer = read_answer(memoryview(frame))
    assert (answer.topics, answer.filtered, answer.topics_hash, answer.changed) == (
        topics,
        True,
        "cafe",
        False,
    )
    assert answer.size == len(frame)


@pytest.mark.long
def test_it_reports_a_short_run(tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks",
        "--sizes",
        str(SIZE),
        "--runs",
        "1",
        "--seconds",
        "0.05",
        "--returning",
        "10",
    ]
    done = subprocess.run(
        [*command, "--no-peer", "--output", str(output)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(output.read_text())
    figures = results["sizes"][str(SIZE)]["broker-core"]
    assert set(figures["questions"]) == {"prefix", "infix", ".*", "none", "unchanged"}
    assert set(figures["questions"]["prefix"]) == {"rotating", "repeating"}
    assert results["crowd"]["outcomes"] == {"listing": 200}
    assert results["crowd"]["different_answers"] == 1
    assert {scheme: found["topics"] for scheme, found in results["client"].items()} == {
        "pulsar": SIZE,
        "http": SIZE,
    }
    assert all(found["blocks"] < SIZE for found in results["client"].values()), "no string for each topic"
    assert results["reconnects"]["outcomes"] == {"plain": 50, "tls": 10}
    over_http = results["http"][str(SIZE)]
    assert (over_http["twice"], over_http["missed"]) == (0, 0)
    assert over_http["pages"] >= 20
    for word in (
        "prefix",
        "unchanged",
        "Over HTTP",
        "listings a second",
        "resident",
        "PINGs",
        "came back at once",
    ):
        assert word in done.stdout


@pytest.mark.long
def test_starts_are_measured_round_by_round() -> None:
    taken = measure_starts(1)
    assert list(taken) == [NOTHING, *COMMANDS]
    assert all(len(seconds) == 1 for seconds in taken.values())


def test_the_time_of_small_answers_is_measured(tmp_path: Path) -> None:
    fill(tmp_path / "catalog.sqlite")
    with Served(tmp_path, {"catalog": {"path": str(tmp_path / "catalog.sqlite")}}) as served:
        kinds = small_questions(served.address)
        assert "unchanged by pattern" in kinds
        for frames in kinds.values():
            for depth in (1, 3):
                # More than the clients have under way: those may be answered before the clock is read.
                assert 0 < measure_small(served, frames, depth, 200) < 1


def test_our_transport_over_tls_has_no_buffers_that_stay() -> None:
    memory = tls_memory(20)
    assert memory["ours"][1] < memory["asyncio"][1] / 2


async def test_both_pools_are_asked() -> None:
    with PostgresServer() as server:
        assert set(await pool_times(server.dsn(), 3)) == {"ours", "asyncpg"}


def test_rules_about_topics() -> None:
    found = measured(20, 2000)
    # Eighteen rules allow 100 names each, and two deny all that another one allows.
    assert found["names_left"] == 1600


def test_the_client_over_its_quota_is_served_refused_and_pinged() -> None:
    found = measure_quotas(1, 0.3)
    assert found["served"] > 0
    assert found["refused"] > 0
    assert found["pings"] > 0
    assert set(found["p99_ms"]) == {"nobody", "at its quota", "ten times its quota"}


def test_namespaces_are_asked_for_with_filters_changes_and_rules() -> None:
    found = measure_namespaces(350, 1, 1)
    assert len(found) == 6
    assert all(0 < least <= median <= most for least, median, most in found.values())
