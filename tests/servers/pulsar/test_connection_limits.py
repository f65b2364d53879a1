"""The limits of a connection: frames, properties, permits, requests and time; request ids and order."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.errors import ServerError
from broker_core.listing.listing_hash import topics_hash
from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import LimitsSettings, PulsarSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.connection_questions import (
    MATCHING,
    NAMES,
    NAMESPACE,
    SHORT,
    lister,
)
from tests.support.eventually import eventually
from tests.support.pulsar_serving import serving
from tests.support.raw_client import RawClient, Refused
from tests.support.topics_answers import get_topics_response

# -- limits ------------------------------------------------------------------------------------------------------

LARGE = [f"persistent://{NAMESPACE}/{'x' * 1000}-{number:06d}" for number in range(5100)]


@pytest.mark.parametrize("version", ["Pulsar-Java-v4.2.4", "", "pulsar-cpp-x"])
async def test_an_answer_over_the_peers_frame_limit_is_an_error_that_says_what_to_do(version: str) -> None:
    async with serving(lister(LARGE)) as s, await s.client(client_version=version) as client:
        with pytest.raises(
            Refused, match=r"NotAllowedError: .*5253120 bytes: ask with a narrower topics pattern"
        ):
            await client.ask(NAMESPACE)
        narrower = await client.ask(NAMESPACE, pattern=f"{NAMESPACE}/x+-00[0-3].*")
        assert len(narrower.topics) == 4000
        unchanged = await client.ask(NAMESPACE, topics_hash=topics_hash(LARGE))
        assert not unchanged.changed
        assert s.sample("listing_errors_sent_total", reason="frame_limit") == 1


@pytest.mark.parametrize("version", ["Pulsar-CPP-v4.0.0", "Pulsar-CPP-v4.2.0-mine", "broker-core-0.1"])
async def test_peers_without_a_limit_get_it_all(version: str) -> None:
    async with serving(lister(LARGE)) as s, await s.client(client_version=version) as client:
        assert len((await client.ask(NAMESPACE)).topics) == len(LARGE)


async def test_the_limit_is_exact() -> None:
    """A frame of just the limit goes out; one byte more would close a Java client's connection."""
    size = 1000 + 10 * 1024
    room = len(get_topics_response(1, [], topics_hash="00000000", filtered=False))
    for extra in (0, 1):
        name = f"persistent://{NAMESPACE}/"
        rest = [name + "a" * 100 + str(n) for n in range(80)]
        used = len(get_topics_response(1, rest, topics_hash="00000000", filtered=False))
        last = name + "z" * (size - used - 3 - len(name) - 1 + extra)  # -1: both length prefixes grow
        exact = len(get_topics_response(1, [*rest, last], topics_hash="00000000", filtered=False))
        last += "z" * (size - exact + extra)
        assert room < len(get_topics_response(1, [*rest, last], topics_hash="00000000", filtered=False))
        options = PulsarOptions(PulsarSettings.model_construct(max_message_size=1000))
        async with serving(lister([*rest, last]), options=options) as s, await s.client() as client:
            if extra:
                with pytest.raises(
                    Refused, match=f"a frame of {size + 1} bytes, over this client's limit of {size}"
                ):
                    await client.ask(NAMESPACE)
            else:
                assert len((await client.ask(NAMESPACE)).topics) == 81


async def test_an_answer_too_large_that_was_ready_at_once_gives_its_permits_back() -> None:
    names = [f"persistent://{NAMESPACE}/{'xy'[n % 2]}-{n:06d}-{'x' * 100}" for n in range(200)]
    options = PulsarOptions(PulsarSettings.model_construct(max_message_size=10))
    async with serving(lister(names), options=options) as s, await s.client() as client:
        pattern = f"{NAMESPACE}/.-.*[02468]-x*"  # scattered rows: they take heap permits
        with pytest.raises(Refused, match=r"NotAllowedError"):
            await client.ask(NAMESPACE, pattern=pattern)
        assert s.permits.heap.acquired == 0


async def test_too_many_lookups() -> None:
    source = lister(at_once=False)
    source.gate.clear()
    options = PulsarOptions(limits=LimitsSettings(concurrent_lookups=2))
    async with serving(source, options=options) as s, await s.client() as client, await s.client() as other:
        for number in range(2):
            await client.send(commands.get_topics(number, NAMESPACE))
        await eventually(lambda: s.server.load.slots.taken == 2)
        with pytest.raises(
            Refused, match=r"^TooManyRequests: Failed due to too many pending lookup requests$"
        ):
            await other.ask(NAMESPACE)
        source.at_once = True  # also where it would take no waiting
        with pytest.raises(Refused, match=r"TooManyRequests"):
            await other.ask(NAMESPACE)
        await other.send(commands.partitioned_metadata(7, MATCHING[0]))
        metadata = (await other.receive()).partitionMetadataResponse
        assert (metadata.error, metadata.message) == (
            ServerError.MetadataError,  # TooManyRequests would close the client's connection
            "Failed due to too many pending lookup requests",
        )
        await other.ping()
        source.gate.set()
        for _ in range(2):
            assert (await client.receive()).type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
        assert (await other.ask(NAMESPACE)).topics


async def test_no_direct_permits() -> None:
    names = [f"persistent://{NAMESPACE}/{number:05d}-{'x' * 50}" for number in range(2000)]
    limits = LimitsSettings(permit_timeout=0.02)
    async with serving(lister(names), limits=limits) as s, await s.client() as client:
        for budget, pattern in ((s.permits.direct, None), (s.permits.reserve, f"{NAMESPACE}/000.*")):
            held = await budget.acquire(budget.maximum)
            with pytest.raises(Refused, match=r"^TooManyRequests: Cannot acquire permits for direct memory$"):
                await client.ask(NAMESPACE, pattern=pattern)
            held.release()
            assert (await client.ask(NAMESPACE, pattern=pattern)).topics


# -- request ids and order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [True, False])
async def test_repeated_request_ids_are_legal(at_once: bool) -> None:
    async with serving(lister(at_once=at_once)) as s, await s.client() as client:
        await client.send(commands.get_topics(7, NAMESPACE) * 20)
        for _ in range(20):
            assert len(RawClient.answer(await client.receive(), 7).topics) == len(NAMES)


async def test_pipelined_requests_are_all_answered() -> None:
    async with serving(lister()) as s, await s.client() as client:
        frames = [commands.get_topics(number, NAMESPACE, topics_pattern=SHORT) for number in range(5000)]
        sending = asyncio.create_task(client.send(b"".join(frames)))
        answered = [(await client.receive()).getTopicsOfNamespaceResponse.request_id for _ in range(5000)]
        assert answered == list(range(5000))
        await sending


async def test_a_slow_request_keeps_nobody_waiting() -> None:
    source = lister(at_once=False)
    source.gate.clear()
    async with serving(source) as s, await s.client() as client:
        await client.send(commands.get_topics(1, NAMESPACE))
        await eventually(lambda: source.asked)
        source.at_once = True
        await client.ping()
        await client.send(commands.get_topics(2, NAMESPACE))
        assert (await client.receive()).getTopicsOfNamespaceResponse.request_id == 2
        source.gate.set()
        assert (await client.receive()).getTopicsOfNamespaceResponse.request_id == 1
