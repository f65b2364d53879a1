"""The roles of docs/how-to/postgres-operate.md on a server with Debian's rules of access."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.page_runner import PageRunner
from tests.docs.pages import Block, blocks
from tests.support.files import file_with
from tests.support.postgres_server import PostgresServer

PAGE = "how-to/postgres-operate.md"
#: /etc/postgresql/15/main/pg_hba.conf. `map`, since a server of the tests may run as another user than postgres.
STOCK = """
local   all             postgres                                peer map=superuser
local   all             all                                     peer
host    all             all             127.0.0.1/32            scram-sha-256
host    all             all             ::1/128                 scram-sha-256
"""
#: The tests' own way in, to make and to remove the database.
OURS = "host all postgres 127.0.0.1/32 trust\n"


@pytest.fixture(scope="module")
def stock() -> Iterator[PostgresServer]:
    with PostgresServer({"password_encryption": "scram-sha-256"}) as server:
        system = "postgres" if os.geteuid() == 0 else getpass.getuser()
        (server.data / "pg_hba.conf").write_text(OURS + STOCK)
        (server.data / "pg_ident.conf").write_text(f"superuser {system} postgres\n")
        server.restart()
        yield server


@pytest.fixture(autouse=True)
def sudo(programs: Path) -> Iterator[None]:
    """A ``sudo -u postgres``, which machines of tests seldom have, with the owner of the server for postgres."""
    become = "runuser -u postgres -- " if os.geteuid() == 0 else ""
    text = f'#!/bin/sh\n[ "$1 $2" = "-u postgres" ] || exit 9\nshift 2\ncd /\nPGUSER=postgres exec {become}"$@"\n'
    program = file_with(programs / "sudo", text)
    program.chmod(0o755)
    yield
    program.unlink()


def of_roles() -> tuple[Block, ...]:
    """The blocks of the section, and of the one that lists with its users."""
    every = blocks(PAGE)
    first = next(number for number, block in enumerate(every) if "CREATE ROLE topics_owner" in block.text)
    last = next(number for number, block in enumerate(every) if "postgres status" in block.text)
    return every[first : last + 1]


def test_the_users_log_in_as_debian_has_it(stock: PostgresServer, programs: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with PageRunner(home, programs, lambda: stock) as runner:
        scripts = 0
        for block in of_roles():
            if block.language == "sh" and "~/.pgpass" in block.text:
                runner.script(block)
                scripts += 1
            else:
                runner.run(block)
        assert scripts == 1
    assert (home / ".pgpass").stat().st_mode & 0o777 == 0o600
    assert len((home / ".pgpass").read_text().splitlines()) == 3


def test_without_the_passwords_they_do_not(stock: PostgresServer, programs: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="password"),
        PageRunner(tmp_path, programs, lambda: stock) as runner,
    ):
        for block in of_roles():
            runner.run(block)
