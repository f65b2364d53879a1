"""The statuses of HTTP."""

from __future__ import annotations

from http import HTTPStatus

from broker_core.errors import Cause
from broker_core.servers.http.status_codes import STATUSES


def test_each_cause_has_a_status_of_an_error() -> None:
    assert set(STATUSES) == set(Cause)
    assert all(HTTPStatus(status) >= 400 for status in STATUSES.values())
    assert (STATUSES[Cause.DENIED], STATUSES[Cause.UNAUTHENTICATED]) == (403, 401)
