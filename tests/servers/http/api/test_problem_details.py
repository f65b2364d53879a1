from __future__ import annotations

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from structlog.testing import capture_logs

from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.servers.http.api.problem_details import problem_of, problem_response, refused

REQUEST = make_mocked_request("GET", "/v1/x")


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (Cause.PATTERN, 400),
        (Cause.NAME, 400),
        (Cause.UNAUTHENTICATED, 401),
        (Cause.DENIED, 403),
        (Cause.NOT_FOUND, 404),
        (Cause.TOO_LARGE, 413),
        (Cause.PERMITS, 503),
        (Cause.QUEUE, 503),
        (Cause.TIME, 504),
        (Cause.UPSTREAM, 502),
        (Cause.PLUGIN, 502),
    ],
)
def test_a_failure_has_the_status_of_its_cause(cause: Cause, status: int) -> None:
    response = problem_response(problem_of(ListingFailed("in words", cause=cause), REQUEST))
    assert (response.status, response.content_type) == (status, "application/problem+json")
    assert json.loads(response.text or "") == {
        "type": "about:blank",
        "title": response.reason,
        "status": status,
        "detail": "in words",
        "cause": cause.name,
    }
    assert ("Retry-After" in response.headers) == (status == 503)


def test_a_limit_that_was_reached_says_when_to_ask_again() -> None:
    problem = problem_of(TooManyRequests("full", reason="heap"), REQUEST)
    assert (problem.status, dict(problem.headers)) == (503, {"Retry-After": "1"})


def test_a_refusal_is_told_as_it_is() -> None:
    error = refused(409, "too many deletions", deletions=7)
    response = problem_response(problem_of(error, REQUEST))
    content = json.loads(response.text or "")
    assert (content["status"], content["title"], content["deletions"]) == (409, "Conflict", 7)
    assert content["cause"] == "CONFLICT"


def test_a_status_without_a_cause_of_its_own_has_one() -> None:
    causes = {
        status: problem_of(raised, REQUEST).cause
        for status, raised in (
            (412, refused(412, "x")),
            (406, refused(406, "x")),
            (417, web.HTTPExpectationFailed()),
            (505, web.HTTPVersionNotSupported()),
        )
    }
    assert causes == {
        412: Cause.PRECONDITION,
        406: Cause.BAD_REQUEST,
        417: Cause.BAD_REQUEST,
        505: Cause.INTERNAL,
    }


def test_challenges_and_allowed_methods_are_kept() -> None:
    headers = [("WWW-Authenticate", "Bearer"), ("WWW-Authenticate", "Basic")]
    response = problem_response(problem_of(web.HTTPUnauthorized(headers=headers), REQUEST))
    assert response.headers.getall("WWW-Authenticate") == ["Bearer", "Basic"]
    response = problem_response(problem_of(web.HTTPMethodNotAllowed("GET", ["PUT", "HEAD"]), REQUEST))
    assert response.headers["Allow"] == "HEAD, PUT"


def test_a_mistake_is_not_told() -> None:
    with capture_logs() as logs:
        problem = problem_of(RuntimeError("a secret"), REQUEST)
    assert (problem.status, problem.cause) == (500, Cause.INTERNAL)
    assert "secret" not in problem.detail
    assert len(logs) == 1
