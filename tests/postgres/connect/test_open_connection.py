"""Connecting to real servers: failover between hosts, logins, TLS; no text has a password."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core_postgres.connect import open_connection
from broker_core_postgres.connect.libpq.connection_parameters import ConnectionParameters
from broker_core_postgres.connect.libpq.dsn_error import DsnError
from broker_core_postgres.connect.open_connection import (
    CannotConnect,
    close_connection,
    connect,
    connect_first_host,
)
from broker_core_postgres.settings import PostgresSettings
from tests.support.files import file_with
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer

_SECRET = "s3cr3t-of-mine"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server with TLS: ``guest`` needs TLS and a password, ``card`` a certificate, ``postgres`` nothing."""
    folder = tmp_path_factory.mktemp("tls")
    _certificates(folder)
    with PostgresServer({"password_encryption": "scram-sha-256"}) as server:
        server.sql(f"CREATE ROLE guest LOGIN PASSWORD '{_SECRET}'; CREATE ROLE card LOGIN")
        for name in ("server.crt", "server.key", "ca.crt"):
            file = file_with(server.data / name, (folder / name).read_bytes())
            owner = server.data.stat()
            os.chown(file, owner.st_uid, owner.st_gid)
            file.chmod(0o600)
        (server.data / "pg_hba.conf").write_text(
            "hostssl all guest 127.0.0.1/32 scram-sha-256\n"
            "hostssl all card 127.0.0.1/32 cert\n"
            "host all postgres 127.0.0.1/32 trust\n"
            "local all guest scram-sha-256\n"
        )
        server.settings.update(
            {
                "ssl": "on",
                "ssl_cert_file": "server.crt",
                "ssl_key_file": "server.key",
                "ssl_ca_file": "ca.crt",
            }
        )
        server.restart()
        for name in ("ca.crt", "client.crt", "client.key", "other.crt"):
            (server.data / f"mine_{name}").write_bytes((folder / name).read_bytes())
            (server.data / f"mine_{name}").chmod(0o600)
        yield server


