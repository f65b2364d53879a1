"""The messages of watchers, against those of protobuf."""

from __future__ import annotations

import pytest

from broker_core.listing.listing import Listing
from broker_core.listing.selections.selection_search import tagged_fields
from broker_core.names import Mode
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import HEADER_SIZE, FrameError
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from broker_core.wire.pulsar.watch_commands import (
    OTHER_TAG,
    watch_success_head,
    watch_unchanged,
    watch_update,
    watch_update_body,
)

NAMES = [f"persistent://a/b/{'x' * number}ä" for number in range(1, 200, 9)]
LISTING = Listing.from_names("a/b", Mode.PERSISTENT, NAMES).all()


def other(low: int, high: int) -> bytes:
    return bytes(tagged_fields(LISTING.range(low, high), OTHER_TAG).read_all())


@pytest.mark.parametrize("watcher_id", [0, 7, 300, 2**63 + 1])
def test_success_is_what_protobuf_writes(watcher_id: int) -> None:
    for count in (0, 1, len(LISTING)):
        fields = other(0, count)
        head, tail = watch_success_head(2**64 - 1, watcher_id, len(fields), "0123abcd")
        decoded = commands.decode((head + fields + tail)[HEADER_SIZE:])
        body = decoded.watchTopicListSuccess
        assert decoded.type == BaseCommand.WATCH_TOPIC_LIST_SUCCESS
        assert (body.request_id, body.watcher_id, body.topics_hash) == (2**64 - 1, watcher_id, "0123abcd")
        assert list(body.topic) == LISTING.names.to_pylist()[:count]
        assert head + fields + tail == commands.encode(decoded)
    assert watch_unchanged(300, watcher_id, "0123abcd") == b"".join(
        watch_success_head(300, watcher_id, 0, "0123abcd")
    )


@pytest.mark.parametrize("watcher_id", [0, 7, 300, 2**63 + 1])
def test_an_update_is_what_protobuf_writes(watcher_id: int) -> None:
    added = bytes(LISTING.range(0, 3).body())
    frame = watch_update(watcher_id, watch_update_body(added, other(3, 5), "89abcdef"))
    decoded = commands.decode(frame[HEADER_SIZE:])
    body = decoded.watchTopicUpdate
    assert decoded.type == BaseCommand.WATCH_TOPIC_UPDATE
    assert (body.watcher_id, body.topics_hash) == (watcher_id, "89abcdef")
    assert list(body.new_topics) == LISTING.names.to_pylist()[:3]
    assert list(body.deleted_topics) == LISTING.names.to_pylist()[3:5]
    assert frame == commands.encode(decoded)


def test_what_no_frame_can_carry_is_an_error() -> None:
    with pytest.raises(FrameError):
        watch_success_head(1, 1, 2**31, "00000000")
