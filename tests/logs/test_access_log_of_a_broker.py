"""The access log of a whole broker: a line for each listing, of small answers that are sent again too."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from broker_core.broker import Broker
from broker_core.client import LookupSession
from broker_core.client.client_errors import ServerRefused
from broker_core.settings import Settings
from tests.support.api_serving import api_served
from tests.support.eventually import eventually


def settings(folder: Path) -> Settings:
    return Settings.model_validate(
        {
            "pulsar": {"listen": "127.0.0.1:0"},
            "catalog": {"path": folder / "topics.sqlite"},
            "log": {"access": {"path": folder / "access.jsonl"}},
        }
    )


async def list_topics(broker: Broker, times: int) -> None:
    host, port = broker.pulsar_address
    async with LookupSession(f"pulsar://{host}:{port}") as session:
        for _ in range(times):
            await session.get_topics("public/default")


async def test_each_listing_is_a_line_and_a_moved_file_is_left(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    async with Broker(settings(tmp_path)) as broker:
        await list_topics(broker, 5)
        await eventually(lambda: len(path.read_text().splitlines()) == 5, what="five lines")
        path.rename(tmp_path / "access.1")
        assert not (await broker.reloads.reload_all()).failed
        assert not broker.reloads.failing["access log"]
        await list_topics(broker, 1)
    first, *_, fifth = map(json.loads, (tmp_path / "access.1").read_text().splitlines())
    assert first["address"].startswith("127.0.0.1:")
    assert first["client_version"].startswith("broker-core")
    assert (first["namespace"], first["outcome"], first["topics"]) == ("public/default", "served", 0)
    changing = ("time", "total_ms")
    assert [fifth.pop(key) != "" for key in changing] == [first.pop(key) != "" for key in changing]
    assert fifth == first
    assert len(path.read_text().splitlines()) == 1


async def test_each_refusal_of_either_transport_is_a_line_too(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    limits = {"properties": 2}
    pulsar = {"listen": "127.0.0.1:0", "max_message_size": 1024}
    log = {"access": {"path": path, "properties": ["region"]}}
    topics: dict[str, tuple[int, dict[str, str]]] = {
        f"persistent://public/default/{number:0200d}": (0, {}) for number in range(100)
    }
    async with api_served(tmp_path, topics=topics, limits=limits, pulsar=pulsar, log=log) as served:
        host, port = served.broker.pulsar_address
        too_many = {"region": "eu", "a": "1", "b": "2"}
        asked: list[tuple[str, dict[str, Any], str]] = [
            ("public", {}, "bad_namespace"),
            ("public/default", {"pattern": "public/default/("}, "bad_pattern"),
            ("public/default", {"properties": too_many}, "bad_request"),
            ("public/default", {"properties": dict.fromkeys(map(str, range(1001)), "")}, "bad_request"),
            ("public/default", {}, "frame_limit"),
        ]
        async with LookupSession(f"pulsar://{host}:{port}", client_version="Pulsar-Java-v4.2.0") as session:
            for namespace, question, _ in asked:
                with pytest.raises(ServerRefused):
                    await session.get_topics(namespace, **question)
        reasons = [reason for _, _, reason in asked]
        for query, status in [
            ("pattern=public/default/(", 400),
            ("mode=none", 400),
            ("property=region=eu&property=a=1&property=b=2", 400),
            ("cursor=!", 400),
        ]:
            assert (await served.ask(f"/v1/namespaces/public/default/topics?{query}")).status == status
        reasons += ["bad_pattern", "bad_request", "bad_request", "bad_request"]
        assert (await served.ask("/v1/namespaces/public/!/topics")).status == 400
        assert (await served.ask("/admin/v2/namespaces/public/!/topics")).status == 412
        assert (await served.ask("/admin/v2/persistent/public/none")).status == 404
        properties = "properties=region%3Deu,a%3D1,b%3D2"
        assert (await served.ask(f"/admin/v2/persistent/public/default?{properties}")).status == 400
        reasons += ["bad_namespace", "bad_namespace", "bad_namespace", "bad_request"]
        await eventually(lambda: len(path.read_text().splitlines()) >= len(reasons), what="the lines")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [(line["outcome"], line["reason"]) for line in lines] == [
            ("refused", each) for each in reasons
        ]
        assert [line["transport"] for line in lines] == ["pulsar"] * 5 + ["http"] * 8
        assert [line.get("properties") for line in lines if line["reason"] == "bad_request"] == [
            {"region": "eu"},
            None,  # of a command with so many nothing is read
            None,
            {"region": "eu"},
            None,
            {"region": "eu"},
        ]
        for reason in set(reasons) - {"frame_limit"}:
            count = reasons.count(reason)
            assert served.sample("listing_errors_sent_total", reason=reason) == count
        assert served.sample("listing_errors_sent_total", reason="frame_limit") == 1


async def test_a_pipe_that_nobody_reads_stops_neither_listings_nor_the_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "access.jsonl")
    async with Broker(settings(tmp_path)) as broker:
        await list_topics(broker, 500)
        assert broker.pipeline.metrics.registry.get_sample_value("broker_core_listing_seconds_count") == 500


async def test_a_file_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "access.jsonl").mkdir()
    with pytest.raises(Exception, match=r"log\.access\.path: cannot write"):
        async with Broker(settings(tmp_path)):
            pass
