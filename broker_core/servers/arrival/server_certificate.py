"""The certificate of a listener, with its key: read at the start and again, and watched for its expiry."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import structlog

from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

__all__ = ["CertificateUnusable", "ServerCertificate", "certificate_names"]

_log = structlog.get_logger(__name__)

#: Seconds before the end of a certificate from which on it is warned of: a renewal that is not done by then has failed.
_SOON: Final = 14 * 86400.0
_DAY: Final = 86400.0


class _Encrypted(Exception):
    """The key has a password."""


class CertificateUnusable(BrokerCoreError):
    """A certificate, its key or the authorities of clients cannot be used; the message names the setting."""


class ServerCertificate:
    """Certificate and key of a server, read again when their files change.

    ``table`` is the table of the settings that names the files, ``clock`` gives Unix seconds. With
    ``client_ca``, a client may show a certificate, which must then be one of these authorities. Without ``tickets``,
    nothing is sent after a handshake, and no session is resumed. Reading raises :exc:`CertificateUnusable`.
    """

    def __init__(
        self,
        table: str,
        certificate: Path,
        key: Path,
        client_ca: Path | None = None,
        *,
        tickets: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._table = table
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._tickets = tickets
        self._clock = clock
        #: The context of the handshakes to come. It is never changed, only replaced.
        self.context, self.expires_at = self._read()
        self._authorities: tuple[ssl.SSLContext, frozenset[bytes]] | None = None

    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return tuple(file for file in (self._certificate, self._key, self._client_ca) if file is not None)

    def reload(self) -> None:
        """Read the files again; if that fails, the former content stays. From any thread."""
        context, expires_at = self._read()
        if expires_at <= self._clock() < self.expires_at:
            raise CertificateUnusable(
                f"{self._table}.certificate: {self._certificate} expired on {_date(expires_at)}, and the one in use "
                "has not"
            )
        self.context, self.expires_at = context, expires_at
        self.warn()

    @property
    def expiry_warning(self) -> str | None:
        """The warning about the end of the certificate, if it is over or near."""
        now = self._clock()
        if self.expires_at <= now:
            return f"{self._certificate} expired on {_date(self.expires_at)}: clients refuse it"
        if self.expires_at <= now + _SOON:
            return f"{self._certificate} expires on {_date(self.expires_at)}"
        return None

    def warn(self) -> None:
        """Log that the certificate is over, or will be soon."""
        warning = self.expiry_warning
        if warning is not None:
            _log.warning("a certificate expires", setting=f"{self._table}.certificate", certificate=warning)

    def trusts(self, secured: ssl.SSLSocket) -> bool:
        """Whether the authority of a client's certificate, which a handshake of ours has verified, is still one of
        ``client_ca``. If it is not known which one that is, all of that time must be.
        """
        current = self.context
        if secured.context is current:
            return True
        if self._authorities is None or self._authorities[0] is not current:
            self._authorities = current, _authorities(current)
        authorities = self._authorities[1]
        anchor = _anchor(secured)
        return _authorities(secured.context) <= authorities if anchor is None else anchor in authorities

    def _read(self) -> tuple[ssl.SSLContext, float]:
        expires_at = _parsed(self._certificate, f"{self._table}.certificate").not_valid_after_utc.timestamp()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        if not self._tickets:
            context.num_tickets = 0
        setting = f"{self._table}.key"
        try:
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except _Encrypted:
            raise CertificateUnusable(
                f"{setting}: {self._key} has a password, which cannot be typed in here"
            ) from None
        except ssl.SSLError as error:
            # A key of another kind than the certificate's has "no certificate assigned".
            if error.reason in ("KEY_VALUES_MISMATCH", "NO_CERTIFICATE_ASSIGNED"):
                problem = f"{self._key} is not the key of {self._certificate}"
            elif b"PRIVATE KEY-----" not in self._key.read_bytes():
                problem = f"{self._key} has no private key in PEM"
            else:
                problem = f"{self._key} and {self._certificate} cannot be used: {_reason(error)}"
            raise CertificateUnusable(f"{setting}: {problem}") from None
        except OSError as error:
            raise CertificateUnusable(f"{setting}: cannot read {self._key}: {_reason(error)}") from None
        if self._client_ca is not None:
            _accept_clients(context, self._client_ca, f"{self._table}.client_ca")
        return context, expires_at


async def warn_daily(certificates: Sequence[ServerCertificate]) -> None:
    """Warn of certificates that expire, now and each day, until cancelled."""
    while True:
        for certificate in certificates:
            certificate.warn()
        await asyncio.sleep(_DAY)


def certificate_names(file: Path, setting: str) -> list[str]:
    """The names and addresses that a certificate is for. Raises :exc:`CertificateUnusable`."""
    from cryptography import x509

    extensions = _parsed(file, setting).extensions
    try:
        found = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [
        *found.get_values_for_type(x509.DNSName),
        *(str(address) for address in found.get_values_for_type(x509.IPAddress)),
    ]


def _accept_clients(context: ssl.SSLContext, client_ca: Path, setting: str) -> None:
    """Ask clients for a certificate of these authorities; a client without one is let in, and has no common name."""
    try:
        context.load_verify_locations(client_ca)
    except ssl.SSLError as error:
        raise CertificateUnusable(f"{setting}: {client_ca} cannot be used: {_reason(error)}") from None
    except OSError as error:
        raise CertificateUnusable(f"{setting}: cannot read {client_ca}: {_reason(error)}") from None
    context.verify_mode = ssl.CERT_OPTIONAL


def _anchor(secured: ssl.SSLSocket) -> bytes | None:
    """The authority that the certificate of a client was verified by; ``None`` of a session that was resumed, or of a
    connection that is over.
    """
    if hasattr(secured, "get_verified_chain"):  # from Python 3.13 on
        chain = secured.get_verified_chain()
    else:
        inner = secured._sslobj  # type: ignore[attr-defined]  # noqa: SLF001 - which has it from 3.10 on
        found = None if inner is None else inner.get_verified_chain()
        chain = [ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in found or ()]
    return _identity(chain[-1]) if chain else None


def _authorities(context: ssl.SSLContext) -> frozenset[bytes]:
    return frozenset(map(_identity, context.get_ca_certs(binary_form=True)))


def _identity(der: bytes) -> bytes:
    """The name and the key of an authority, which a certificate that renews it has too."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    certificate = x509.load_der_x509_certificate(der)
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return certificate.subject.public_bytes() + key


def _parsed(file: Path, setting: str) -> Certificate:
    from cryptography import x509  # takes longer to import than a server without TLS has

    try:
        return x509.load_pem_x509_certificates(file.read_bytes())[0]
    except OSError as error:
        raise CertificateUnusable(f"{setting}: cannot read {file}: {_reason(error)}") from None
    except ValueError:
        raise CertificateUnusable(f"{setting}: {file} has no certificate in PEM") from None


def _no_password() -> NoReturn:
    raise _Encrypted


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return str(error.reason or error.strerror or error).replace("_", " ").lower()
    return (error.strerror or str(error)).lower()


def _date(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
