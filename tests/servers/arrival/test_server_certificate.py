from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from structlog.testing import capture_logs

from broker_core.servers.arrival.server_certificate import (
    CertificateUnusable,
    ServerCertificate,
    certificate_names,
    warn_daily,
)
from tests.support.certificates import Authority, Issued
from tests.support.tokens import rsa_key

DAY = 86400.0


@pytest.fixture
def issued(tmp_path: Path, authority: Authority) -> Issued:
    """Copies of the files of a certificate, which a test may replace."""
    return put(authority.issue("first"), Issued(tmp_path / "server.pem", tmp_path / "server.key"))


def put(new: Issued, place: Issued) -> Issued:
    shutil.copy(new.certificate, place.certificate)
    shutil.copy(new.key, place.key)
    return place


def read(issued: Issued, client_ca: Path | None = None, **options: object) -> ServerCertificate:
    return ServerCertificate("pulsar.tls", issued.certificate, issued.key, client_ca, **options)  # type: ignore[arg-type]


def test_what_is_read(issued: Issued, authority: Authority) -> None:
    certificate = read(issued, authority.ca)
    assert certificate.context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert certificate.context.verify_mode == ssl.CERT_OPTIONAL
    assert certificate.files() == (issued.certificate, issued.key, authority.ca)
    assert read(issued).context.verify_mode == ssl.CERT_NONE
    assert certificate_names(issued.certificate, "") == ["localhost", "127.0.0.1"]


def test_a_new_certificate_is_for_the_handshakes_to_come(issued: Issued, authority: Authority) -> None:
    certificate = read(issued)
    before = certificate.context
    put(authority.issue("second"), issued)
    certificate.reload()
    assert certificate.context is not before


def test_a_broken_one_is_refused_and_the_old_one_stays(issued: Issued, authority: Authority) -> None:
    certificate = read(issued, authority.ca)
    before, expires_at = certificate.context, certificate.expires_at
    other = authority.issue("other")

    def refused() -> str:
        with pytest.raises(CertificateUnusable) as error:
            certificate.reload()
        assert (certificate.context, certificate.expires_at) == (before, expires_at)
        return str(error.value)

    shutil.copy(other.key, issued.key)
    assert "pulsar.tls.key" in refused()
    assert "is not the key of" in refused()
    of_another_kind = rsa_key(bits=1024).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    issued.key.write_bytes(of_another_kind)
    assert "is not the key of" in refused()
    issued.key.write_text("nothing")
    assert "has no private key in PEM" in refused()
    put(authority.issue("secret", password=b"secret"), issued)
    assert "has a password" in refused()
    issued.certificate.write_text("nothing")
    assert "pulsar.tls.certificate" in refused()
    assert "no certificate in PEM" in refused()
    issued.certificate.unlink()
    assert "no such file" in refused()
    put(authority.issue("late", expired=True), issued)
    assert "the one in use has not" in refused()


@pytest.mark.parametrize("text", ["", "nothing", None])
def test_authorities_that_cannot_be_used(issued: Issued, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "clients.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(CertificateUnusable, match=r"pulsar\.tls\.client_ca"):
        read(issued, file)


def test_a_key_that_is_not_there(issued: Issued) -> None:
    issued.key.unlink()
    with pytest.raises(CertificateUnusable, match=r"pulsar\.tls\.key: cannot read"):
        read(issued)


def test_nothing_of_a_key_is_said(issued: Issued) -> None:
    issued.key.write_text(issued.key.read_text().replace("PRIVATE", "PUBLIC"))
    with pytest.raises(CertificateUnusable) as error:
        read(issued)
    assert not any(line in str(error.value) for line in issued.key.read_text().splitlines()[1:-1])


def test_an_end_that_is_near_is_warned_of(issued: Issued) -> None:
    now = 0.0
    certificate = read(issued, clock=lambda: now)
    now = certificate.expires_at - 15 * DAY
    assert certificate.expiry_warning is None
    now = certificate.expires_at - 13 * DAY
    assert "expires on" in (certificate.expiry_warning or "")
    now = certificate.expires_at
    assert "expired on" in (certificate.expiry_warning or "")
    with capture_logs() as logs:
        certificate.warn()
    assert [(each["log_level"], each["setting"]) for each in logs] == [("warning", "pulsar.tls.certificate")]


async def test_the_warning_comes_at_once_and_again(issued: Issued, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = read(issued)
    sleeps: list[float] = []

    async def slept(seconds: float) -> None:
        sleeps.append(seconds)
        if len(sleeps) == 3:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", slept)
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await warn_daily([certificate])
    assert len(logs) == 3  # it ends in ten days
    assert sleeps == [DAY] * 3


def shaken(certificate: ServerCertificate, client: Issued, authority: Authority) -> ssl.SSLObject:
    """The server's side of a connection that a client with a certificate has made."""
    context = ssl.create_default_context(cafile=authority.ca)
    context.load_cert_chain(client.certificate, client.key)
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = certificate.context.wrap_bio(ours, theirs, server_side=True)
    sides = [context.wrap_bio(theirs, ours, server_hostname="localhost"), server]
    for side in sides * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return server


def test_the_authority_of_a_client_that_is_there_was_taken_away_or_renewed(
    issued: Issued, authority: Authority, tmp_path: Path
) -> None:
    other, file = Authority(tmp_path, "other"), tmp_path / "clients"
    both = authority.ca.read_bytes() + other.ca.read_bytes()
    file.write_bytes(both)
    certificate = read(issued, file)
    ours = shaken(certificate, authority.issue("app"), authority)
    theirs = shaken(certificate, other.issue("app"), authority)

    def trusted(text: bytes) -> list[bool]:
        file.write_bytes(text)
        certificate.reload()
        return [certificate.trusts(each) for each in (ours, theirs)]  # type: ignore[arg-type]

    assert trusted(both) == [True, True]
    assert trusted(authority.ca.read_bytes()) == [True, False]
    assert trusted(Authority(tmp_path, "other").ca.read_bytes()) == [False, False], "the name alone"
    assert trusted(other.renewed().read_bytes()) == [False, True]
