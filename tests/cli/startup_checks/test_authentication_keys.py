"""The lines of `broker-core check` about keys and htpasswd files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jwt.algorithms import RSAAlgorithm

from broker_core.cli.startup_checks.authentication_keys import authentication_checks
from broker_core.settings import AuthenticationSettings, Settings
from tests.support.htpasswd import write_htpasswd
from tests.support.tokens import SECRET, data_url, der, rsa_key


def _found(**table: Any) -> list[tuple[str, str, str]]:
    # Of the settings only these two tables are looked at; validated alone, since methods need listeners too.
    settings = Settings().model_copy(update={"authentication": AuthenticationSettings.model_validate(table)})
    checks = authentication_checks(settings)
    return [(each.level, each.name, each.text) for each in checks]


def _private(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_off() -> None:
    assert _found() == [("ok", "authentication", "off: every client is let in, and none has a role")]
    ((_, _, _), (level, name, text)) = _found(token={"key": "file:no"})
    assert (level, name) == ("warning", "authentication.token")
    assert "not used" in text


def test_off_except_for_clients_with_sasl() -> None:
    (check,) = authentication_checks(
        Settings.model_validate({"kafka": {"sasl": {"mechanisms": ["SCRAM-SHA-256"]}}})
    )
    assert check.text == "off, except for Kafka clients: every other client is let in, and has no role"


def test_a_public_key(tmp_path: Path) -> None:
    file = _private(tmp_path / "public.der", der(rsa_key()))
    file.chmod(0o644)  # everybody may have it
    assert _found(methods=["token", "tls"], anonymous_role="guest", token={"key": f"file:{file}"}) == [
        ("ok", "authentication", "token, tls; others are 'guest'"),
        ("ok", "authentication.token.key", f"file:{file}: an RSA key of 2048 bits, for RS256"),
    ]


def test_a_secret_that_everybody_can_read(tmp_path: Path) -> None:
    file = _private(tmp_path / "secret", SECRET)
    table = {"key": f"file:{file}", "algorithms": ["HS256"]}
    assert [each[0] for each in _found(methods=["token"], token=table)] == ["ok", "ok"]
    file.chmod(0o644)
    level, name, text = _found(methods=["token"], token=table)[-1]
    assert (level, name) == ("warning", "authentication.token.key")
    assert "chmod o-r" in text


def test_the_text_of_a_key_is_not_shown() -> None:
    found = _found(methods=["token"], token={"key": data_url(SECRET), "algorithms": ["HS256"]})
    assert found[-1] == (
        "ok",
        "authentication.token.key",
        "data:;base64,********: a secret of 64 bytes, for HS256",
    )


def test_more_keys_than_are_tried() -> None:
    public = RSAAlgorithm.to_jwk(rsa_key().public_key(), as_dict=True)
    members = [public | {"kid": str(number)} for number in range(9)]
    keys = data_url(json.dumps({"keys": members}).encode())
    level, name, text = _found(methods=["token"], token={"jwks": keys, "algorithms": ["RS256"]})[-1]
    assert (level, name) == ("warning", "authentication.token.jwks")
    assert text == "the set has more than 8 keys for RS256: a token that names none ('kid') is refused"


@pytest.mark.parametrize(
    ("table", "name", "said"),
    [
        ({"key": "file:/nowhere/key"}, "authentication.token.key", "/nowhere/key: No such file or directory"),
        (
            {"jwks": "file:/nowhere/key"},
            "authentication.token.jwks",
            "/nowhere/key: No such file or directory",
        ),
        (
            {"key": "env:BROKER_CORE_NO_KEY"},
            "authentication.token.key",
            "the variable BROKER_CORE_NO_KEY is not set",
        ),
        (
            {"key": data_url(der(rsa_key())), "algorithms": ["ES256"]},
            "authentication.token.key",
            "not one for ES256",
        ),
        (
            {"key": data_url(der(rsa_key())), "algorithms": ["HS256"]},
            "authentication.token.key",
            "it is no secret",
        ),
    ],
)
def test_keys_that_cannot_be_used(table: dict[str, Any], name: str, said: str) -> None:
    level, found, text = _found(methods=["token"], token=table)[-1]
    assert (level, found) == ("error", name)
    assert said in text


def test_passwords(tmp_path: Path) -> None:
    file = write_htpasswd(tmp_path / "htpasswd", alice="secret", bob="secret")
    file.chmod(0o600)
    table = {"methods": ["basic"], "basic": {"file": str(file)}}
    assert _found(**table)[1:] == [("ok", "authentication.basic.file", f"{file}: 2 users")]
    file.chmod(0o604)
    assert [each[0] for each in _found(**table)] == ["ok", "ok", "warning"]
    _private(file, b"alice:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n")
    assert [(each[0], "1 of 1 hash with $apr1$" in each[2]) for each in _found(**table)[2:]] == [
        ("warning", True)
    ]
    _private(file, b"alice")
    assert _found(**table)[-1][0] == "error"
    file.unlink()
    assert _found(**table)[-1][0] == "error"
