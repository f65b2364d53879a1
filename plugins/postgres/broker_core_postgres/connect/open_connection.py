"""Connecting to the first of several hosts that ``target_session_attrs`` accepts.

``asyncpg.connect`` takes several hosts too, but with one timeout for all of them, with the password of the first host,
and it reports the error of one host only. Here each host has its own timeout, password and error. The host of the last
success comes first.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlencode

import asyncpg

from broker_core.errors import BrokerCoreError
from broker_core_postgres.connect.failures import DRIVER_ERRORS, DatabaseFailed, failure_of, server_message
from broker_core_postgres.connect.libpq import ConnectionParameters, ServerAddress, satisfies_attributes
from broker_core_postgres.settings import PostgresSettings

__all__ = [
    "APPLICATION_NAME",
    "CannotConnect",
    "close_connection",
    "connect",
    "connect_first_host",
    "connected",
    "failure_text",
    "parameters_of",
]

#: The name in ``pg_stat_activity``, if the connection string gives none.
APPLICATION_NAME: Final = "broker-core"
#: Seconds that a server has to answer at the end of a command's connection.
_CLOSING: Final = 5.0


class CannotConnect(BrokerCoreError):
    """No host accepted the connection. The text names each host and its error: it is for operators, never for clients.

    ``failure`` is for clients, ``errors`` has the error of each attempt.
    """

    def __init__(
        self, parameters: ConnectionParameters, tried: Sequence[tuple[ServerAddress, BaseException]]
    ) -> None:
        said = "; ".join(f"{host}: {server_message(error)}" for host, error in tried)
        super().__init__(f"cannot connect to PostgreSQL, database {parameters.database!r}: {said}")
        self.errors = [error for _, error in tried]
        self.failure = _most_telling([failure_of(error) for error in self.errors])


def parameters_of(settings: PostgresSettings, dsn: str | None = None) -> ConnectionParameters:
    """The connection parameters of the settings. ``dsn`` replaces theirs; the sources of the password stay.

    Raises :exc:`DsnError`.
    """
    return ConnectionParameters.parse(
        settings.dsn if dsn is None else dsn,
        password_file=settings.password_file,
        password_env=settings.password_env,
        service=settings.service if dsn is None else None,
        service_file=settings.service_file,
    )


async def connect(
    source: ConnectionParameters | PostgresSettings | str | None,
    *,
    application_name: str = APPLICATION_NAME,
    timeout: float = 10.0,
) -> Any:
    """Connect to the first host that accepts, within ``timeout`` seconds. The caller closes the connection.

    Raises :exc:`DsnError` and :exc:`CannotConnect`, whose texts the command line shows.
    """
    if source is None or isinstance(source, str):
        source = ConnectionParameters.parse(source)
    elif not isinstance(source, ConnectionParameters):
        source = parameters_of(source)
    connection, _ = await connect_first_host(source, application_name=application_name, timeout=timeout)
    return connection


async def close_connection(connection: Any, timeout: float = _CLOSING) -> None:
    """Close a connection, by force if its server does not answer within ``timeout`` seconds."""
    try:
        await asyncio.wait_for(connection.close(), timeout)
    except DRIVER_ERRORS:
        connection.terminate()


@asynccontextmanager
async def connected(
    source: ConnectionParameters | PostgresSettings,
    *,
    application_name: str,
    failed: Callable[[BaseException], BrokerCoreError],
    timeout: float = 10.0,
) -> AsyncIterator[Any]:
    """A connection for the block, as of :func:`connect`. Errors of the driver in the block are raised as ``failed``.

    An error about a file is raised as it is.
    """
    connection = await connect(source, application_name=application_name, timeout=timeout)
    try:
        yield connection
    except DRIVER_ERRORS as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise failed(error) from error
    finally:
        await close_connection(connection)


def failure_text(error: BaseException) -> str:
    """The text of an error of the driver for operators: what it means, and what the server said."""
    return f"{failure_of(error).message}: {server_message(error)}"


async def connect_first_host(
    parameters: ConnectionParameters,
    *,
    application_name: str = APPLICATION_NAME,
    timeout: float = 10.0,
    first: ServerAddress | None = None,
    statement_cache_size: int = 100,
) -> tuple[Any, ServerAddress]:
    """Connect to the first host that accepts, trying ``first`` before all others. Returns the connection and its host.

    A host has the ``connect_timeout`` of the connection string, or its share of ``timeout``, the seconds for all hosts.
    Raises :exc:`CannotConnect` and :exc:`DsnError`.
    """
    hosts = list(parameters.hosts)
    if parameters.shuffled:
        random.shuffle(hosts)
    if first in hosts:
        hosts.remove(first)
        hosts.insert(0, first)
    ends = asyncio.get_running_loop().time() + timeout
    share = min(parameters.connect_timeout or timeout / len(hosts), timeout)
    tried: list[tuple[ServerAddress, BaseException]] = []
    spare: tuple[Any, ServerAddress] | None = None  # the primary, for prefer-standby without a standby
    try:
        for host in hosts:
            try:
                async with asyncio.timeout(min(share, ends - asyncio.get_running_loop().time())):
                    connection = await _open(parameters, host, application_name, statement_cache_size)
            except DRIVER_ERRORS as error:
                tried.append((host, error))
                continue
            try:
                async with asyncio.timeout_at(ends):
                    fits = await satisfies_attributes(connection, parameters.session_attributes)
            except BaseException as error:
                connection.terminate()
                if not isinstance(error, DRIVER_ERRORS):
                    raise
                tried.append((host, error))
                continue
            if fits:
                return connection, host
            if spare is None and parameters.session_attributes == "prefer-standby":
                spare = connection, host
                continue
            connection.terminate()
            tried.append(
                (host, asyncpg.TargetServerAttributeNotMatched(f"is not {parameters.session_attributes}"))
            )
        if spare is not None:
            chosen, spare = spare, None
            return chosen
    finally:
        if spare is not None:
            spare[0].terminate()
    raise CannotConnect(parameters, tried)


async def _open(
    parameters: ConnectionParameters, host: ServerAddress, application_name: str, statement_cache_size: int
) -> Any:
    # A password file may be on a slow disk.
    login = await asyncio.to_thread(parameters.login, host)
    settings: Mapping[str, str] = {"application_name": application_name, **parameters.server_settings}
    return await asyncpg.connect(
        # asyncpg takes TLS options from a connection string only.
        f"postgresql:///?{urlencode(parameters.tls)}" if parameters.tls else "postgresql:///",
        **login,
        server_settings=dict(settings),
        statement_cache_size=statement_cache_size,
        target_session_attrs="any",
        timeout=None,
    )


def _most_telling(failures: Sequence[Any]) -> Any:
    """The failure that an operator can act on; the others are usual in any failover."""
    waiting = {"unreachable", "timeout", "lost", "no_primary"}
    for failure in failures:
        if failure.reason not in waiting:
            return failure
    return failures[0] if failures else DatabaseFailed.of("no_primary")
