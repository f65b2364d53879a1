"""What the name and the password of a user of the catalogue may be, and how they are stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.kafka.scram.credentials import DECOY_USER, HASHES, ScramCredential
from broker_core.service.kafka_users import check_password, check_user, store_user


@pytest.mark.parametrize("name", ["", " ", "User:alice", "a\nb", "x" * 1025])
def test_what_cannot_be_a_name(name: str) -> None:
    with pytest.raises(ValueError, match=r"role|name alone"):
        check_user(name)


@pytest.mark.parametrize("password", [b"", b"1234567", b"a\nlong one", b"a\0long one", b"x" * 513])
def test_what_cannot_be_a_password(password: bytes) -> None:
    with pytest.raises(ValueError, match="a password") as wrong:
        check_password(password, short="--short")
    assert not password or password.decode() not in str(wrong.value)


def test_a_short_one_by_wish_and_others() -> None:
    check_password(b"1234567", short=None)
    check_password("eight ü¤".encode(), short="--short")
    check_user("of a team/alice")


def test_a_password_is_stored_with_the_secret_of_decoys(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        store_user(catalog, "alice", b"a long password", list(HASHES))
        secret = catalog.kafka_user(DECOY_USER, "")
        store_user(catalog, "bob", b"another password", ["SCRAM-SHA-256"])
        assert secret is not None
        assert catalog.kafka_user(DECOY_USER, "") == secret
        assert [(row.name, row.mechanism) for row in catalog.kafka_users()] == [
            ("", ""),
            *(("alice", mechanism) for mechanism in HASHES),
            ("bob", "SCRAM-SHA-256"),
        ]
        row = catalog.kafka_user("alice", "SCRAM-SHA-512")
        assert row is not None
        assert ScramCredential(*row[1:]).has_password(b"a long password")
