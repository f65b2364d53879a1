from __future__ import annotations

import pytest

from broker_core.memory.permit_errors import (
    PermitCancelled,
    PermitError,
    PermitQueueFull,
    PermitsClosed,
    PermitTimeout,
)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (PermitTimeout, "timed out"),
        (PermitQueueFull, "queue is full"),
        (PermitCancelled, "was cancelled"),
        (PermitsClosed, "is closed"),
    ],
)
def test_each_says_what_happened(kind: type[PermitError], words: str) -> None:
    with pytest.raises(PermitError, match=words):
        raise kind
