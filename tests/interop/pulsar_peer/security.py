"""Certificates and tokens of a secured cluster: one authority for all servers, one pair of keys for all tokens."""

from __future__ import annotations

import time
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.certificates import Authority, Issued

__all__ = ["ADMIN", "GATEWAY", "Security"]

#: The role of the operator, a super user of the brokers.
ADMIN = "admin"
#: The role of the gateway at the brokers, a proxy role there.
GATEWAY = "gateway"

_PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
_CLIENT_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


class Security:
    """The files of a secured cluster in ``folder``; keys are made anew for each."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._authority = Authority(folder)
        self._token_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        #: The key that tokens are checked with, as `pulsar tokens create-key-pair` writes it (DER).
        self.token_public_key = folder / "token-public.der"
        self.token_public_key.write_bytes(
            self._token_key.public_key().public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    @property
    def ca(self) -> Path:
        """The certificate of the authority."""
        return self._authority.ca

    def token(self, role: str, *, seconds: float | None = None) -> str:
        """A token of ``role``, as `pulsar tokens create` makes it; it ends after ``seconds`` (``None``: never)."""
        claims: dict[str, object] = {"sub": role}
        if seconds is not None:
            claims["exp"] = int(time.time() + seconds)
        return jwt.encode(claims, self._token_key, algorithm="RS256")

    def token_file(self, role: str, *, name: str = "", seconds: float | None = None) -> Path:
        """A file with a token of ``role``, called ``name`` or after the role; what was in it is replaced at once."""
        path = self.folder / f"{name or role}.token"
        fresh = path.with_suffix(".new")
        fresh.write_text(self.token(role, seconds=seconds))
        fresh.chmod(0o600)
        fresh.replace(path)
        return path

    def server_certificate(self, name: str) -> Issued:
        """A new certificate for loopback: the files of an earlier one of this name are replaced."""
        return self._authority.issue(name)

    def broker_settings(self, tls_port: int) -> dict[str, str]:
        """What makes a broker secured: tokens, TLS on ``tls_port``, and rights."""
        issued = self.server_certificate("broker")
        return {
            "authenticationEnabled": "true",
            "authenticationProviders": _PROVIDER,
            "tokenPublicKey": self.token_public_key.as_uri(),
            "authorizationEnabled": "true",
            "superUserRoles": ADMIN,
            "proxyRoles": GATEWAY,
            "brokerClientAuthenticationPlugin": _CLIENT_PLUGIN,
            "brokerClientAuthenticationParameters": f"token:{self.token(ADMIN)}",
            "brokerServicePortTls": str(tls_port),
            "tlsCertificateFilePath": str(issued.certificate),
            "tlsKeyFilePath": str(issued.key),
            "tlsTrustCertsFilePath": str(self.ca),
            "brokerClientTrustCertsFilePath": str(self.ca),
            "authenticationRefreshCheckSeconds": "2",
        }
