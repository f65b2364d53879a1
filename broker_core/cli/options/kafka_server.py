"""The options of commands for a Kafka cluster: its addresses, TLS and credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol, TypeAlias

import typer

from broker_core.cli.options.credentials import (
    NO_CREDENTIALS,
    GivenCredentials,
)
from broker_core.cli.options.option_values import UnusableQuestion, usable
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.client.kafka import AdminClient, OAuthBearer, Plain, Scram
    from broker_core.settings import LoadedSettings, Settings

__all__ = ["GivenKafka", "Mechanism"]

Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

#: Attempts after the first: a cluster that is not there is an error after two or three seconds.
_RETRIES: Final = 5


class _Loads(Protocol):
    """The run of a command, which loads settings."""

    def load(self) -> LoadedSettings: ...


@dataclass(frozen=True, slots=True)
class GivenKafka:
    """The values of the options; files are read when they are used."""

    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap",
            "--bootstrap-server",  # as Kafka's own tools call it
            metavar="HOST:PORT,...",
            help="The addresses to connect to first, instead of the server of the settings.",
            show_default=False,
        ),
    ] = None
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", help="How long to wait for the answer.", min=0.001),
    ] = 30.0
    tls: Annotated[
        bool, typer.Option("--tls", help="Connect with TLS; --ca and --cert do so too.", show_default=False)
    ] = False
    mechanism: Annotated[Mechanism, typer.Option("--mechanism", help="The SASL mechanism for --user.")] = (
        "SCRAM-SHA-512"
    )
    credentials: GivenCredentials = NO_CREDENTIALS

    @asynccontextmanager
    async def connected(self, invocation: _Loads) -> AsyncIterator[AdminClient]:
        """A client of the cluster. Errors inside say which options may help.

        Raises :exc:`UnusableQuestion` and :exc:`UnusableCredentials` for options that do not go together.
        """
        from broker_core.client import ConnectionLost, TlsFailed
        from broker_core.client.kafka import (
            AdminClient,
            IllegalSaslStateException,
            SaslAuthenticationException,
            UnsupportedSaslMechanismException,
        )

        tls = self.tls or self.credentials.has_certificates
        trusted = self.credentials.tls() if tls else None
        sasl = self._sasl()
        where = self.bootstrap or _of_settings(invocation.load().settings, tls=tls)
        with usable():
            client = AdminClient(
                where,
                sasl=sasl,
                tls=trusted,
                api_timeout=self.timeout,
                request_timeout=self.timeout,
                connect_timeout=min(self.timeout, 10.0),
                retries=_RETRIES,
            )
        try:
            async with client:
                yield client
        except TlsFailed as failed:
            advice = self.credentials.after_distrust(str(failed))
            if advice is None:
                raise
            raise BrokerCoreError(f"{failed}; {advice}") from None
        except IllegalSaslStateException as refused:
            if sasl is not None:
                raise
            raise BrokerCoreError(
                f"{refused} The server asks for credentials: give --user or --token-file"
            ) from None
        except UnsupportedSaslMechanismException as refused:
            if self.credentials.user is None:
                raise
            raise BrokerCoreError(
                f"{refused}; give one that it has as --mechanism, or --token-file for OAUTHBEARER"
            ) from None
        except SaslAuthenticationException as refused:
            raise BrokerCoreError(f"{refused}; the log of the server says why") from None
        except ConnectionLost as lost:
            # A server ends a connection so if it did not authenticate, or speaks no TLS though it should; a server of
            # Pulsar does so too.
            if "cannot connect" in str(lost):
                raise BrokerCoreError(f"{lost}; {self._where_else}") from None
            if "closed the connection" not in str(lost) or (tls and sasl is not None):
                raise
            missing = [
                *(() if sasl is not None else ("--user or --token-file, where it asks for credentials",)),
                *(() if tls else ("--tls, where it expects TLS",)),
                "the port of its Kafka listener, where this is that of Pulsar",
            ]
            raise BrokerCoreError(f"{lost}; give {'; '.join(missing)}") from None

    @property
    def _where_else(self) -> str:
        """Advice if no server listens at the address."""
        if self.bootstrap is None:
            return "is the server of the settings running? --bootstrap HOST:PORT asks another"
        return "--bootstrap takes the address of the Kafka listener, which the line `ready` of a server has"

    def _sasl(self) -> Plain | Scram | OAuthBearer | None:
        from broker_core.client.kafka import OAuthBearer, Plain, Scram

        token, named = self.credentials.token(), self.credentials.password()
        if token is not None:
            return OAuthBearer(token)
        if named is None:
            return None
        return Plain(*named) if self.mechanism == "PLAIN" else Scram(*named, mechanism=self.mechanism)


def _of_settings(settings: Settings, *, tls: bool) -> str:
    """The address of a server with these settings from this machine; what it advertises comes first."""
    table = settings.kafka
    if table is None:
        raise UnusableQuestion("no server to ask: give --bootstrap HOST:PORT, or settings with [kafka]")
    name, listen, advertised = "kafka.listen", table.listen, table.advertised
    if tls and table.tls is not None:
        name, listen, advertised = "kafka.tls.listen", table.tls.listen, table.tls.advertised
    if advertised:
        return advertised
    if listen.port == 0:
        raise UnusableQuestion(
            f"{name} is a free port (0), so the settings do not say which: take it from the line `ready` of the "
            "server and give it as --bootstrap"
        )
    return str(listen.from_here)
