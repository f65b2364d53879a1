"""Services: the files that are read, and their precedence."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_postgres.connect.libpq.connection_parameters import ConnectionParameters
from broker_core_postgres.connect.libpq.dsn_error import DsnError
from tests.support.files import file_with

_SECRET = "s3cr3t-of-mine"


def test_a_service_comes_before_the_environment_and_after_the_string(tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "services",
        f"# services\n[listing]\nhost=s1,s2\nport=9\nuser=sue\npassword={_SECRET}%x\ndbname=of_service\n",
    )
    environment = {"PGSERVICEFILE": str(file), "PGSERVICE": "listing", "PGUSER": "eve"}
    for parameters in (
        ConnectionParameters.parse(None, environment=environment),
        ConnectionParameters.parse("postgresql://?service=listing", environment={"PGSERVICEFILE": str(file)}),
        ConnectionParameters.parse(None, service="listing", service_file=file),
    ):
        assert [str(host) for host in parameters.hosts] == ["s1:9", "s2:9"]
        assert (
            parameters.user,
            parameters.database,
            parameters.passwords.password({}, "s1", 9, "of_service", "sue"),
        ) == ("sue", "of_service", f"{_SECRET}%x")
    assert (
        ConnectionParameters.parse("postgresql://me@db/x?service=listing", environment=environment).user
        == "me"
    )
    with pytest.raises(DsnError, match="no service 'other'"):
        ConnectionParameters.parse(None, environment={**environment, "PGSERVICE": "other"})
