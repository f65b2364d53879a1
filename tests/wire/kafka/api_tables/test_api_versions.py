from __future__ import annotations

import pytest

from broker_core.wire.kafka import API_VERSIONS, read_response, response_frame


@pytest.mark.parametrize("version", range(5))
def test_an_answer_is_read_as_written_in_every_version(version: int) -> None:
    keys = [{"api_key": 18, "min_version": 0, "max_version": 4}]
    frame = b"".join(response_frame(API_VERSIONS, version, 1, {"api_keys": keys}))
    assert read_response(API_VERSIONS, version, frame[4:])[1]["api_keys"] == keys
