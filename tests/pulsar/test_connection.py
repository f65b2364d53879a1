"""One connection: handshake, listings, refusals, keep-alive. It lives on after everything but what closes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.errors import ListingFailed, ServerError
from broker_core.listing_request import Asker
from broker_core.permits import PermitLimits
from broker_core.pipeline import PipelineOptions
from broker_core.pulsar import PulsarOptions
from broker_core.pulsar.listing_command import RequestBounds
from broker_core.topics_hash import topics_hash
from broker_core.wire import commands
from broker_core.wire.pulsar_api_pb2 import BaseCommand, CommandConnect, FeatureFlags
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_serving import serving
from tests.support.raw_client import RawClient, Refused

NAMESPACE = "use/ns-abc"
MATCHING = [f"persistent://{NAMESPACE}/topic-{number}" for number in range(3)]
MATCHING += [f"persistent://{NAMESPACE}/topic-p-partition-{number}" for number in range(3)]
OTHER = [f"persistent://{NAMESPACE}/other-{number}" for number in range(4)]
NAMES = MATCHING + OTHER
SHORT = "use/ns-abc/topic-.*"
INVALID_AND_LONG = r"use/ns-abc/(t|o|to|p|i|c)+-?)+!"
TOO_LARGE_FOR_JAVA = 5 * 1024 * 1024 + 10 * 1024


def lister(names: list[str] | None = None, *, at_once: bool = True) -> MemoryLister:
    return MemoryLister(NAMES if names is None else names, at_once=at_once)


async def refused(client: RawClient, frame: bytes) -> Any:
    """The error that answers a frame, and that the connection lives on."""
    await client.send(frame)
    answer = await client.receive()
    assert answer.type == BaseCommand.ERROR, answer
    await client.ping()
    return answer.error


# -- the answers of ServerCnxTest, the slow way and the quick one ----------------------------------------------


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("options", "pattern", "given", "topics", "filtered", "changed"),
    [
        (PipelineOptions(), None, None, NAMES, False, True),
        (PipelineOptions(evaluate=False), SHORT, None, NAMES, False, True),
        (PipelineOptions(evaluate=False), "use/ns-abc/(?!x).*", None, NAMES, False, True),
        (PipelineOptions(max_length=10), INVALID_AND_LONG, None, NAMES, False, True),
        (PipelineOptions(), "use/ns-abc/(?!other).*", None, NAMES, False, True),
        (PipelineOptions(), SHORT, "SOME_HASH", MATCHING, True, True),
        (PipelineOptions(), SHORT, topics_hash(MATCHING), [], True, False),
        (PipelineOptions(), "persistent://" + SHORT, topics_hash(MATCHING), [], True, False),
        (PipelineOptions(), SHORT, topics_hash(NAMES), MATCHING, True, True),
        (PipelineOptions(), None, topics_hash(NAMES), [], False, False),
        (PipelineOptions(evaluate=False), SHORT, topics_hash(NAMES), [], False, False),
        (PipelineOptions(), "use/ns-abc/nothing.*", None, [], True, True),
        (PipelineOptions(), "use/ns-abc/nothing.*", "00000000", [], True, False),
        (PipelineOptions(), None, "", NAMES, False, True),
    ],
)
async def test_a_listing_as_a_broker_gives_it(
    at_once: bool,
    options: PipelineOptions,
    pattern: str | None,
    given: str | None,
    topics: list[str],
    filtered: bool,
    changed: bool,
) -> None:
    async with serving(lister(at_once=at_once), pipeline_options=options) as s, await s.client() as client:
        answer = await client.ask(NAMESPACE, pattern=pattern, topics_hash=given)
        assert sorted(answer.topics) == sorted(topics)
        assert (answer.filtered, answer.changed) == (filtered, changed)
        expected = topics if changed else MATCHING if filtered else NAMES
        if pattern != "use/ns-abc/nothing.*":
            assert answer.topics_hash == topics_hash(expected)
        assert answer.HasField("filtered")
        assert answer.HasField("changed")


async def test_a_namespace_that_nobody_knows_is_empty() -> None:
    async with serving(lister()) as s, await s.client() as client:
        answer = await client.ask("nobody/knows")
        assert (list(answer.topics), answer.topics_hash, answer.changed) == ([], "00000000", True)


async def test_modes() -> None:
    both = [*NAMES, f"non-persistent://{NAMESPACE}/n"]
    async with serving(lister(both)) as s, await s.client() as client:
        assert sorted((await client.ask(NAMESPACE, 0)).topics) == sorted(NAMES)
        assert list((await client.ask(NAMESPACE, 1)).topics) == both[-1:]
        assert sorted((await client.ask(NAMESPACE, 2)).topics) == sorted(both)


async def test_the_last_of_a_repeated_property_wins() -> None:
    source = lister(at_once=False)
    async with serving(source) as s, await s.client() as client:
        command = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE)
        question = command.getTopicsOfNamespace
        question.request_id, question.namespace = 1, NAMESPACE
        for key, value in (("a", "1"), ("b", "2"), ("a", "3")):
            question.properties.add(key=key, value=value)
        await client.send(commands.encode(command))
        await client.receive()
        assert dict(source.asked[0].properties) == {"a": "3", "b": "2"}


# -- handshake --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "agreed"), [(0, 0), (1, 1), (15, 15), (20, 20), (21, 21), (99, 21), (-5, 0)]
)
async def test_connected_tells_the_truth(theirs: int, agreed: int) -> None:
    options = PulsarOptions(max_message_size=1_234_567, server_version="broker-core 1.2.3")
    async with serving(lister(), options=options) as s, await s.client(handshake=False) as client:
        await client.send(commands.connect("Pulsar-Java-v4.2.4", protocol_version=theirs))
        connected = (await client.receive()).connected
        assert connected.protocol_version == agreed
        assert connected.server_version == "broker-core 1.2.3"
        assert connected.max_message_size == 1_234_567
        flags = {field.name for field, value in connected.feature_flags.ListFields() if value}
        assert flags == {"supports_get_partitioned_metadata_without_auto_creation"}


async def test_before_connect_there_is_only_ping() -> None:
    async with serving(lister()) as s, await s.client(handshake=False) as client:
        await client.ping()
        for frame in (commands.get_topics(8, NAMESPACE), commands.encode(_of_broker("subscribe", 8))):
            error = await refused(client, frame)
            assert (error.request_id, error.error, error.message) == (
                8,
                ServerError.NotAllowedError,
                "Send CONNECT first",
            )
        await client.send(commands.lookup(9, "persistent://a/b/c"))
        answer = (await client.receive()).lookupTopicResponse
        assert (answer.request_id, answer.error) == (9, ServerError.NotAllowedError)
        await client.send(commands.connect("late"))
        assert (await client.receive()).type == BaseCommand.CONNECTED
        assert sorted((await client.ask(NAMESPACE)).topics) == sorted(NAMES)


async def test_connecting_twice_is_refused_and_changes_nothing() -> None:
    async with serving(lister()) as s, await s.client(client_version="Pulsar-CPP-v4") as client:
        error = await refused(client, commands.connect("Pulsar-Java-v4"))
        assert (error.request_id, error.error) == (
            commands.CONNECTION_REQUEST_ID,
            ServerError.NotAllowedError,
        )
        assert sorted((await client.ask(NAMESPACE)).topics) == sorted(NAMES)


async def test_it_is_no_proxy() -> None:
    """Answered as if connected, a client would send its data here."""
    async with serving(lister()) as s, await s.client(handshake=False) as client:
        body = CommandConnect(client_version="v", protocol_version=21, proxy_to_broker_url="pulsar://b:6650")
        error = await refused(client, commands.encode(BaseCommand(type=BaseCommand.CONNECT, connect=body)))
        assert (error.request_id, error.error) == (
            commands.CONNECTION_REQUEST_ID,
            ServerError.NotAllowedError,
        )
        assert "no proxy" in error.message
        error = await refused(client, commands.get_topics(1, NAMESPACE))
        assert error.message == "Send CONNECT first"


async def test_who_asks_is_part_of_the_request() -> None:
    source = lister(at_once=False)
    async with serving(source) as s, await s.client(client_version="Pulsar-Java-v4.2.4-mine") as client:
        await client.ask(NAMESPACE)
        host, port = client.address
        assert source.asked[0].asker == Asker(
            remote_address=f"{host}:{port}", client_version="Pulsar-Java-v4.2.4-mine", protocol_version=21
        )


# -- refusals, after each of which the connection lives on ------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        ("public", "public"),
        ("", ""),
        ("a/b/c", "a/b/c"),
        ("a/b\n", "a/b"),
        ("/", "/"),
        ("a/" + "b" * 5000, "a/bbb"),
    ],
)
async def test_a_bad_namespace(namespace: str, message: str) -> None:
    async with serving(lister()) as s, await s.client() as client:
        error = await refused(client, commands.get_topics(5, namespace))
        assert (error.request_id, error.error) == (5, ServerError.InvalidTopicName)
        assert message in error.message
        assert len(error.message) < 1000


@pytest.mark.parametrize("pattern", ["(", "a)", "[", "a\\", "**", r"\C", "x)|(?:.*", "http://a/b/c", "*"])
async def test_a_bad_pattern(pattern: str) -> None:
    async with serving(lister()) as s, await s.client() as client:
        error = await refused(client, commands.get_topics(5, NAMESPACE, topics_pattern=pattern))
        assert (error.request_id, error.error) == (5, ServerError.MetadataError)
        assert "Invalid topics pattern" in error.message


@pytest.mark.parametrize("pattern", ["(?!test).*", "a++", r"\p{Alpha}+", "x" * 2000])
async def test_an_unsupported_pattern_is_an_error_by_setting(pattern: str) -> None:
    strict = PipelineOptions(unsupported="error")
    async with serving(lister(), pipeline_options=strict) as s, await s.client() as client:
        error = await refused(client, commands.get_topics(5, NAMESPACE, topics_pattern=pattern))
        assert (error.request_id, error.error) == (5, ServerError.MetadataError)
        assert error.message.startswith("Unsupported topics pattern")


async def test_a_mode_that_is_none() -> None:
    async with serving(lister()) as s, await s.client() as client:
        error = await refused(client, commands.get_topics(5, NAMESPACE, mode=3))
        assert (error.request_id, error.error) == (5, ServerError.NotAllowedError)


@pytest.mark.parametrize(
    "properties",
    [
        {f"k{number}": "v" for number in range(9)},
        {"key": "v" * 98},
        {"é" * 25: "é" * 26},
        {f"k{number}": "" for number in range(1001)},
        {f"k{number}": "v" * 100 for number in range(2000)},
        {"": "x" * 1_000_000},
    ],
)
async def test_too_many_or_too_large_properties(properties: dict[str, str]) -> None:
    options = PulsarOptions(bounds=RequestBounds(properties=8, property_bytes=100))
    async with serving(lister(), options=options) as s, await s.client() as client:
        error = await refused(client, commands.get_topics(5, NAMESPACE, properties=properties))
        assert (error.request_id, error.error) == (5, ServerError.NotAllowedError)
        fits = {f"k{number}": "12345678" for number in range(8)}
        assert (await client.ask(NAMESPACE, properties=fits)).topics


def _of_broker(name: str, request_id: int) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.Type.ValueType(BaseCommand.DESCRIPTOR.fields_by_name[name].number))
    body = getattr(command, name)
    for field in body.DESCRIPTOR.fields:
        if field.is_required:
            setattr(body, field.name, "x" if field.cpp_type == field.CPPTYPE_STRING else request_id)
    body.request_id = request_id
    return command


BROKER_COMMANDS = sorted(
    field.name
    for field in BaseCommand.DESCRIPTOR.fields
    if field.message_type is not None
    and "request_id" in field.message_type.fields_by_name
    and field.name
    not in ("getTopicsOfNamespace", "partitionMetadata", "lookupTopic", "getSchema", "watchTopicListClose")
)


@pytest.mark.parametrize("name", BROKER_COMMANDS)
async def test_what_belongs_to_a_broker_is_refused_by_its_request_id(name: str) -> None:
    async with serving(lister()) as s, await s.client() as client:
        error = await refused(client, commands.encode(_of_broker(name, 3)))
        assert (error.request_id, error.error) == (3, ServerError.NotAllowedError)
        if name in ("producer", "subscribe", "seek"):
            assert error.message.startswith(f"{name.upper()} belongs to a broker")


async def test_what_has_no_request_id_is_dropped() -> None:
    async with serving(lister()) as s, await s.client() as client:
        for kind in (BaseCommand.SEND, BaseCommand.FLOW, BaseCommand.ACK, BaseCommand.AUTH_CHALLENGE):
            command = BaseCommand(type=kind)
            name = BaseCommand.DESCRIPTOR.fields_by_number[int(kind)].name
            body = getattr(command, name)
            body.SetInParent()
            for field in body.DESCRIPTOR.fields:
                if field.is_required:
                    setattr(body, field.name, 1)
            await client.send(commands.encode(command))
        await client.ping()


async def test_a_frame_with_a_payload_does_not_disturb() -> None:
    async with serving(lister()) as s, await s.client() as client:
        send = commands.encode(BaseCommand(type=BaseCommand.NO_COMMAND))[8:]
        payload = b"\x0e\x01" + b"p" * 100_000
        total = 4 + len(send) + len(payload)
        await client.send(total.to_bytes(4, "big") + len(send).to_bytes(4, "big") + send + payload)
        await client.ping()


async def test_there_are_no_watchers_so_that_clients_poll() -> None:
    async with serving(lister()) as s, await s.client() as client:
        watch = _of_broker("watchTopicList", 4)
        error = await refused(client, commands.encode(watch))
        assert (error.request_id, error.error) == (4, ServerError.NotAllowedError)
        assert "Unable to create topic list watcher" in error.message
        await client.send(commands.encode(_of_broker("watchTopicListClose", 6)))
        assert (await client.receive()).success.request_id == 6


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_lister_fails(at_once: bool) -> None:
    source = lister(at_once=False)
    source.error = ListingFailed("the disk is gone", code=ServerError.PersistenceError)
    async with serving(source) as s, await s.client() as client:
        with pytest.raises(Refused, match=r"PersistenceError: the disk is gone"):
            await client.ask(NAMESPACE)
        source.error, source.at_once = None, at_once
        assert (await client.ask(NAMESPACE)).topics
        assert s.sample("listing_rejected_total", reason="failed") == 1


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_error_that_nobody_foresaw_is_an_error_and_no_end(at_once: bool) -> None:
    class Broken(MemoryLister):
        def _result(self, request: Any) -> Any:
            raise KeyError("a bug, with secrets")

    source = Broken(at_once=at_once)
    async with serving(source, internal_errors=True) as s, await s.client() as client:
        with pytest.raises(Refused, match=r"^MetadataError: Internal error: KeyError$"):
            await client.ask(NAMESPACE)
        await client.ping()
        assert [event["event"] for event in s.logs] == ["listing failed"]


# -- limits -----------------------------------------------------------------------------------------------------


LARGE = [f"persistent://{NAMESPACE}/{'x' * 1000}-{number:06d}" for number in range(5100)]


@pytest.mark.parametrize("version", ["Pulsar-Java-v4.2.4", "Pulsar-Go-0.15", "somebody", "", "pulsar-cpp-x"])
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
    room = len(commands.get_topics_response(1, [], topics_hash="00000000", filtered=False))
    for extra in (0, 1):
        name = f"persistent://{NAMESPACE}/"
        rest = [name + "a" * 100 + str(n) for n in range(80)]
        used = len(commands.get_topics_response(1, rest, topics_hash="00000000", filtered=False))
        last = name + "z" * (size - used - 3 - len(name) - 1 + extra)  # -1: both length prefixes grow
        exact = len(commands.get_topics_response(1, [*rest, last], topics_hash="00000000", filtered=False))
        last += "z" * (size - exact + extra)
        assert room < len(
            commands.get_topics_response(1, [*rest, last], topics_hash="00000000", filtered=False)
        )
        options = PulsarOptions(max_message_size=1000)
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
    options = PulsarOptions(max_message_size=10)
    async with serving(lister(names), options=options) as s, await s.client() as client:
        pattern = f"{NAMESPACE}/.-.*[02468]-x*"  # scattered rows: they take heap permits
        with pytest.raises(Refused, match=r"NotAllowedError"):
            await client.ask(NAMESPACE, pattern=pattern)
        assert s.permits.heap.acquired == 0


async def test_too_many_lookups() -> None:
    source = lister(at_once=False)
    source.gate.clear()
    options = PulsarOptions(concurrent_lookups=2)
    async with serving(source, options=options) as s, await s.client() as client, await s.client() as other:
        for number in range(2):
            await client.send(commands.get_topics(number, NAMESPACE))
        await eventually(lambda: s.server.slots.taken == 2)
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


async def test_one_connection_has_its_own_limit_of_requests() -> None:
    source = lister(at_once=False)
    source.gate.clear()
    async with serving(source, limits=PermitLimits(queue=0)) as s, await s.client() as client:
        await client.send(b"".join(commands.get_topics(number, NAMESPACE) for number in range(1001)))
        error = (await client.receive()).error
        assert (error.request_id, error.error) == (1000, ServerError.TooManyRequests)
        source.gate.set()
        answered = {(await client.receive()).getTopicsOfNamespaceResponse.request_id for _ in range(1000)}
        assert answered == set(range(1000))


async def test_no_heap_permits() -> None:
    limits = PermitLimits(heap=100_000, timeout=0.02)
    async with serving(lister(at_once=False), limits=limits) as s, await s.client() as client:
        held = await s.permits.heap.acquire(100_000)
        with pytest.raises(Refused, match=r"^TooManyRequests: Failed due to heap memory limit exceeded$"):
            await client.ask(NAMESPACE)
        held.release()
        assert (await client.ask(NAMESPACE)).topics


async def test_a_full_queue_for_heap_permits() -> None:
    limits = PermitLimits(heap=100_000, queue=1)
    async with serving(lister(at_once=False), limits=limits) as s, await s.client() as client:
        held = await s.permits.heap.acquire(100_000)
        for number in range(2):
            await client.send(
                commands.get_topics(number, NAMESPACE, topics_pattern=f"{NAMESPACE}/{number}.*")
            )
        error = (await client.receive()).error
        assert (error.request_id, error.error, error.message) == (
            1,
            ServerError.TooManyRequests,
            "Failed due to heap memory limit exceeded",
        )
        held.release()
        assert (await client.receive()).getTopicsOfNamespaceResponse.request_id == 0


async def test_no_direct_permits() -> None:
    names = [f"persistent://{NAMESPACE}/{number:05d}-{'x' * 50}" for number in range(2000)]
    limits = PermitLimits(timeout=0.02)
    async with serving(lister(names), limits=limits) as s, await s.client() as client:
        for budget, pattern in ((s.permits.direct, None), (s.permits.reserve, f"{NAMESPACE}/000.*")):
            held = await budget.acquire(budget.maximum)
            with pytest.raises(Refused, match=r"^TooManyRequests: Cannot acquire permits for direct memory$"):
                await client.ask(NAMESPACE, pattern=pattern)
            held.release()
            assert (await client.ask(NAMESPACE, pattern=pattern)).topics


async def test_the_time_budget() -> None:
    source = lister(at_once=False)
    source.gate.clear()
    options = PipelineOptions(time_budget=0.02)
    async with serving(source, pipeline_options=options) as s, await s.client() as client:
        with pytest.raises(Refused, match=r"TooManyRequests: The listing took longer than 0.02 s"):
            await client.ask(NAMESPACE)
        source.gate.set()
        s.pipeline.options = PipelineOptions()
        assert (await client.ask(NAMESPACE)).topics


# -- request ids and order --------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [True, False])
async def test_repeated_request_ids_are_legal(at_once: bool) -> None:
    async with serving(lister(at_once=at_once)) as s, await s.client() as client:
        await client.send(commands.get_topics(7, NAMESPACE) * 20)
        for _ in range(20):
            assert len(RawClient.answer(await client.receive(), 7).topics) == len(NAMES)


@pytest.mark.parametrize("request_id", [0, 1, 2**31, 2**63, 2**64 - 1])
async def test_any_request_id(request_id: int) -> None:
    async with serving(lister()) as s, await s.client() as client:
        await client.send(commands.get_topics(request_id, NAMESPACE))
        assert RawClient.answer(await client.receive(), request_id).topics


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


# -- what closes a connection -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        (TOO_LARGE_FOR_JAVA - 3).to_bytes(4, "big") + b"\0\0\0\x08",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"\0\0\0\x05\0\0\0\x01\xff",
        b"\0\0\0\x06\0\0\0\x02\x08\x20",
        b"\0\0\0\x08\0\0\0\xff" + b"\0" * 8,
        b"\0" * 100,
    ],
)
async def test_what_cannot_be_understood_closes_that_connection_alone(data: bytes) -> None:
    async with serving(lister()) as s, await s.client() as other:
        for handshake in (True, False):
            async with await s.client(handshake=handshake) as client:
                await client.send(data)
                assert await client.closed() == []
        assert s.sample("connections_closed_total", reason="bad_frame") == 2
        assert (await other.ask(NAMESPACE)).topics


async def test_the_largest_frame_is_read() -> None:
    async with serving(lister()) as s, await s.client() as client:
        empty = len(commands.get_topics(1, NAMESPACE, topics_pattern=""))
        pattern = "x" * (TOO_LARGE_FOR_JAVA - empty - 9)
        frame = commands.get_topics(1, NAMESPACE, topics_pattern=pattern)
        assert TOO_LARGE_FOR_JAVA - 4 < len(frame) <= TOO_LARGE_FOR_JAVA
        await client.send(frame)
        assert not RawClient.answer(await client.receive(), 1).filtered


async def test_a_silent_peer_is_asked_and_then_closed() -> None:
    async with serving(lister()) as s, await s.client() as client:
        for _ in range(3):
            s.keep_alive()
            assert (await client.receive()).type == BaseCommand.PING
            await client.send(commands.pong())
            await client.ping()  # so the PONG was heard
        s.keep_alive()
        s.keep_alive()  # nothing came in between
        assert [each.type for each in await client.closed()] == [BaseCommand.PING]
        assert s.sample("connections_closed_total", reason="keep_alive") == 1


async def test_the_keep_alive_runs_by_itself() -> None:
    async with serving(lister(), options=PulsarOptions(keep_alive=0.02)) as s:
        client = await s.client(handshake=False)
        assert await client.closed() == []


async def test_anything_that_is_heard_is_a_sign_of_life() -> None:
    async with serving(lister()) as s, await s.client() as client:
        for number in range(4):
            s.keep_alive()
            assert (await client.receive()).type == BaseCommand.PING
            await client.send(commands.get_topics(number, NAMESPACE))
            assert (await client.receive()).type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE


async def test_a_client_that_knows_no_ping_is_left_alone() -> None:
    async with serving(lister()) as s, await s.client(handshake=False) as old:
        await old.send(commands.connect("old", protocol_version=0))
        assert (await old.receive()).connected.protocol_version == 0
        for _ in range(3):
            s.keep_alive()
        assert (await old.ask(NAMESPACE)).topics


async def test_whoever_does_not_connect_is_closed() -> None:
    async with serving(lister()) as s, await s.client(handshake=False) as client:
        await client.ping()
        s.keep_alive()
        assert await client.closed() == []
        assert s.sample("connections_closed_total", reason="handshake") == 1


async def test_a_ping_does_not_wait_behind_requests_that_wait() -> None:
    async with serving(lister(at_once=False)) as s, await s.client() as client:
        held = await s.permits.heap.acquire(s.permits.heap.maximum)
        await client.send(b"".join(commands.get_topics(number, NAMESPACE) for number in range(50)))
        await client.ping()
        held.release()
        for _ in range(50):
            assert (await client.receive()).type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE


# -- lookups ----------------------------------------------------------------------------------------------------


class Lookups:
    """Answers as a test says."""

    feature_flags = FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)

    def __init__(self) -> None:
        self.frame = b""
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def answer(self, command: BaseCommand, asker: Asker, /) -> bytes:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.frame


async def test_a_lookup_is_answered_and_a_large_answer_takes_permits() -> None:
    lookups = Lookups()
    schema = BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE)
    schema.getSchemaResponse.request_id, schema.getSchemaResponse.error_message = 3, "s" * 3_000_000
    lookups.frame = commands.encode(schema)
    async with (
        serving(lister(), lookups=lookups, limits=PermitLimits(timeout=0.02)) as s,
        await s.client() as client,
    ):
        await client.send(commands.get_schema(3, "t"))
        assert await client.receive() == schema
        held = await s.permits.direct.acquire(s.permits.direct.maximum)
        await client.send(commands.get_schema(4, "t"))
        answer = (await client.receive()).getSchemaResponse
        assert (answer.request_id, answer.error_code) == (4, ServerError.MetadataError)
        held.release()
        await client.ping()


async def test_a_lookup_that_fails_in_a_way_that_nobody_foresaw_is_answered() -> None:
    lookups = Lookups()
    lookups.error = KeyError("bug")
    async with serving(lister(), lookups=lookups, internal_errors=True) as s, await s.client() as client:
        await client.send(commands.lookup(4, "t"))
        answer = (await client.receive()).lookupTopicResponse
        assert (answer.request_id, answer.error) == (4, ServerError.MetadataError)
        await client.ping()
        assert [event["event"] for event in s.logs] == ["lookup failed"]


async def test_a_lookup_whose_client_goes_is_given_up() -> None:
    lookups = Lookups()
    lookups.gate.clear()
    async with serving(lister(), lookups=lookups) as s:
        client = await s.client()
        await client.send(commands.lookup(4, "t"))
        await eventually(lambda: s.server.slots.taken == 1)
        client.close()
        await s.nothing_held()
