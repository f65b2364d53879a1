from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request

from broker_core.servers.http.api.etag import etag, held_etags, holds


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        (None, ()),
        ('W/"e4a876e3"', ("e4a876e3",)),
        ('"e4a876e3"', ("e4a876e3",)),
        ('W/"a-1", "b" ,W/"c,d"', ("a-1", "b", "c,d")),
        ("*", ()),
        ("e4a876e3", ()),
        ('""', ("",)),
    ],
)
def test_the_tags_that_a_client_has(header: str | None, tags: tuple[str, ...]) -> None:
    headers = {} if header is None else {"If-None-Match": header}
    request = make_mocked_request("GET", "/", headers=headers)
    assert held_etags(request) == tags
    assert all(holds(request, tag) for tag in tags)
    assert not holds(request, "other")


def test_tags_are_weak_and_few_are_looked_at() -> None:
    assert etag("e4a876e3") == 'W/"e4a876e3"'
    request = make_mocked_request("GET", "/", headers={"If-None-Match": '"a",' * 1000})
    assert len(held_etags(request)) == 32
