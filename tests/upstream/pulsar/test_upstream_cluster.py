"""The upstream cluster: warnings to the operator, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from broker_core.client import InvalidServiceUrl
from broker_core.settings import PulsarSettings, UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, CommandConnected, FeatureFlags
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer


def warnings_of(logs: Sequence[Mapping[str, object]]) -> list[str]:
    return [str(each["event"]) for each in logs if each["log_level"] == "warning"]


def is_connected(upstream: UpstreamCluster) -> bool:
    return upstream.watch.connections > 0


async def test_another_max_message_size_is_warned_of_at_start() -> None:
    async with ScriptedServer(max_message_size=1_000_000) as server:
        upstream = UpstreamCluster(UpstreamOptions(UpstreamSettings(service_url=server.url)))
        with capture_logs() as logs:
            await upstream.start()
        (warning,) = warnings_of(logs)
        assert "set pulsar.max_message_size to theirs" in warning
        await upstream.stop()


async def test_nothing_to_warn_of() -> None:
    async with ScriptedServer(max_message_size=7) as server:
        upstream = UpstreamCluster(
            UpstreamOptions(
                UpstreamSettings(service_url=server.url), PulsarSettings.model_construct(max_message_size=7)
            )
        )
        with capture_logs() as logs:
            await upstream.start()
        assert warnings_of(logs) == []
        await upstream.stop()


async def test_the_brokers_may_be_down_at_start() -> None:
    upstream = UpstreamCluster(
        UpstreamOptions(UpstreamSettings(service_url=f"pulsar://127.0.0.1:{free_port()}"))
    )
    with capture_logs() as logs:
        await upstream.start()
    assert set(warnings_of(logs)) == {"upstream unreachable"}
    assert not is_connected(upstream)
    await upstream.stop()


def test_promises_follow_the_brokers() -> None:
    upstream = UpstreamCluster(UpstreamOptions(UpstreamSettings(service_url="pulsar://127.0.0.1:1")))
    flags = FeatureFlags(
        supports_get_partitioned_metadata_without_auto_creation=True, supports_auth_refresh=True
    )
    upstream.relay.connected(CommandConnected(server_version="x", feature_flags=flags))
    kept = upstream.relay.feature_flags
    assert kept == FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)


def test_a_promise_is_made_for_all_connected_brokers() -> None:
    upstream = UpstreamCluster(UpstreamOptions(UpstreamSettings(service_url="pulsar://127.0.0.1:1")))
    relay = upstream.relay
    old = CommandConnected(server_version="old")
    new = CommandConnected(server_version="new")
    new.feature_flags.supports_get_partitioned_metadata_without_auto_creation = True

    def promised() -> bool:
        return relay.feature_flags.supports_get_partitioned_metadata_without_auto_creation

    for first, second in ((old, new), (new, old)):
        relay.connected(first)
        relay.connected(second)
        assert not promised(), "the old one is asked too"
        relay.ended(old)
        assert promised()
        relay.ended(new)
    relay.connected(new)
    relay.ended(new)
    assert promised(), "as it was last known"
    relay.connected(old)
    relay.ended(old)
    assert not promised()


async def test_a_promise_that_an_old_broker_cannot_keep_ends_with_its_connection() -> None:
    new = FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)

    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.send(
            commands.connected("new", protocol_version=21, max_message_size=5_242_880, feature_flags=new)
        )

    async with ScriptedServer() as old, ScriptedServer(script, handshake=False) as newer:
        url = f"pulsar://127.0.0.1:{old.port},127.0.0.1:{newer.port}"
        upstream = UpstreamCluster(UpstreamOptions(UpstreamSettings(service_url=url)))
        await upstream.start()
        try:
            await eventually(lambda: upstream.watch.connections == 2)
            assert upstream.relay.feature_flags != new
            await old.stop()
            await eventually(lambda: upstream.relay.feature_flags == new)
        finally:
            await upstream.stop()


def test_a_bad_service_url_is_an_error_at_once() -> None:
    with pytest.raises(InvalidServiceUrl):
        UpstreamCluster(UpstreamOptions(UpstreamSettings.model_construct(service_url="localhost:6650")))
