"""Connection parameters of strings, services and the environment, by libpq's rules; errors quote nothing."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core_postgres.connect.libpq import connection_parameters
from broker_core_postgres.connect.libpq.connection_parameters import ConnectionParameters, ServerAddress
from broker_core_postgres.connect.libpq.dsn_error import DsnError

_URL = "postgresql://"
_SECRET = "s3cr3t-of-mine"
_NONE: dict[str, str] = {}


def parse(dsn: str | None, environment: dict[str, str] | None = None, **options: Any) -> ConnectionParameters:
    return ConnectionParameters.parse(
        dsn, environment=_NONE if environment is None else environment, **options
    )


def password(parameters: ConnectionParameters) -> str | None:
    host = parameters.hosts[0]
    return parameters.passwords.password(_NONE, host.address, host.port, parameters.database, parameters.user)


@pytest.mark.parametrize(
    ("dsn", "hosts"),
    [
        ("postgresql://me@db/x", ["db:5432"]),
        ("postgres://me@db:6000/x", ["db:6000"]),
        ("postgresql://me@a:1,b:2/x", ["a:1", "b:2"]),
        ("postgresql://me@a,b/x?port=7", ["a:7", "b:7"]),
        ("postgresql://me@a,b:2/x", ["a:5432", "b:2"]),
        ("postgresql:///x?user=me&host=a,b&port=1,2", ["a:1", "b:2"]),
        ("postgresql://me@[::1]:7,[fe80::2]/x", ["[::1]:7", "[fe80::2]:5432"]),
        ("postgresql://me@%2Frun%2Fpg:7/x", ["/run/pg/.s.PGSQL.7"]),
        ("postgresql:///x?user=me&host=/run/pg", ["/run/pg/.s.PGSQL.5432"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hosts_are_read_as_libpq_reads_them(dsn: str, hosts: list[str]) -> None:
    parameters = parse(dsn)
    assert [str(host) for host in parameters.hosts] == hosts
    assert (parameters.user, parameters.database) == ("me", "x")


def test_several_hosts_are_left_when_they_take_no_writes() -> None:
    assert parse("postgresql://me@a,b/x").session_attributes == "read-write"
    assert parse("postgresql://me@a/x").session_attributes == "any"
    assert parse("postgresql://me@a,b/x?target_session_attrs=any").session_attributes == "any"
    assert parse("postgresql://me@a/x", {"PGTARGETSESSIONATTRS": "standby"}).session_attributes == "standby"


def test_what_the_string_leaves_open_comes_from_the_environment() -> None:
    environment = {
        "PGHOST": "e1,e2",
        "PGPORT": "7",
        "PGUSER": "eve",
        "PGDATABASE": "there",
        "PGSSLMODE": "require",
    }
    parameters = parse(None, environment)
    assert parameters.hosts == (ServerAddress("e1", 7), ServerAddress("e2", 7))
    assert (parameters.user, parameters.database, parameters.tls["sslmode"]) == ("eve", "there", "require")
    given = parse("postgresql://me@db:5432/x?sslmode=disable", environment)
    assert (str(given.hosts[0]), given.user, given.database) == ("db:5432", "me", "x")
    assert given.tls["sslmode"] == "disable"


def test_options_of_the_session_and_of_connecting() -> None:
    parameters = parse(
        "postgresql://me@a/x?application_name=lister&options=-c%20search_path%3Dmine&connect_timeout=3"
        "&load_balance_hosts=random&keepalives=1&channel_binding=prefer"
    )
    assert parameters.server_settings == {"application_name": "lister", "options": "-c search_path=mine"}
    assert (parameters.connect_timeout, parameters.shuffled) == (3.0, True)
    assert parse("postgresql://me@a/x?connect_timeout=0").connect_timeout is None


def test_without_any_database_named_none_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_parameters, "_SOCKET_FOLDERS", ())
    with pytest.raises(DsnError, match="no database is named: give dsn"):
        ConnectionParameters.parse(environment={"PGUSER": "me"})
    given: tuple[tuple[str | None, dict[str, str]], ...] = (
        ("postgresql:///x", {}),
        (None, {"PGHOST": "localhost"}),
    )
    for dsn, environment in given:
        (host,) = ConnectionParameters.parse(dsn, environment=environment).hosts
        assert host.address == "localhost"


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        (f"postgresql://me@db:{_SECRET}/x", "a port"),
        (f"postgresql://me@db/x?password={_SECRET}&sslmode=sometimes", "sslmode: one of"),
        (f"postgresql://me@db/x?password={_SECRET}&target_session_attrs=best", "target_session_attrs"),
        (f"postgresql://me@db/x?password={_SECRET}&connect_timeout=soon", "connect_timeout"),
        (f"postgresql://me@db/x?password={_SECRET}&sslmode=verify-ca&sslrootcert=/nowhere/ca.crt", "no such file"),
        (f"postgresql://me@db/x?password={_SECRET}&sslrootcert=system", "needs sslmode=verify-full"),
        (f"postgresql://me@a,b:1,c/x?port=1,2&password={_SECRET}", "do not fit together"),
        (f"postgresql://me@a,,c/x?password={_SECRET}", "a host of the connection string is empty"),
        (f"postgresql://me@a:99999/x?password={_SECRET}", "a port"),
        (f"postgresql://m%00e@a/x?password={_SECRET}", "NUL"),
    ],
    ids=[
        "port_word", "sslmode", "attributes", "timeout", "no_file", "system", "ports", "no_host", "size", "nul",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_and_never_quoted(dsn: str, said: str) -> None:
    with pytest.raises(DsnError, match=said) as refused:
        parse(dsn)
    assert _SECRET not in str(refused.value)


def test_no_password_is_shown() -> None:
    parameters = parse(f"postgresql://me:{_SECRET}@db/x?sslpassword={_SECRET}")
    assert password(parameters) == _SECRET
    assert _SECRET not in f"{parameters} {parameters!r} {parameters.passwords!r}"
    assert str(parameters) == "db:5432, database x"


def test_the_authorities_of_the_system_can_be_used() -> None:
    import ssl

    parameters = parse("postgresql://me@db/x?sslmode=verify-full&sslrootcert=system")
    assert parameters.tls["sslrootcert"] == ssl.get_default_verify_paths().cafile
