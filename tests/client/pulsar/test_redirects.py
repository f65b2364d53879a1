"""Redirects of lookups; those of real connections are in tests/upstream/pulsar/test_broker_lookups.py."""

from __future__ import annotations

import pytest

from broker_core.client import UnexpectedAnswer
from broker_core.client.pulsar.redirects import broker_url, follow_redirects
from broker_core.wire.pulsar import BaseCommand, CommandLookupTopicResponse


def answer(
    *, plain: str = "", tls: str = "", redirect: bool = True, authoritative: bool = False
) -> BaseCommand:
    command = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
    body = command.lookupTopicResponse
    body.request_id = 0
    body.brokerServiceUrl, body.brokerServiceUrlTls, body.authoritative = plain, tls, authoritative
    body.response = CommandLookupTopicResponse.Redirect if redirect else CommandLookupTopicResponse.Connect
    return command


async def test_each_broker_is_asked_with_the_authority_that_the_one_before_it_told() -> None:
    answers = [
        answer(plain="pulsar://b:1"),
        answer(plain="pulsar://c:1", authoritative=True),
        answer(plain="pulsar://d:1", redirect=False),
    ]
    asked: list[tuple[str | None, bool | None]] = []

    async def send(address: str | None, authoritative: bool | None) -> BaseCommand:
        asked.append((address, authoritative))
        return answers[len(asked) - 1]

    followed: list[None] = []
    found = await follow_redirects(send, is_tls=False, redirected=lambda: followed.append(None))
    assert found.lookupTopicResponse.brokerServiceUrl == "pulsar://d:1"
    assert asked == [(None, None), ("pulsar://b:1", False), ("pulsar://c:1", True)]
    assert len(followed) == 2


def test_by_tls_the_address_for_tls_is_asked_and_never_another() -> None:
    both = answer(plain="pulsar://b:6650", tls="pulsar+ssl://b:6651").lookupTopicResponse
    assert broker_url(both, is_tls=True) == "pulsar+ssl://b:6651"
    assert broker_url(both, is_tls=False) == "pulsar://b:6650"
    for wrong in (answer(plain="pulsar://b:6650"), answer(plain="pulsar://b:6650", tls="pulsar://b:6650")):
        with pytest.raises(UnexpectedAnswer, match="a TLS address is needed"):
            broker_url(wrong.lookupTopicResponse, is_tls=True)
