"""Who Kafka clients are: before they say so, by their certificate, or as they have proven; and where they ask."""

from __future__ import annotations

from collections.abc import Callable

from broker_core.access.asker import Asker
from broker_core.access.authentication import AuthenticationFailed, InvalidRoles
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.names import NamespaceName
from broker_core.servers.authentication import CredentialChecks
from broker_core.servers.kafka.sasl.logins import Logins
from broker_core.settings import KafkaSettings

__all__ = ["ClientIdentities"]


class ClientIdentities:
    """``checks`` authenticate clients; without them nobody has a role. ``logins`` are those of SASL, where a client has
    to prove who it is. ``identify`` changes the identity of a connection once more.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        checks: CredentialChecks | None = None,
        logins: Logins | None = None,
        identify: Callable[[Asker], Asker] | None = None,
    ) -> None:
        self.logins = logins
        self._checks = checks
        self._identify = identify
        self._namespace = NamespaceName.parse(kafka.namespace)
        self._namespaces = {who: NamespaceName.parse(where) for who, where in kafka.namespaces.items()}

    def of_connection(self, peer: Peer) -> Principal | None:
        """The principal of a connection that has sent nothing yet, by its certificate.

        Where no credentials are asked for, a client without one has the role of those who prove nothing, if any.
        """
        checks = self._checks
        if checks is None:
            return None
        authenticator = checks.authenticator
        principal: Principal | None = None
        if peer.common_name is not None and authenticator.takes_certificates:
            try:
                principal = authenticator.authenticate_now("tls", b"", peer)
                assert principal is not None  # TLS has verified it
                authenticator.identity(principal, original_principal=None)
            except AuthenticationFailed as error:
                checks.failed(error, peer, "")
                return None
            except InvalidRoles:
                checks.wrong_roles(peer.common_name, None, peer, "")
                return None
        elif self.logins is None:
            principal = authenticator.anonymous
        if principal is not None:
            checks.succeeded(principal, peer, "")
        return principal

    def close(self) -> None:
        """No client is served any more."""
        if self._checks is not None:
            self._checks.expiries.close()
        if self.logins is not None:
            self.logins.close()

    def asker(self, role: str | None, peer: Peer, software: str = "") -> Asker:
        """Who asks over a connection from now on; ``software`` is what the client says that it is."""
        asker = Asker(
            role=role, remote_address=peer.remote_address, client_version=software, transport="kafka"
        )
        return asker if self._identify is None else self._identify(asker)

    def namespace(self, role: str | None) -> NamespaceName:
        """The namespace whose topics a client sees."""
        if not self._namespaces:
            return self._namespace
        principal = "User:ANONYMOUS" if role is None else f"User:{role}"
        return self._namespaces.get(principal, self._namespace)
