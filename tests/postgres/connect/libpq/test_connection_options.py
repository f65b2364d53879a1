"""Known options of libpq, and options that the driver does not have."""

from __future__ import annotations

import pytest

from broker_core_postgres.connect.libpq.connection_string import read_connection_string
from broker_core_postgres.connect.libpq.dsn_error import DsnError

_SECRET = "s3cr3t-of-mine"


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        (f"postgresql://me@db/x?passwort={_SECRET}", "unknown option: passwort"),
        (f"postgresql://me@db/x?{_SECRET}=1", "unknown option: one of them"),
        (f"postgresql://me@db/x?password={_SECRET}&channel_binding=require", "no channel_binding"),
    ],
    ids=["typo", "secret_as_option", "binding"],
)
def test_an_option_that_there_is_not_is_refused_and_never_quoted(dsn: str, said: str) -> None:
    with pytest.raises(DsnError, match=said) as refused:
        read_connection_string(dsn)
    assert _SECRET not in str(refused.value)
