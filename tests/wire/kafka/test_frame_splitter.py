from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.wire.kafka import FrameSplitter, MalformedMessage


@given(st.lists(st.binary(min_size=8, max_size=40)), st.data())
def test_frames_come_out_however_the_stream_is_cut(messages: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(len(message).to_bytes(4, "big") + message for message in messages)
    splitter = FrameSplitter(40)
    found: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == messages
    assert splitter.buffered == 0


def test_a_tls_handshake_is_named() -> None:
    splitter = FrameSplitter(1000)
    with pytest.raises(MalformedMessage, match="TLS handshake"):
        splitter.feed((8).to_bytes(4, "big") + bytes(8) + b"\x16\x03\x01\x02\x00\x01\x00")
    with pytest.raises(MalformedMessage, match="from 8 to 1000"):
        splitter.feed(b"\x17\x03\x01\x02")


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x07"])
def test_a_length_that_no_request_has_is_malformed(length: bytes) -> None:
    splitter = FrameSplitter(1000)
    with pytest.raises(MalformedMessage):
        splitter.feed(length)
    assert splitter.buffered == 0
