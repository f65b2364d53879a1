"""$apr1$: the hashes that `openssl passwd -apr1` prints."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from broker_core.access.authentication.basic.htpasswd_file import apr1_digest


@pytest.mark.parametrize(
    ("password", "salt", "digest"),
    [
        ("secret", "abcdefgh", "h9FWgUz3n9YxylKLlR5SQ/"),
        ("", "abcdefgh", "L.PT565ESX4Tp2bqNs7Ie."),
        ("a much longer password than sixteen bytes", "abcdefgh", "Eqv4oIyMsS.tjfvQCJYY1/"),
        ("pässword", "x1", "8k0zyg99onhfdnBntfMQq1"),
    ],
)
def test_published_hashes(password: str, salt: str, digest: str) -> None:
    assert apr1_digest(password.encode(), salt.encode()) == digest


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 31, 32, 33, 64, 100])
def test_any_length_is_hashed_as_openssl_does(length: int) -> None:
    password = "Ab1 "[:1] + "x" * (length - 1)
    printed = subprocess.run(
        ["openssl", "passwd", "-apr1", "-salt", "saltsalt", password],
        capture_output=True,
        check=True,
        text=True,
    ).stdout.strip()
    assert printed == f"$apr1$saltsalt${apr1_digest(password.encode(), b'saltsalt')}"
