"""The addresses in a service URL; what is refused, and why, is tested with the client's service URL."""

from __future__ import annotations

import pytest

from broker_core.service_addresses import DEFAULT_PORT, DEFAULT_TLS_PORT, is_tls, service_addresses


def test_several_hosts_of_one_cluster() -> None:
    assert service_addresses("pulsar://a,b:1,[::1]:2/") == (("a", DEFAULT_PORT), ("b", 1), ("::1", 2))


def test_tls_has_a_port_of_its_own() -> None:
    assert service_addresses("pulsar+ssl://a,b:1") == (("a", DEFAULT_TLS_PORT), ("b", 1))
    assert is_tls("pulsar+ssl://a")
    assert not is_tls("pulsar://a")


@pytest.mark.parametrize("url", ["", "a:6650", "pulsar+tls://a", "pulsar://", "pulsar://a:0", "pulsar://a:x"])
def test_what_is_no_service_url_is_a_value_error(url: str) -> None:
    with pytest.raises(ValueError, match="Invalid service URL"):
        service_addresses(url)
