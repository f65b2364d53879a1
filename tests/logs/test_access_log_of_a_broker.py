"""The access log of a whole broker: a line for each listing, of small answers that are sent again too."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.client import LookupSession
from broker_core.settings import Settings
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
        assert await broker.reloads.reload_all()
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
