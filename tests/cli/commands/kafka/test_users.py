from __future__ import annotations

import io
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.kafka.scram.credentials import DECOY_USER, ScramCredential
from tests.cli.conftest import Cli, Said


class _Input:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


def add(cli: Cli, monkeypatch: pytest.MonkeyPatch, catalog: Path, data: bytes, *options: str) -> Said:
    monkeypatch.setattr("sys.stdin", _Input(data))
    return cli("kafka", "users", "add", *options, "--password-stdin", "--catalog", catalog)


def test_a_user_is_stored_without_its_password(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = tmp_path / "c.sqlite"
    said = add(cli, monkeypatch, catalog, b"pencil-of-alice\n", "alice")
    assert said.out == "stored the user alice for SCRAM-SHA-256, SCRAM-SHA-512\n"
    assert "pencil" not in said.out + said.err
    with SqliteCatalog(catalog) as opened:
        rows = {row.mechanism: row for row in opened.kafka_users() if row.name == "alice"}
        secret = opened.kafka_user(DECOY_USER, "")
        for mechanism, row in rows.items():
            stored = ScramCredential(mechanism, row.iterations, row.salt, row.stored_key, row.server_key)
            assert stored.has_password(b"pencil-of-alice")
        assert secret is not None
        assert len(secret.salt) == 32
    assert b"pencil-of-alice" not in catalog.read_bytes()
    assert cli("kafka", "users", "list", "--catalog", catalog).out == "alice  SCRAM-SHA-256, SCRAM-SHA-512\n"

    add(cli, monkeypatch, catalog, b"another one", "alice", "--mechanism", "SCRAM-SHA-256")
    with SqliteCatalog(catalog) as opened:
        changed = {row.mechanism: row for row in opened.kafka_users() if row.name == "alice"}
        assert changed["SCRAM-SHA-256"] != rows["SCRAM-SHA-256"]
        assert changed["SCRAM-SHA-512"] == rows["SCRAM-SHA-512"]
        assert opened.kafka_user(DECOY_USER, "") == secret


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "NAME '': the role must name the client: it is blank"),
        ("a\nb", "control characters"),
        ("User:alice", "give the name alone; its principal would be User:User:alice"),
    ],
)
def test_a_name_that_no_user_can_have(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    said = add(cli, monkeypatch, tmp_path / "c.sqlite", b"pencil-of-alice", name)
    assert told in said.only_error
    assert said.code == 2
    assert not (tmp_path / "c.sqlite").exists()


def test_a_user_is_removed_by_mechanism_or_whole(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = tmp_path / "c.sqlite"
    add(cli, monkeypatch, catalog, b"pencil-of-alice", "alice")
    remove = ("kafka", "users", "remove", "alice", "--catalog", catalog)
    assert cli(*remove, "--mechanism", "SCRAM-SHA-512").out == "removed the user alice for SCRAM-SHA-512\n"
    assert cli(*remove).out == "removed the user alice for SCRAM-SHA-256\n"
    assert "There is no user 'alice'" in cli(*remove).only_error
    assert "There is no user ''" in cli("kafka", "users", "remove", "", "--catalog", catalog).only_error
    assert cli("kafka", "users", "list", "--catalog", catalog).out == ""


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "standard input has no password"),
        (b"\n", "standard input has no password"),
        (b"a\nb\n", "one line without zero bytes"),
        (b"a\0b", "one line without zero bytes"),
        (b"x" * 513, "at most 512 bytes"),
        (b"1234567\n", "at least 8 characters"),
        ("größen".encode(), "--allow-short takes it"),  # characters, not bytes
    ],
)
def test_a_password_that_is_none(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, error: str
) -> None:
    said = add(cli, monkeypatch, tmp_path / "c.sqlite", data, "alice")
    assert error in said.only_error
    assert said.code == 2
    assert not (tmp_path / "c.sqlite").exists()


@pytest.mark.parametrize(("data", "options"), [("äöüßäöüß", []), ("1234567", ["--allow-short"])])
def test_a_password_that_is_long_enough(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, options: list[str]
) -> None:
    assert add(cli, monkeypatch, tmp_path / "c.sqlite", data.encode(), "alice", *options).code == 0


def test_what_cannot_be_added(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = tmp_path / "c.sqlite"
    assert "say --password-stdin" in cli("kafka", "users", "add", "alice", "--catalog", catalog).only_error
    assert "role" in add(cli, monkeypatch, catalog, b"pencil-of-alice", "").only_error
    said = add(cli, monkeypatch, catalog, b"pencil-of-alice", "alice", "--mechanism", "PLAIN")
    assert "--mechanism 'PLAIN': expected SCRAM-SHA-256 or SCRAM-SHA-512" in said.only_error
