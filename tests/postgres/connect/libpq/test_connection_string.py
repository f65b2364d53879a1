"""Reading connection strings; errors do not quote them."""

from __future__ import annotations

import pytest

from broker_core_postgres.connect.libpq.connection_string import read_connection_string
from broker_core_postgres.connect.libpq.dsn_error import DsnError

_URL = "postgresql://"
_SECRET = "s3cr3t-of-mine"


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        (f"host=db password={_SECRET}", "begins with postgresql://"),
        (f"mysql://me:{{}}@db/{_SECRET}", "begins with postgresql://"),
        (f"postgresql://me:{_SECRET}/x@db/x", "%2F"),
        (f"{_URL}me:a@{_SECRET}@db/x", "%40"),
        (f"postgresql://me:a#{_SECRET}@db/x", "%23"),
        (f"postgresql://me:1?{_SECRET}@db/x", "key=value"),
        (f"postgresql://me:1/{_SECRET}@db/x", "%40"),
        (f"postgresql://me@[::1/x?password={_SECRET}", "no URL"),
    ],
    ids=["keywords", "mysql", "slash", "at", "hash", "question", "number_slash", "ipv6"],
)
def test_what_is_no_url_is_refused_and_never_quoted(dsn: str, said: str) -> None:
    with pytest.raises(DsnError, match=said) as refused:
        read_connection_string(dsn)
    assert _SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("hosts", "host", "port"),
    [
        ("db", "db", None),
        ("db:5433", "db", "5433"),
        ("[::1]", "::1", None),
        ("[::1]:5433", "::1", "5433"),
        ("a,b:2,[::3]:3", "a,b,::3", ",2,3"),
        ("%2Fvar%2Frun", "/var/run", None),
    ],
)
def test_hosts_and_ports(hosts: str, host: str, port: str | None) -> None:
    read = read_connection_string(f"{_URL}{hosts}/x")
    assert (read["host"], read.get("port")) == (host, port)


def test_an_escaped_password_is_read() -> None:
    assert read_connection_string(f"{_URL}me:a%40b%2Fc%3A@db/x")["password"] == "a@b/c:"
