from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.wire.kafka import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS, Api
from tests.support.kafka_values import EXAMPLES, assert_read_as_written, messages, versions_of


@pytest.mark.parametrize(("api", "version"), versions_of(ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS))
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_messages_are_read_as_written_in_every_version(api: Api, version: int, data: st.DataObject) -> None:
    assert_read_as_written(api, version, *data.draw(messages(api, version)))
