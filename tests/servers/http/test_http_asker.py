from __future__ import annotations

from aiohttp.test_utils import make_mocked_request

from broker_core.servers.http.http_asker import asker_of


def test_a_request_comes_from_nobody_until_it_is_known_who_asks() -> None:
    asker = asker_of(make_mocked_request("GET", "/questions", headers={"User-Agent": "x" * 300}))
    assert (asker.role, asker.original_principal, asker.transport) == (None, None, "http")
    assert asker.client_version == "x" * 256
