"""What parts of a server refuse of new settings, and what they let go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client import generate_latest

from broker_core.broker import Broker
from broker_core.client import LookupSession
from broker_core.settings import Settings
from tests.support.catalogue_topics import create_topics
from tests.support.tokens import der, rsa_key


class Changing:
    """Settings that a test changes."""

    def __init__(self, folder: Path, **tables: Any) -> None:
        self.tables: dict[str, Any] = {
            "pulsar": {"listen": "127.0.0.1:0"},
            "catalog": {"path": folder / "c.sqlite"},
            **tables,
        }

    def load(self) -> Settings:
        return Settings.model_validate(self.tables)

    def broker(self) -> Broker:
        return Broker(self.load(), load=self.load)


async def test_what_a_part_cannot_use_is_refused_by_all(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(der(rsa_key()))
    token = {"methods": ["token"], "token": {"key": f"file:{tmp_path / 'key'}"}}
    kafka = {"listen": "127.0.0.1:0", "sasl": {"mechanisms": ["OAUTHBEARER"]}}
    changing = Changing(tmp_path, authentication=token, kafka=kafka)
    async with changing.broker() as broker:
        before = broker.settings
        for tables, reason in (
            ({"authentication": {}}, "'OAUTHBEARER' cannot be used"),
            ({"authentication": token | {"token": {"key": f"file:{tmp_path / 'none'}"}}}, "No such file"),
            ({"kafka": kafka | {"configs": {"no.such": "1"}}}, "kafka.configs: "),
            ({"log": {"level": "debug"}, "authorization": {"mode": "allow"}}, "'allow' has no use"),
        ):
            former, changing.tables = changing.tables, changing.tables | tables
            failed = (await broker.reloads.reload_all()).failed
            assert reason in failed["settings"]
            assert broker.settings is before
            changing.tables = former
        shown = generate_latest(broker.pipeline.metrics.registry).decode()
        assert 'broker_core_reload_failing{part="settings"} 1.0' in shown


async def test_less_memory_lets_snapshots_go_and_more_keeps_them_again(tmp_path: Path) -> None:
    create_topics(tmp_path / "c.sqlite", *(f"persistent://a/b/t{number}" for number in range(100)))
    changing = Changing(tmp_path)
    async with changing.broker() as broker:
        permits = broker.pipeline.permits
        host, port = broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as client:
            for size, kept in (("10MB", True), (1000, False), (0, True), ("10MB", True)):
                changing.tables["limits"] = {"snapshots": size}
                await broker.reloads.reload_all()
                assert len((await client.get_topics("a/b")).topics) == 100
                assert (permits.snapshots.acquired > 0) is kept


async def test_what_waits_for_a_restart_is_counted(tmp_path: Path) -> None:
    changing = Changing(tmp_path)
    async with changing.broker() as broker:
        changing.tables["watchers"] = {"most": 1}
        await broker.reloads.reload_all()
        shown = generate_latest(broker.pipeline.metrics.registry).decode()
        assert "broker_core_reload_awaiting_restart 1.0" in shown
