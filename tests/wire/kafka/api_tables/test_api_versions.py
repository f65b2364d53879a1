from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.wire.kafka import API_VERSIONS, Api, read_response, response_frame
from tests.support.kafka_values import EXAMPLES, assert_read_as_written, messages, versions_of


@pytest.mark.parametrize("version", range(5))
def test_an_answer_is_read_as_written_in_every_version(version: int) -> None:
    keys = [{"api_key": 18, "min_version": 0, "max_version": 4}]
    frame = b"".join(response_frame(API_VERSIONS, version, 1, {"api_keys": keys}))
    assert read_response(API_VERSIONS, version, frame[4:])[1]["api_keys"] == keys


@pytest.mark.parametrize(("api", "version"), versions_of(API_VERSIONS))
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_messages_are_read_as_written_in_every_version(api: Api, version: int, data: st.DataObject) -> None:
    assert_read_as_written(api, version, *data.draw(messages(api, version)))
