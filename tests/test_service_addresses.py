"""The addresses in a service URL; what is refused, and why, is tested with the client's service URL."""

from __future__ import annotations

import pytest

from broker_core.service_addresses import (
    DEFAULT_PORT,
    DEFAULT_TLS_PORT,
    HTTP_SCHEMES,
    is_tls,
    service_addresses,
    shown_address,
)


def test_several_hosts_of_one_cluster() -> None:
    assert service_addresses("pulsar://a,b:1,[::1]:2/") == (("a", DEFAULT_PORT), ("b", 1), ("::1", 2))


def test_addresses_as_people_write_them() -> None:
    assert shown_address(("::1", 6650)) == "[::1]:6650"
    assert shown_address(("a", 1)) == "a:1"


def test_tls_has_a_port_of_its_own() -> None:
    assert service_addresses("pulsar+ssl://a,b:1") == (("a", DEFAULT_TLS_PORT), ("b", 1))
    assert is_tls("pulsar+ssl://a")
    assert not is_tls("pulsar://a")


@pytest.mark.parametrize("url", ["", "a:6650", "pulsar+tls://a", "pulsar://", "pulsar://a:0", "pulsar://a:x"])
def test_what_is_no_service_url_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError, match="Invalid service URL"):
        service_addresses(url)


def test_other_schemes_have_ports_of_their_own() -> None:
    assert service_addresses("https://a,b:1", HTTP_SCHEMES) == (("a", 443), ("b", 1))
    assert service_addresses("http://a/", HTTP_SCHEMES) == (("a", 80),)
    assert is_tls("https://a")
    assert not is_tls("http://a")
    with pytest.raises(ValueError, match="expected http://host:port or https://host:port"):
        service_addresses("pulsar://a", HTTP_SCHEMES)
    for url in ("http://a", "http://a/b"):
        with pytest.raises(ValueError, match="expected pulsar://host:port"):
            service_addresses(url)


@pytest.mark.parametrize("before", ["pulsar://", "kafka://", "", "pulsar://a,"])
def test_a_password_in_a_url_is_refused_and_not_shown(before: str) -> None:
    with pytest.raises(ValueError, match="Invalid service URL") as refused:
        service_addresses(before + "me:geheim" + "@host")
    assert "geheim" not in str(refused.value)
