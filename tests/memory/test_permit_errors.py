from __future__ import annotations

import pytest

from broker_core.errors import Cause
from broker_core.memory.permit_errors import (
    PermitCancelled,
    PermitError,
    PermitQueueFull,
    PermitsClosed,
    PermitTimeout,
    permits_refused,
)


@pytest.mark.parametrize(
    ("kind", "words", "heap", "direct"),
    [
        (PermitTimeout, "timed out", "heap_timeout", "direct_timeout"),
        (PermitQueueFull, "queue is full", "heap_queue", "direct"),
        (PermitCancelled, "was cancelled", "heap", "direct"),
        (PermitsClosed, "is closed", "heap", "direct"),
    ],
)
def test_each_says_what_happened(kind: type[PermitError], words: str, heap: str, direct: str) -> None:
    with pytest.raises(PermitError, match=words) as raised:
        raise kind
    refused = [permits_refused("heap", raised.value), permits_refused("direct", raised.value)]
    assert [each.reason for each in refused] == [heap, direct]
    assert {each.cause for each in refused} == {Cause.QUEUE if kind is PermitQueueFull else Cause.PERMITS}
    assert permits_refused("snapshot_memory", raised.value).reason == "snapshot_memory"