def _certificates(folder: Path) -> None:
    """An authority, certificates of ``localhost`` and of the user ``card``, and an authority that signed neither."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other"):
        openssl(
            "req",
            "-x509",
            *key,
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.crt",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
        )
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    for name, subject in (("server", "/CN=localhost"), ("client", "/CN=card")):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        extra = ("-extfile", "names") if name == "server" else ()
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-out", f"{name}.crt", *extra,
        )  # fmt: skip


def _guest(
    server: PostgresServer, host: str = "127.0.0.1", *, password: str | None = _SECRET, **options: str
) -> str:
    login = "guest" if password is None else f"guest:{password}"
    query = "&".join(f"{key}={value}" for key, value in options.items())
    return f"postgresql://{login}@{host}:{server.port}/postgres?{query}".rstrip("?")


async def _is_encrypted(dsn: str) -> bool:
    connection = await connect(dsn)
    try:
        return bool(await connection.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
    finally:
        await connection.close()


async def _refused(dsn: str | PostgresSettings) -> CannotConnect:
    with pytest.raises(CannotConnect) as refused:
        await connect(dsn)
    for text in (str(refused.value), repr(refused.value), refused.value.failure.message):
        assert _SECRET not in text
    return refused.value


# -- hosts


async def test_a_connection_says_who_it_is(postgres_server: PostgresServer) -> None:
    for dsn in (postgres_server.dsn(), postgres_server.socket_dsn()):
        connection = await connect(dsn, application_name="mine")
        assert await connection.fetchval("SHOW application_name") == "mine"
        await connection.close()
    connection = await connect(f"{postgres_server.dsn()}?application_name=theirs&options=-c%20work_mem%3D5MB")
    assert await connection.fetchval("SHOW application_name") == "theirs"
    assert await connection.fetchval("SHOW work_mem") == "5MB"
    await connection.close()


async def test_the_first_host_that_takes_it_is_used(postgres_server: PostgresServer) -> None:
    dead = free_port()
    parameters = ConnectionParameters.parse(
        f"postgresql://postgres@127.0.0.1:{dead},127.0.0.1:{postgres_server.port}/postgres"
    )
    connection, host = await connect_first_host(parameters)
    await connection.close()
    assert host.port == postgres_server.port


async def test_all_hosts_are_named_when_none_takes_it() -> None:
    one, two = free_port(), free_port()
    refused = await _refused(f"postgresql://me:{_SECRET}@127.0.0.1:{one},127.0.0.1:{two}/x")
    assert f"127.0.0.1:{one}: Connection refused; 127.0.0.1:{two}: Connection refused" in str(refused)
    assert refused.failure.reason == "unreachable"
    assert "127.0.0.1" not in refused.failure.message  # the address is not for clients


async def test_a_host_that_does_not_answer_leaves_time_for_the_others(
    postgres_server: PostgresServer,
) -> None:
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as silent:  # the kernel accepts connections that no process reads
        port = silent.getsockname()[1]
        parameters = ConnectionParameters.parse(
            f"postgresql://postgres@127.0.0.1:{port},127.0.0.1:{postgres_server.port}/postgres?sslmode=disable&connect_timeout=1"
        )
        connection, host = await connect_first_host(parameters, timeout=60)
        await connection.close()
        assert host.port == postgres_server.port
        with pytest.raises(CannotConnect, match="timed out") as refused:
            await connect(f"postgresql://me@127.0.0.1:{port}/x?sslmode=disable", timeout=0.1)
        assert refused.value.failure.reason == "timeout"


# -- logging in


async def test_wrong_logins_say_what_to_change(secured: PostgresServer) -> None:
    wrong = await _refused(_guest(secured, password=f"{_SECRET}x"))
    assert wrong.failure.reason == "authentication"
    assert 'password authentication failed for user "guest"' in str(wrong)
    assert (await _refused(secured.dsn("nowhere"))).failure.reason == "database"
    assert (await _refused(secured.dsn(user="nobody"))).failure.reason == "authentication"


async def test_the_password_comes_from_a_file_that_changes(secured: PostgresServer, tmp_path: Path) -> None:
    file = file_with(tmp_path / "password", "not yet")
    settings = PostgresSettings(dsn=_guest(secured, password=None), password_file=file)
    assert (await _refused(settings)).failure.reason == "authentication"
    file.write_text(f"{_SECRET}\n")
    connection = await connect(settings)
    await connection.close()


async def test_the_password_comes_from_the_environment(
    secured: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = _guest(secured, password=None)
    monkeypatch.setenv("PGPASSWORD", _SECRET)
    await (await connect(dsn)).close()
    monkeypatch.delenv("PGPASSWORD")
    passfile = file_with(tmp_path / "pgpass", f"127.0.0.1:{secured.port}:*:guest:{_SECRET}\n")
    passfile.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passfile))
    await (await connect(dsn)).close()
    monkeypatch.delenv("PGPASSFILE")
    services = file_with(
        tmp_path / "services",
        f"[mine]\nhost=127.0.0.1\nport={secured.port}\nuser=guest\ndbname=postgres\npassword={_SECRET}\n",
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGSERVICE", "mine")
    await (await connect(None)).close()
    monkeypatch.delenv("PGSERVICE")
    await (await connect("postgresql://?service=mine")).close()
    monkeypatch.setenv("MINE", _SECRET)
    await (await connect(PostgresSettings(dsn=dsn, password_env="MINE"))).close()


# -- TLS


async def test_tls_is_used_where_the_server_has_it(secured: PostgresServer) -> None:
    assert await _is_encrypted(_guest(secured))
    assert await _is_encrypted(_guest(secured, sslmode="require"))
    assert not await _is_encrypted(f"{secured.dsn()}?sslmode=disable")
    assert (await _refused(_guest(secured, sslmode="disable"))).failure.reason == "authentication"


async def test_the_certificate_of_the_server_is_checked(secured: PostgresServer) -> None:
    ca, other = f"{secured.data}/mine_ca.crt", f"{secured.data}/mine_other.crt"
    assert await _is_encrypted(_guest(secured, sslmode="verify-ca", sslrootcert=ca))
    assert await _is_encrypted(_guest(secured, "localhost", sslmode="verify-full", sslrootcert=ca))
    for host, mode, authority in (
        ("127.0.0.1", "verify-full", ca),  # the certificate names localhost
        ("localhost", "verify-full", other),
        ("localhost", "verify-ca", other),
    ):
        refused = await _refused(_guest(secured, host, sslmode=mode, sslrootcert=authority))
        assert refused.failure.reason == "tls"
        assert "certificate verify failed" in str(refused)


async def test_a_certificate_can_log_in(secured: PostgresServer) -> None:
    mine = f"sslmode=verify-ca&sslrootcert={secured.data}/mine_ca.crt&sslcert={secured.data}/mine_client.crt"
    dsn = f"postgresql://card@127.0.0.1:{secured.port}/postgres?{mine}&sslkey={secured.data}/mine_client.key"
    assert await _is_encrypted(dsn)
    refused = await _refused(f"postgresql://card@127.0.0.1:{secured.port}/postgres?sslmode=require")
    assert refused.failure.reason == "authentication"


async def test_a_server_without_tls_is_refused_where_tls_is_required(postgres_server: PostgresServer) -> None:
    refused = await _refused(f"{postgres_server.dsn()}?sslmode=require")
    assert refused.failure.reason == "tls"
    assert not await _is_encrypted(f"{postgres_server.dsn()}?sslmode=prefer")


async def test_what_is_missing_is_said_before_anything_is_tried() -> None:
    with pytest.raises(DsnError, match="sslrootcert: no such file"):
        await connect("postgresql://me@127.0.0.1:1/x?sslmode=verify-ca&sslrootcert=/nowhere/ca.crt")
    with pytest.raises(DsnError, match="password_file: cannot read"):
        await connect(
            PostgresSettings(dsn="postgresql://me@127.0.0.1:1/x", password_file=Path("/nowhere/password"))
        )


async def test_a_connection_is_closed_though_its_server_hangs(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_connection, "_CLOSING", 0.1)
    connection = await connect(postgres_server.dsn())
    postgres_server.pause()
    try:
        await close_connection(connection)
    finally:
        postgres_server.resume()
    assert connection.is_closed()
