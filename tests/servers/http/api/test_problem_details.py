from __future__ import annotations

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from structlog.testing import capture_logs

from broker_core.catalog import (
    CatalogBusy,
    CatalogError,
    CatalogFull,
    CatalogReadOnly,
    CatalogUnusable,
    ImportRefused,
    PartitionCountRefused,
    PreconditionFailed,
    TopicInvalid,
)
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.guards import Deletions, MassDeletion
from broker_core.servers.http.api.problem_details import problem_of, problem_response, refused

PATH = "/var/lib/topics.sqlite"
REQUEST = make_mocked_request("GET", "/v1/x")


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        (Cause.PATTERN, 400),
        (Cause.QUEUE, 503),
        (Cause.TIME, 504),
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


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (TopicInvalid("said"), 400, "said"),
        (PartitionCountRefused("said", 1), 409, "said"),
        (PreconditionFailed("said"), 412, "said"),
        (CatalogBusy(PATH), 503, "try again later"),
        (CatalogReadOnly(PATH), 403, "can only be read"),
        (CatalogFull(PATH), 507, "disk of the catalogue is full"),
        (CatalogUnusable(PATH), 500, "cannot be written"),
    ],
)
def test_a_change_that_failed_says_why_and_names_no_file(error: CatalogError, status: int, said: str) -> None:
    problem = problem_of(error, REQUEST)
    assert (problem.status, problem.cause) == (status, error.cause)
    assert said in problem.detail
    assert PATH not in problem.detail
    assert dict(problem.headers) == ({"Retry-After": "1"} if status == 503 else {})


def test_numbers_of_a_change_are_members() -> None:
    line = problem_of(ImportRefused(7, "it is empty"), REQUEST)
    assert (line.status, line.detail, line.more) == (400, "line 7 of the body: it is empty", {"line": 7})
    with pytest.raises(MassDeletion) as refused:
        Deletions(1).check({"a/b": (10, 3)}, "--dry-run shows them")
    problem = problem_of(refused.value, REQUEST)
    assert (problem.status, problem.more) == (409, {"there": 10, "deletions": 3})
    assert problem.detail.endswith("nothing was written; max_deletions=3 allows it")
    assert "--" not in problem.detail


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
