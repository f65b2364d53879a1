"""Errors in the form of a broker."""

from __future__ import annotations

import json

from broker_core.errors import Cause
from broker_core.servers.http.admin.reason_errors import reason_response
from broker_core.servers.http.api.problem_details import Problem


def test_the_detail_is_the_reason() -> None:
    response = reason_response(Problem(503, "later", Cause.QUEUE, {"Retry-After": "1"}))
    assert response.status == 503
    assert response.headers["Retry-After"] == "1"
    assert response.text is not None
    assert json.loads(response.text) == {"reason": "later"}


def test_several_challenges_stay() -> None:
    challenges = (("WWW-Authenticate", "Bearer"), ("WWW-Authenticate", "Basic"))
    response = reason_response(Problem(401, "who?", Cause.UNAUTHENTICATED, challenges))
    assert response.headers.getall("WWW-Authenticate") == ["Bearer", "Basic"]


def test_a_bad_name_is_412() -> None:
    assert reason_response(Problem(400, "no name", Cause.NAME)).status == 412
