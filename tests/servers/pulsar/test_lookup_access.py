"""The action and the topic of a lookup command, for gates."""

from __future__ import annotations

import pytest

from broker_core.access.asker import ACTIONS, Asker
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.servers.pulsar.lookup_job import lookup_access, topic_of
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder
from broker_core.wire.pulsar.lookup_commands import LOOKUP_COMMANDS
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand

ASKER = Asker(role="alice")


def command(frame: bytes) -> BaseCommand:
    (raw,) = FrameDecoder(1 << 20).feed(frame)
    return commands.decode(raw)


def about(topic: str) -> list[BaseCommand]:
    return [
        command(commands.partitioned_metadata(1, topic)),
        command(commands.lookup(1, topic)),
        command(commands.get_schema(1, topic)),
        command(commands.get_or_create_schema(1, topic, b"")),
    ]


def test_each_command_has_an_action_of_its_own() -> None:
    asked = about("persistent://acme/orders/x-partition-3")
    assert {each.type for each in asked} == set(LOOKUP_COMMANDS)
    wanted = [lookup_access(each, ASKER) for each in asked]
    assert [access.action for access in wanted] == ["describe", "lookup", "schema", "put_schema"]
    assert {access.action for access in wanted} | {"list", "admin"} == set(ACTIONS)  # those ask for no topic
    for access in wanted:
        assert (str(access.namespace), str(access.topic)) == (
            "acme/orders",
            "persistent://acme/orders/x-partition-3",
        )
        assert access.asker is ASKER


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("x", "persistent://public/default/x"),
        ("acme/orders/x", "persistent://acme/orders/x"),
        ("non-persistent://acme/orders/x", "non-persistent://acme/orders/x"),
    ],
)
def test_short_names_are_those_of_the_broker(short: str, full: str) -> None:
    assert {str(topic_of(each)) for each in about(short)} == {full}


@pytest.mark.parametrize("name", ["persistent://acme/x", "a/b", "http://acme/orders/x", "a/b/c/d", ""])
def test_a_topic_of_no_namespace_passes_no_gate(name: str) -> None:
    for each in about(name):
        with pytest.raises(InvalidName):
            topic_of(each)
        with pytest.raises(ListingFailed) as caught:
            lookup_access(each, ASKER)
        assert caught.value.cause is Cause.NAME
