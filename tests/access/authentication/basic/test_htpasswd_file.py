"""htpasswd files: their forms, and what is wrong with them in words that show no hash."""

from __future__ import annotations

from pathlib import Path

import bcrypt
import pytest

from broker_core.access.authentication.basic.htpasswd_file import LONGEST_PASSWORD, matches, read_htpasswd
from tests.support.htpasswd import bcrypt_hash

APR1 = "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/"


def test_a_file_has_users_comments_and_blank_lines(tmp_path: Path) -> None:
    file = tmp_path / "htpasswd"
    hashed = bcrypt_hash("secret")
    file.write_text(f"# users\n\nalice:{hashed}\r\nbob smith:{APR1}\nkäthe:{hashed}")
    assert read_htpasswd(file) == {"alice": hashed, "bob smith": APR1, "käthe": hashed}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no user"),
        ("# nobody\n", "has no user"),
        ("alice", "line 1: it is not USER:HASH"),
        ("# a\nalice:", "line 2: the hash is neither bcrypt"),
        ("alice:hunter2", "line 1: the hash is neither bcrypt"),
        ("alice:{SHA}hunter2", "line 1: the hash is neither bcrypt"),
        ("alice:$5$hunter2$hunter2", "line 1: the hash is neither bcrypt"),
        ("alice:$apr1$hunter2hunter2$x", "line 1: the hash is neither bcrypt"),
        (f"alice:{APR1}\nalice:{APR1}", "line 2: the user 'alice' is there twice"),
        (f":{APR1}", "line 1: the user is no role"),
        (f"a\x1bb:{APR1}", "line 1: the user is no role"),
        ("alice:$2y$17$" + "x" * 53, "line 1: the cost of bcrypt is 17"),
        ("alice:$2y$03$" + "x" * 53, "line 1: the cost of bcrypt is 3"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "htpasswd"
    file.write_text(text)
    with pytest.raises(ValueError, match=said) as refused:
        read_htpasswd(file)
    assert "hunter2" not in str(refused.value)
    assert APR1 not in str(refused.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "htpasswd").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not UTF-8"):
        read_htpasswd(tmp_path / "htpasswd")
    with pytest.raises(FileNotFoundError):
        read_htpasswd(tmp_path / "none")


@pytest.mark.parametrize("prefix", ["2a", "2b", "2y"])
def test_bcrypt(prefix: str) -> None:
    hashed = bcrypt_hash("secret", prefix=prefix)
    assert matches(hashed, b"secret")
    assert not matches(hashed, b"Secret")
    assert not matches(hashed, b"secret\x00")
    assert not matches(hashed, b"")


def test_bcrypt_reads_72_bytes_as_htpasswd_does() -> None:
    hashed = bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()
    assert matches(hashed, b"x" * 80)
    assert not matches(hashed, b"x" * 71)


def test_apr1() -> None:
    assert matches(APR1, b"secret")
    assert not matches(APR1, b"secret2")


@pytest.mark.parametrize("hashed", [APR1, bcrypt_hash("secret")], ids=["apr1", "bcrypt"])
def test_a_very_long_password_is_not_hashed(hashed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "broker_core.access.authentication.basic.htpasswd_file"
    monkeypatch.setattr(f"{module}.apr1_digest", None)
    monkeypatch.setattr(f"{module}.bcrypt", None)
    assert not matches(hashed, b"x" * (LONGEST_PASSWORD + 1))
