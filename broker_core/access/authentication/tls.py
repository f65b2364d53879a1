"""The method ``tls``: the role is the common name of the client's certificate."""

from __future__ import annotations

from pathlib import Path

from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal

__all__ = ["TlsVerifier"]


class TlsVerifier:
    """Verifies nothing itself: TLS has verified the certificate against ``client_ca``. The data is ignored."""

    files: tuple[Path, ...] = ()

    def verify(self, data: bytes, peer: Peer) -> Principal:  # noqa: ARG002 - the method has no data
        """The principal of a verified certificate; raises :exc:`AuthenticationFailed`."""
        if not peer.is_tls or peer.common_name is None:
            raise AuthenticationFailed(
                "certificate", "the connection has no verified client certificate with a common name"
            )
        if not peer.is_trusted():
            raise AuthenticationFailed("certificate", "its authority is none of client_ca any more")
        try:
            return Principal(peer.common_name)
        except ValueError as error:
            raise AuthenticationFailed("bad_role", f"the common name is no role: {error}") from None

    def evidence(self, data: bytes, peer: Peer) -> Peer:  # noqa: ARG002 - the method has no data
        """The client with its certificate."""
        return peer

    def upholds(self, role: str, evidence: object) -> bool:
        """Whether the certificate is still one of ``client_ca``, with the same name."""
        try:
            return isinstance(evidence, Peer) and self.verify(b"", evidence).role == role
        except AuthenticationFailed:
            return False

    def reload(self) -> None:
        """Do nothing: the server of TLS reads its certificates itself."""

    def close(self) -> None:
        """Do nothing."""
