from __future__ import annotations

import pytest

from broker_core.client.client_errors import InvalidServiceUrl
from broker_core.client.pulsar.service_url import ServiceUrl


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("pulsar://localhost", [("localhost", 6650)]),
        ("pulsar://127.0.0.1:6651", [("127.0.0.1", 6651)]),
        ("pulsar://a.example.org:1/", [("a.example.org", 1)]),
        ("pulsar://a:1,b,c:3", [("a", 1), ("b", 6650), ("c", 3)]),
        ("pulsar://[::1]:6650,[fe80::1%eth0]", [("::1", 6650), ("fe80::1%eth0", 6650)]),
        ("pulsar+ssl://a,b:1", [("a", 6651), ("b", 1)]),
    ],
)
def test_addresses(text: str, addresses: list[tuple[str, int]]) -> None:
    url = ServiceUrl.parse(text)
    assert list(url.addresses) == addresses
    assert str(url) == text
    assert url.is_tls == text.startswith("pulsar+ssl:")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected pulsar://host:port"),
        ("localhost:6650", "expected pulsar://host:port"),
        ("http://localhost:8080", "expected pulsar://host:port"),
        ("tls://localhost:6651", "expected pulsar://host:port or pulsar"),
        ("pulsar://", "'' is no host:port"),
        ("pulsar://a:1,,b:2", "'' is no host:port"),
        ("pulsar://a:0", "no port 0"),
        ("pulsar://a:65536", "no port 65536"),
        ("pulsar://a:b", "'a:b' is no host:port"),
        ("pulsar://user@a:1", "not given in a URL"),
        ("pulsar://a:1/path", "no host:port"),
        ("pulsar://::1:6650", "no host:port"),
    ],
)
def test_what_is_no_service_url(text: str, reason: str) -> None:
    with pytest.raises(InvalidServiceUrl, match=reason):
        ServiceUrl.parse(text)
