"""Head, encoded topics and tail equal the frame that protobuf makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.wire.pulsar.commands import decode, get_topics_response_head
from broker_core.wire.pulsar.frames import FrameDecoder, FrameError
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, CommandGetTopicsOfNamespaceResponse
from tests.support.topics_answers import get_topics_response

names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), max_size=20)


@given(
    st.integers(0, 2**64 - 1),
    names,
    st.none() | st.text("0123456789abcdef", max_size=200),
    st.booleans(),
    st.booleans(),
)
def test_what_protobuf_makes(
    request_id: int, topics: list[str], topics_hash: str | None, filtered: bool, changed: bool
) -> None:
    body = CommandGetTopicsOfNamespaceResponse(
        request_id=request_id, topics=topics, filtered=filtered, topics_hash=topics_hash, changed=changed
    )
    whole = get_topics_response(
        request_id, topics, topics_hash=topics_hash, filtered=filtered, changed=changed
    )
    (command,) = FrameDecoder(1 << 20).feed(whole)
    expected = BaseCommand(
        type=BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, getTopicsOfNamespaceResponse=body
    )
    assert command == expected.SerializeToString(deterministic=True)
    assert decode(command) == expected


def test_more_than_the_protocol_carries() -> None:
    with pytest.raises(FrameError, match="over the protocol's limit"):
        get_topics_response_head(1, 2**31, topics_hash=None, filtered=False)
