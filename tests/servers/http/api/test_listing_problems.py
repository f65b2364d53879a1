"""Listings that HTTP refuses, and answers that it cannot send."""

from __future__ import annotations

import pytest

from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.pipeline import Answer
from broker_core.servers.http.api.listing_problems import sending
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from tests.support.api_serving import NAMESPACE, ApiServed


def answer(ends: list[ListingFailed | None]) -> Answer:
    return Answer(None, "hash", False, "catalog", "none", on_release=(ends.append,))


def test_what_was_sent_has_no_failure() -> None:
    ends: list[ListingFailed | None] = []
    with sending(answer(ends)):
        pass
    assert ends == [None]


def test_a_client_that_is_gone_is_no_failure() -> None:
    ends: list[ListingFailed | None] = []
    with pytest.raises(ConnectionError), sending(answer(ends)):
        raise ConnectionResetError
    assert ends == [None]


def test_what_cannot_be_sent_is_told_once() -> None:
    ends: list[ListingFailed | None] = []
    failure = TooManyRequests("no", reason="direct")
    with pytest.raises(TooManyRequests), sending(answer(ends)):
        raise failure
    assert ends == [failure]
    assert failure.reported


def test_what_http_refuses_and_what_nobody_foresaw_have_a_reason() -> None:
    ends: list[ListingFailed | None] = []
    with pytest.raises(RequestRefused) as caught, sending(answer(ends)):
        raise refused(406, "no")
    assert caught.value.reported
    with pytest.raises(KeyError), sending(answer(ends)):
        raise KeyError
    assert [end and end.reason for end in ends] == ["bad_request", "internal"]


async def test_a_request_without_a_place_is_a_listing_that_was_refused(served: ApiServed) -> None:
    servers = served.broker._http_servers
    assert servers is not None
    servers._services.admission.drain()
    assert (await served.ask(f"{NAMESPACE}/topics")).status == 503
    assert served.sample("listing_rejected_total", reason="failed") == 1
    assert served.sample("listing_errors_sent_total", reason="failed") == 1
    assert served.sample("listing_seconds_count") == 1


async def test_a_refusal_of_the_pipeline_is_counted_once(served: ApiServed) -> None:
    assert (await served.ask(f"{NAMESPACE}/topics?pattern=(" + "a" * 100)).status == 400
    assert served.sample("listing_rejected_total", reason="bad_pattern") == 1
    assert served.sample("listing_errors_sent_total", reason="bad_pattern") == 1
    assert served.sample("listing_requests_total", outcome="error", plan="unknown") == 1
