"""Identities of Kafka clients: by certificate, or as they have proven (also to a cluster), and their namespaces."""

from __future__ import annotations

from collections.abc import Callable

from broker_core.access import Asker, AuthenticationFailed, ClientCredentials, Peer, Principal
from broker_core.client import ClientError
from broker_core.client.kafka import KafkaException
from broker_core.names import NamespaceName
from broker_core.service import Admission, Admitted, Ended, LiveSession, Logins
from broker_core.settings import KafkaMechanism, KafkaSettings
from broker_core.upstream.kafka import KafkaCluster, identity_of, principal_of

__all__ = ["ClientIdentities", "verified_by_cluster"]


class ClientIdentities:
    """Identities of the clients of a server.

    ``admission`` authenticates clients; without it nobody has a role. ``logins`` are the logins of SASL, if clients
    have to bring credentials by one of the :attr:`mechanisms`. ``identify`` changes the identity of a connection once
    more.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        admission: Admission | None = None,
        logins: Logins | None = None,
        identify: Callable[[Asker], Asker] | None = None,
    ) -> None:
        self.logins = logins
        self.mechanisms: tuple[KafkaMechanism, ...] = kafka.sasl.mechanisms
        self._admission = admission
        self._identify = identify
        self.place(kafka)

    def place(self, kafka: KafkaSettings) -> None:
        """Use these namespaces and mechanisms for clients that connect, or prove an identity, from now on.

        Sessions by a removed mechanism end, and sessions without credentials if credentials are required.
        """
        if kafka.sasl.mechanisms != self.mechanisms and self._admission is not None:
            self.mechanisms = kafka.sasl.mechanisms
            self._admission.live.look_again()
        self._namespace = NamespaceName.parse(kafka.clients_namespace)
        self._namespaces = {role: NamespaceName.parse(where) for role, where in kafka.namespaces.items()}

    def of_connection(self, peer: Peer) -> Admitted | None:
        """Let a connection in that has sent nothing yet, by its certificate.

        If no credentials are asked for, a client without one has the role of clients without credentials, if any.
        """
        admission = self._admission
        if admission is None:
            return None
        if peer.common_name is not None and admission.authenticator.takes_certificates:
            return admission.by_certificate(peer)
        return None if self.mechanisms else admission.without_credentials(peer)

    def begin(self, admitted: Admitted | None, ended: Callable[[Ended], object]) -> LiveSession | None:
        """The session of a connection that was let in by its certificate, or without credentials.

        ``None`` if it has to bring some, or if nobody is authenticated ever.
        """
        if self._admission is None or (admitted is None and self.mechanisms):
            return None
        has_certificate = admitted is not None and admitted.attempt.method == "tls"
        return self._admission.live.begin(admitted, ended, None if has_certificate else self._asks_nobody)

    def _asks_nobody(self) -> bool:
        return not self.mechanisms

    def close(self) -> None:
        """Verify no credentials any more."""
        if self.logins is not None:
            self.logins.close()

    def asker(self, role: str | None, peer: Peer, software: str = "", *, connection: object = None) -> Asker:
        """The asker over a connection from now on; ``software`` is the client's claim about its software."""
        asker = Asker(
            role=role,
            remote_address=peer.remote_address,
            client_version=software,
            transport="kafka",
            connection=connection,
        )
        return asker if self._identify is None else self._identify(asker)

    def namespace(self, role: str | None) -> NamespaceName:
        """The namespace whose topics a client sees."""
        if not self._namespaces:
            return self._namespace
        principal = "User:ANONYMOUS" if role is None else f"User:{role}"
        return self._namespaces.get(principal, self._namespace)


async def verified_by_cluster(cluster: KafkaCluster, method: str, data: bytes) -> Principal:
    """The principal of a client, as a gateway's cluster verifies it; ``data`` are its credentials for a ``method``.

    Raises :exc:`~broker_core.access.authentication.AuthenticationFailed`.
    """
    credentials = ClientCredentials(method, data)
    principal = principal_of(credentials)
    try:
        await cluster.check(identity_of(credentials))
    except KafkaException as refused:
        reason = "bad_token" if method == "token" else "bad_password"
        raise AuthenticationFailed(reason, f"the cluster refuses the client: {refused}") from None
    except ClientError as failed:
        raise AuthenticationFailed("overloaded", f"the cluster does not answer: {failed}") from None
    return principal
