"""A server's certificate, and a client that trusts it."""

from __future__ import annotations

import ssl

import pytest

from broker_core.servers.arrival import ServerCertificate
from tests.support.certificates import Authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def certificate(authority: Authority) -> ServerCertificate:
    """The certificate of the server, which asks clients for theirs."""
    issued = authority.issue("server")
    return ServerCertificate("pulsar.tls", issued.certificate, issued.key, authority.ca)


@pytest.fixture
def trusting(authority: Authority) -> ssl.SSLContext:
    """A client without a certificate."""
    return ssl.create_default_context(cafile=authority.ca)
