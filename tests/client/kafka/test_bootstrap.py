from __future__ import annotations

import pytest

from broker_core.client import InvalidServiceUrl
from broker_core.client.kafka.bootstrap import bootstrap_addresses


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("kafka:9093", (("kafka", 9093),)),
        ("a", (("a", 9092),)),
        ("a:1, b:2,a:1", (("a", 1), ("b", 2))),
        ("[::1]:9092", (("::1", 9092),)),
        ("a:1,", (("a", 1),)),
    ],
)
def test_addresses(text: str, addresses: tuple[tuple[str, int], ...]) -> None:
    assert bootstrap_addresses(text) == addresses


@pytest.mark.parametrize("text", ["", ",", "a:0", "a:65536", "a b", "kafka://a:1", "a:b"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(InvalidServiceUrl, match="expected HOST:PORT"):
        bootstrap_addresses(text)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(InvalidServiceUrl) as raised:
        bootstrap_addresses("user:secret@a:9092")
    assert "secret" not in str(raised.value)
