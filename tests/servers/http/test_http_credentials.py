from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request

from broker_core.servers.http.http_credentials import challenges, read_credentials


@pytest.mark.parametrize(
    ("header", "method", "data"),
    [
        ("Bearer aaa.bbb.ccc", "token", b"aaa.bbb.ccc"),
        ("bearer  aaa ", "token", b"aaa"),
        ("Basic YWxpY2U6cHc6eA==", "basic", b"alice:pw:x"),
        ("Basic not base64", "basic", b""),
        ("Basic \udcff", "basic", b""),
        ("Basic", "basic", b""),
        ("Bearer", "token", b""),
        ("", "", b""),
        ("Negotiate abc", "negotiate", b"abc"),
        ("Bearer \udcff", "token", b"\xff"),
    ],
)
def test_a_header_is_a_method_and_its_data(
    monkeypatch: pytest.MonkeyPatch, header: str, method: str, data: bytes
) -> None:
    request = make_mocked_request("GET", "/plugins")
    monkeypatch.setattr(request, "_headers", {"Authorization": header})
    assert read_credentials(request, None) == (method, data)
    assert read_credentials(request, "of a certificate") == (method, data)


def test_a_certificate_counts_without_a_header() -> None:
    request = make_mocked_request("GET", "/plugins")
    assert read_credentials(request, "alice") == ("tls", b"")
    assert read_credentials(request, None) == (None, b"")


@pytest.mark.parametrize(
    ("methods", "schemes"),
    [
        (["token"], ["Bearer"]),
        (["basic"], ["Basic"]),
        (["tls", "basic", "token"], ["Bearer", "Basic"]),
        (["tls"], ["Bearer"]),
        ([], ["Bearer"]),
    ],
)
def test_a_challenge_names_what_clients_know(methods: list[str], schemes: list[str]) -> None:
    found = challenges(methods)
    assert [text.split(" ")[0] for text in found] == schemes
    assert all('realm="broker-core"' in text for text in found)
