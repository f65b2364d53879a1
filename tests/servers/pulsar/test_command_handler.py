"""The answer to each command, by a handler without a socket, and mostly without an event loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import ServerError
from broker_core.servers.connection import Closing
from broker_core.servers.pulsar import PulsarOptions
from broker_core.servers.pulsar.listing_job import ListingJob
from broker_core.servers.pulsar.lookup_job import LookupJob
from broker_core.settings import PulsarSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameError
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, CommandConnect
from tests.support.connection_questions import of_broker
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_handlers import decoded, talk
from tests.support.pulsar_serving import serving
from tests.support.raw_client import Refused

NAMES = ["persistent://t/n/a", "persistent://t/n/b"]


def test_a_ping_is_answered_always() -> None:
    t = talk()
    assert t.answer(commands.ping()).type == BaseCommand.PONG
    t.connect()
    t.handler.draining = True
    assert t.answer(commands.ping()).type == BaseCommand.PONG


def test_a_pong_needs_no_answer() -> None:
    t = talk()
    assert t.say(commands.pong()) is None
    t.connect()
    assert t.say(commands.pong()) is None


def test_the_server_is_no_client_of_its_own() -> None:
    t = talk(options=PulsarOptions(own_client=lambda: "broker-core-1+ab"))
    refused = t.connect("broker-core-1+ab").error
    assert (refused.error, "is asked by a gateway" in refused.message) == (ServerError.NotAllowedError, True)
    assert t.connect("broker-core-1+cd").type == BaseCommand.CONNECTED


@pytest.mark.parametrize(("theirs", "agreed"), [(0, 0), (15, 15), (21, 21), (99, 21), (-5, 0)])
def test_connect_makes_a_stranger_a_client(theirs: int, agreed: int) -> None:
    seen: list[Asker] = []

    def identify(asker: Asker) -> Asker:
        seen.append(asker)
        return replace(asker, role="alice")

    options = PulsarOptions(PulsarSettings(max_message_size=1_234_567), server_version="broker-core 1")
    t = talk(options=options, identify=identify)
    assert t.handler.client == ""
    connected = t.connect("Pulsar-Java-v4.2.4", protocol_version=theirs).connected
    assert (connected.protocol_version, connected.server_version) == (agreed, "broker-core 1")
    assert connected.max_message_size == 1_234_567
    flags = {field.name for field, value in connected.feature_flags.ListFields() if value}
    assert flags == {"supports_get_partitioned_metadata_without_auto_creation"}
    assert t.handler.client == "Pulsar-Java-v4.2.4"
    assert [(asker.remote_address, asker.protocol_version) for asker in seen] == [("192.0.2.1:4711", agreed)]
    again = t.connect("another")
    assert again.error.message == "This connection is connected already"
    assert t.handler.client == "Pulsar-Java-v4.2.4"


def test_a_stranger_is_told_to_connect() -> None:
    t = talk(MemoryLister(NAMES))
    for frame in (commands.get_topics(8, "t/n"), commands.encode(of_broker("subscribe", 8))):
        error = t.answer(frame).error
        assert (error.request_id, error.error) == (8, ServerError.NotAllowedError)
        assert error.message == "Send CONNECT first"
    assert t.answer(commands.lookup(9, "persistent://t/n/a")).lookupTopicResponse.request_id == 9


def test_it_is_no_proxy() -> None:
    t = talk()
    body = CommandConnect(client_version="v", protocol_version=21, proxy_to_broker_url="pulsar://b:6650")
    error = t.answer(commands.encode(BaseCommand(type=BaseCommand.CONNECT, connect=body))).error
    assert "no proxy" in error.message
    assert t.handler.client == ""


async def test_a_small_listing_is_answered_at_once() -> None:
    t = talk(MemoryLister(NAMES))
    t.connect()
    job = t.say(commands.get_topics(7, "t/n"))
    assert isinstance(job, ListingJob)
    small = job.small_answer()
    assert small is not None
    answer = decoded(small).getTopicsOfNamespaceResponse
    assert (answer.request_id, sorted(answer.topics)) == (7, NAMES)
    job.release()


def test_a_listing_is_not_begun_while_all_places_are_taken() -> None:
    t = talk(MemoryLister(NAMES), places=1)
    t.connect()
    assert t.slots.take()
    job = t.say(commands.get_topics(7, "t/n"))
    assert isinstance(job, ListingJob)
    assert job.small_answer() is None


@pytest.mark.parametrize(
    "frame",
    [
        commands.partitioned_metadata(3, "t/n/a"),
        commands.lookup(3, "t/n/a"),
        commands.get_schema(3, "t/n/a"),
    ],
)
def test_lookups_are_jobs(frame: bytes) -> None:
    t = talk()
    t.connect()
    assert isinstance(t.say(frame), LookupJob)


def test_no_request_is_taken_while_the_server_stops() -> None:
    t = talk(MemoryLister(NAMES))
    t.connect()
    t.handler.draining = True
    for frame in (commands.get_topics(1, "t/n"), commands.lookup(2, "t/n/a"), commands.connect("v")):
        assert t.say(frame) is None


def test_what_is_no_command_is_a_bad_frame() -> None:
    t = talk()
    with pytest.raises(FrameError) as caught:
        t.handler.handle(b"\xff")
    assert t.handler.is_bad_frame(caught.value)
    assert not t.handler.is_bad_frame(KeyError("bug"))


def test_the_frames_of_a_client_are_bounded_by_the_largest_message() -> None:
    t = talk(options=PulsarOptions(PulsarSettings(max_message_size=1024)))
    splitter = t.handler.splitter()
    assert splitter.feed(commands.ping()) == [commands.ping()[8:]]
    with pytest.raises(FrameError, match="over the limit"):
        splitter.feed((1024 + 10 * 1024).to_bytes(4, "big") + b"\0\0\0\x08")


# -- keep-alive --------------------------------------------------------------------------------------------------


def test_who_does_not_connect_is_given_up() -> None:
    closing = talk().handler.tick(quiet=True)
    assert isinstance(closing, Closing)
    assert (closing.reason, closing.values) == ("handshake", {"waiting_for": "CONNECT"})


def test_a_silent_client_is_asked_then_given_up() -> None:
    t = talk()
    t.connect()
    asked = t.handler.tick(quiet=True)
    assert isinstance(asked, bytes)
    assert decoded(asked).type == BaseCommand.PING
    t.handler.has_received = True  # its PONG
    assert t.handler.tick(quiet=True) == asked
    closing = t.handler.tick(quiet=True)
    assert isinstance(closing, Closing)
    assert (closing.reason, closing.values) == ("keep_alive", {"waiting_for": "PONG"})


def test_nobody_is_asked_while_an_answer_is_on_its_way() -> None:
    t = talk()
    t.connect()
    t.handler.has_received = False
    assert t.handler.tick(quiet=False) is None


def test_a_client_that_knows_no_ping_is_left_alone() -> None:
    t = talk()
    t.connect("old", protocol_version=0)
    for _ in range(3):
        assert t.handler.tick(quiet=True) is None


@pytest.mark.parametrize(
    ("version", "answered"), [("Pulsar-Java-v4.2.4", True), ("Pulsar-Java-v3.0.7", False)]
)
async def test_a_listing_over_a_client_s_frame_goes_to_those_that_are_told_a_larger_one(
    version: str, answered: bool
) -> None:
    names = [f"persistent://public/default/{'x' * 900}{number}" for number in range(7000)]
    settings = PulsarSettings.model_validate({"advertise_frame": "auto"})
    options = PulsarOptions(pulsar=settings)
    async with serving(MemoryLister(names), options=options) as served:
        client = await served.client(handshake=False)
        await client.send(commands.connect(version))
        told = (await client.receive()).connected.max_message_size
        if answered:
            assert told == settings.max_listing
            assert len((await client.ask()).topics) == len(names)
        else:
            assert told == settings.max_message_size
            with pytest.raises(Refused) as refused:
                await client.ask()
            assert refused.value.code is ServerError.NotAllowedError
