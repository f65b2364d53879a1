"""The statuses of HTTP."""

from __future__ import annotations

from http import HTTPStatus

from broker_core.errors import Cause
from broker_core.servers.http.status_codes import STATUS_CODES


def test_each_cause_has_a_status_of_an_error() -> None:
    assert set(STATUS_CODES) == set(Cause)
    assert all(HTTPStatus(status) >= 400 for status in STATUS_CODES.values())
    assert (STATUS_CODES[Cause.DENIED], STATUS_CODES[Cause.UNAUTHENTICATED]) == (403, 401)
