from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from broker_core.servers.kafka.requests.call import CloseClient
from broker_core.servers.kafka.row_error import MOST_CHANGES, ChangeRefused
from broker_core.wire.kafka import DELETE_TOPICS
from tests.support.kafka_calls import call_of, services_of


def test_a_client_is_closed_for_a_reason_of_the_metrics() -> None:
    assert CloseClient("why").reason == "unanswered"


async def test_a_request_that_changes_something_is_bounded_and_needs_a_catalogue() -> None:
    with pytest.raises(ChangeRefused, match="changes none"):
        call_of(DELETE_TOPICS, 6).changes()
    changes: Any = object()
    call = call_of(DELETE_TOPICS, 6, services=replace(services_of(), changes=changes))
    assert call.changes(MOST_CHANGES) is changes
    with pytest.raises(ChangeRefused, match="large batch"):
        call.changes(MOST_CHANGES + 1)
