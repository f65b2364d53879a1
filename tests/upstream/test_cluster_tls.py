from __future__ import annotations

from pathlib import Path

from broker_core.client import ClientTls
from broker_core.settings import UpstreamTlsSettings
from broker_core.upstream.cluster_tls import brokers_tls


def test_each_setting_of_the_table_is_in_force() -> None:
    ca, certificate, key = Path("ca.pem"), Path("own.pem"), Path("own.key")
    table = UpstreamTlsSettings(ca=ca, certificate=certificate, key=key, verify_hostname=False)
    assert brokers_tls(table) == ClientTls(ca, certificate, key, False)
    assert brokers_tls(UpstreamTlsSettings()) == ClientTls()
    assert brokers_tls(None) is None
