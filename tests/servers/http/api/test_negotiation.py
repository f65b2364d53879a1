from __future__ import annotations

from contextlib import suppress

import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from broker_core.servers.http.api.negotiation import chosen_type, takes_gzip
from broker_core.servers.http.api.problem_details import RequestRefused

OFFERED = ("application/json", "application/x-ndjson", "text/plain")
JSON, NDJSON, TEXT = OFFERED


def chosen(*accept: str) -> str:
    headers = CIMultiDict([("Accept", each) for each in accept])
    return chosen_type(make_mocked_request("GET", "/", headers=headers), OFFERED)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ((), JSON),
        (("",), JSON),
        (("*/*",), JSON),
        (("text/*",), TEXT),
        (("text/html, application/xhtml+xml, */*;q=0.8",), JSON),
        (("application/x-ndjson, */*",), NDJSON),
        (("application/json;q=0.5, text/plain;q=0.6",), TEXT),
        (("application/json;q=0.5", "text/plain;q=0.6"), TEXT),
        (("application/json;q=0, */*",), NDJSON),
        (("TEXT/PLAIN; charset=utf-8",), TEXT),
        (("text/plain;q=1.0;x=y",), TEXT),
        (("text/plain;q=2, application/json;q=0.001",), JSON),
        (("text/plain , application/json",), JSON),
    ],
)
def test_the_preferred_form(accept: tuple[str, ...], expected: str) -> None:
    assert chosen(*accept) == expected


@pytest.mark.parametrize("accept", ["image/png", "*/*;q=0", "application/json;q=0", "text/plain;q=x"])
def test_a_client_that_takes_none(accept: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        chosen(accept)
    assert refused.value.problem.status == 406
    assert "application/x-ndjson" in refused.value.problem.detail


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E)))
def test_any_header_is_an_answer_or_a_406(accept: str) -> None:
    with suppress(RequestRefused):
        assert chosen(accept) in OFFERED


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("*", True),
        ("gzip;q=0, *", False),
        ("identity, gzip;q=0.5", False),
        ("identity;q=0.5, gzip;q=0.5", True),
        ("deflate", False),
        ("X-GZIP", True),
    ],
)
def test_gzip(header: str | None, expected: bool) -> None:
    headers = {} if header is None else {"Accept-Encoding": header}
    assert takes_gzip(make_mocked_request("GET", "/", headers=headers)) is expected
