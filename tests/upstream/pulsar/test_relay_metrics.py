"""The metrics of relayed lookups: each lookup counts once, by what became of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import ServerError
from broker_core.metrics.metrics import Metrics
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions
from broker_core.upstream.pulsar.relay_metrics import OUTCOMES
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer, answer_nothing

ASKER = Asker(remote_address="10.0.0.1:1")


def lookup(topic: str = "persistent://t/n/x") -> BaseCommand:
    (raw,) = FrameDecoder(1 << 22).feed(commands.lookup(1, topic))
    return commands.decode(raw)


class Counted:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def sample(self, name: str, **labels: str) -> float:
        value = self._metrics.registry.get_sample_value(f"broker_core_{name}", labels)
        assert value is not None, name
        return value

    @property
    def outcomes(self) -> dict[str, int]:
        counts = {
            outcome: int(self.sample("relayed_lookups_total", command="lookup", outcome=outcome))
            for outcome in OUTCOMES
        }
        return {outcome: count for outcome, count in counts.items() if count}

    @property
    def timed(self) -> int:
        return int(self.sample("relayed_lookup_seconds_count", command="lookup"))


async def answering(peer: Peer, command: BaseCommand) -> None:
    """Answers by the topic's name: an address, a refusal, a lie, an ERROR, or nothing."""
    question = command.lookupTopic
    answer = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
    body = answer.lookupTopicResponse
    body.request_id = question.request_id
    body.response = body.Connect
    name = question.topic.rpartition("/")[2]
    if name == "silent":
        return
    if name == "error":
        peer.send(commands.error(question.request_id, ServerError.NotAllowedError, "no"))
        return
    if name == "refused":
        body.response, body.error = body.Failed, ServerError.AuthorizationError
    elif name == "moved" and not question.authoritative:
        body.response, body.authoritative = body.Redirect, True
        host, port = peer.writer.get_extra_info("sockname")[:2]
        body.brokerServiceUrl = f"pulsar://{host}:{port}"
    elif name != "lie":
        body.brokerServiceUrl = "pulsar://b:6650"
    peer.send(commands.encode(answer))


@pytest.mark.parametrize(
    ("name", "outcome", "redirects"),
    [
        ("x", "answered", 0),
        ("moved", "answered", 1),
        ("refused", "denied", 0),
        ("error", "refused", 0),
        ("lie", "bad_answer", 0),
        ("silent", "timeout", 0),
    ],
)
async def test_a_lookup_counts_by_its_outcome(name: str, outcome: str, redirects: int) -> None:
    metrics = Metrics()
    counted = Counted(metrics)
    async with ScriptedServer(answering) as server:
        settings = UpstreamSettings(service_url=server.url)
        upstream = UpstreamCluster(
            UpstreamOptions(settings, lookup_timeout=0.3 if name == "silent" else 15), metrics
        )
        await upstream.relay.answer(lookup(f"persistent://t/n/{name}"), ASKER)
        assert counted.outcomes == {outcome: 1}
        assert counted.timed == 1
        assert counted.sample("relayed_lookup_redirects_total") == redirects
        assert counted.sample("relayed_lookups_in_flight") == 0
        await upstream.stop()


async def test_brokers_that_are_down_are_counted() -> None:
    metrics = Metrics()
    options = UpstreamOptions(
        UpstreamSettings(service_url=f"pulsar://127.0.0.1:{free_port()}"), connection_wait=0.02
    )
    upstream = UpstreamCluster(options, metrics)
    await upstream.relay.answer(lookup(), ASKER)
    assert Counted(metrics).outcomes == {"unreachable": 1}
    await upstream.stop()


async def test_lookups_without_a_place_of_clients_that_leave_and_of_many_at_once() -> None:
    metrics = Metrics()
    counted = Counted(metrics)
    async with ScriptedServer(answer_nothing) as server:
        options = UpstreamOptions(UpstreamSettings(service_url=server.url), lookups=8)
        upstream = UpstreamCluster(options, metrics)
        relay = upstream.relay
        await relay.answer(lookup("x" * 1_100_000), ASKER)
        assert (counted.outcomes, counted.timed) == ({"limit": 1}, 0)
        tasks = [asyncio.create_task(relay.answer(lookup(), ASKER)) for _ in range(4)]
        await eventually(lambda: counted.sample("relayed_lookups_in_flight") == 4)
        await relay.answer(lookup(), ASKER)
        assert (counted.outcomes, counted.timed) == ({"limit": 2}, 0)
        server.script = answering
        tasks[0].cancel()  # the other three are asked for together
        await asyncio.wait(tasks)
        assert counted.outcomes == {"limit": 2, "gone": 1, "answered": 3}
        assert counted.timed == 4
        assert counted.sample("relayed_lookups_shared_total", command="lookup") == 2
        await upstream.stop()


async def test_every_series_is_there_from_the_start() -> None:
    metrics = Metrics()
    settings = UpstreamSettings(service_url="pulsar://127.0.0.1:1")
    UpstreamCluster(replace(UpstreamOptions(settings), connection_wait=0.0), metrics)
    counted = Counted(metrics)
    for command in ("partitioned_metadata", "lookup", "get_schema", "get_or_create_schema"):
        for outcome in OUTCOMES:
            assert counted.sample("relayed_lookups_total", command=command, outcome=outcome) == 0
        assert counted.sample("relayed_lookups_shared_total", command=command) == 0
        assert counted.sample("relayed_lookup_seconds_count", command=command) == 0
