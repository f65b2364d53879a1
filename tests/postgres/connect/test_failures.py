"""Failures of the database: their reasons, and texts that tell clients nothing about the server."""

from __future__ import annotations

import ssl

import asyncpg
import pytest

from broker_core.errors import ListingFailed, ServerError
from broker_core_postgres.connect.failures import (
    REASONS,
    ConnectionBroke,
    DatabaseFailed,
    failure_of,
    is_connection_lost,
    server_message,
)
from broker_core_postgres.connect.libpq.dsn_error import DsnError
from tests.support.narrowed import of_type
from tests.support.postgres_server import PostgresServer

_TOLD = "s3cr3t-of-mine"


def _of_state(state: str) -> asyncpg.PostgresError:
    return asyncpg.PostgresError.new({"C": state, "M": f"something about {_TOLD}"})


@pytest.mark.parametrize(
    ("state", "reason", "lost"),
    [
        ("28P01", "authentication", False),
        ("28000", "authentication", False),
        ("3D000", "database", False),
        ("53300", "connections", False),
        ("53100", "disk_full", False),
        ("53200", "memory", False),
        ("53400", "temp_files", False),
        ("57014", "statement_timeout", False),
        ("57P01", "shutdown", True),
        ("57P02", "crash", True),
        ("57P03", "starting", True),
        ("55P03", "locked", False),
        ("40P01", "locked", False),
        ("40001", "conflict", False),
        ("25006", "read_only", False),
        ("42501", "privilege", False),
        ("42P01", "schema", False),
        ("42P05", "settings", False),
        ("42703", "schema", False),
        ("42601", "schema", False),
        ("08006", "lost", True),
        ("58030", "storage", False),
        ("XX001", "corrupt", False),
        ("22P02", "other", False),
    ],
)
def test_states_of_the_server(state: str, reason: str, lost: bool) -> None:
    failure = of_type(failure_of(_of_state(state)), DatabaseFailed)
    assert (failure.reason, failure.state, failure.lost) == (reason, state, lost)
    assert is_connection_lost(failure) is lost
    assert _TOLD not in failure.message
    assert reason in REASONS


@pytest.mark.parametrize(
    ("error", "reason", "lost"),
    [
        (ConnectionRefusedError(111, "refused"), "unreachable", False),
        (ConnectionResetError(104, "reset"), "lost", True),
        (ConnectionBroke("closed"), "lost", True),
        (TimeoutError(), "timeout", False),
        (OSError(113, "no route"), "unreachable", False),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "tls", False),
        (asyncpg.InterfaceError("connection is closed"), "lost", True),
        (asyncpg.TargetServerAttributeNotMatched("is not primary"), "no_primary", False),
        (DsnError("password_file: cannot read"), "settings", False),
        (asyncpg.InternalClientError("got confused"), "other", False),
    ],
    ids=["refused", "reset", "broke", "slow", "route", "tls", "closed", "attributes", "settings", "driver"],
)
def test_errors_of_the_system_and_the_driver(error: Exception, reason: str, lost: bool) -> None:
    failure = failure_of(error)
    assert failure.reason == reason
    assert is_connection_lost(error) is is_connection_lost(failure) is lost


def test_a_failure_that_is_one_stays_what_it_is() -> None:
    failure = ListingFailed("said", reason="mine")
    assert failure_of(failure) is failure


def test_what_one_question_met_says_nothing_of_the_next() -> None:
    own = {"57014", "25P04", "55P03", "40P01", "40001", "53400"}
    for state in (*own, "57P01", "08006", "3D000", "42P01", "58030", "53100"):
        assert failure_of(_of_state(state)).counts is (state not in own)
    for reason in ("pool_full", "pool_timeout"):
        assert not DatabaseFailed.of(reason).counts
    assert not failure_of(_of_state("53300")).counts  # TooManyRequests
    assert failure_of(TimeoutError()).counts


def test_clients_are_told_whether_to_come_back() -> None:
    assert failure_of(_of_state("53300")).code is ServerError.TooManyRequests
    assert DatabaseFailed.of("pool_full").code is ServerError.TooManyRequests
    assert failure_of(_of_state("57P03")).code is ServerError.ServiceNotReady
    assert failure_of(_of_state("42P01")).code is ServerError.MetadataError
    assert "SQLSTATE 22P02" in failure_of(_of_state("22P02")).message


async def test_operators_read_what_the_server_said(postgres_server: PostgresServer) -> None:
    connection = await asyncpg.connect(postgres_server.dsn())
    with pytest.raises(asyncpg.PostgresError) as raised:
        await connection.fetch("SELECT nothing_of_the_kind")
    await connection.close()
    assert server_message(raised.value) == 'column "nothing_of_the_kind" does not exist (SQLSTATE 42703)'
    assert failure_of(raised.value).reason == "schema"
    assert server_message(TimeoutError()) == "timed out"
    assert server_message(ConnectionRefusedError(111, "Connect call failed")) == "Connection refused"
    assert server_message(asyncpg.InterfaceError("connection\nis closed")) == "connection is closed"
