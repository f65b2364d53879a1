"""[authentication]: settings that do not go together are refused in words that name one of them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from broker_core.settings import (
    AuthenticationSettings,
    SettingsError,
    TokenSettings,
    find_problems,
    load_settings,
)
from broker_core.settings.mask_secrets import masked
from tests.support.files import file_with
from tests.support.narrowed import present

KEY = base64.b64encode(b"x" * 32).decode()


def _load(tmp_path: Path, text: str) -> AuthenticationSettings:
    file = file_with(tmp_path / "broker-core.toml", text)
    return load_settings(file, environment={}).settings.authentication


def test_it_is_off_by_default() -> None:
    settings = AuthenticationSettings()
    assert not settings.is_on
    assert settings.token is None
    assert settings.basic is None
    assert TokenSettings().algorithms == ("RS256",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('methods = ["token"]', "authentication.methods: method 'token' needs authentication.token.key"),
        (
            'methods = ["token"]\n[authentication.token]\nkey = "file:a"\njwks = "file:b"',
            "authentication.token.jwks: authentication.token.key is set too",
        ),
        ('methods = ["basic"]', "authentication.methods: method 'basic' needs authentication.basic.file"),
        ('methods = ["tls"]', "authentication.methods: method 'tls' needs pulsar.tls.client_ca"),
        (
            'methods = ["tls"]\n[pulsar.tls]\ncertificate = "a"\nkey = "b"',
            "authentication.methods: method 'tls' needs pulsar.tls.client_ca",
        ),
        ('methods = ["tls", "tls"]', "authentication.methods: 'tls' is named twice"),
        ('methods = ["oauth"]', "authentication.methods: "),
        ('proxy_roles = [""]', "authentication.proxy_roles: '' is no role"),
        ('anonymous_role = " "', "authentication.anonymous_role: ' ' is no role"),
        (
            'anonymous_role = "a"\nproxy_roles = ["a"]',
            "authentication.proxy_roles: 'a' is the anonymous role",
        ),
        ('[authentication.token]\nkey = "secret"', "authentication.token.key: it is none of 'file:PATH'"),
        ("[authentication.token]\nalgorithms = []", "authentication.token.algorithms: "),
        ('[authentication.token]\nalgorithms = ["none"]', "authentication.token.algorithms: "),
        (
            '[authentication.token]\nalgorithms = ["HS256", "RS256"]',
            "authentication.token.algorithms: algorithms of secrets",
        ),
        ('[authentication.token]\nsecret = "x"', "unknown key 'authentication.token.secret'"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        _load(tmp_path, f"[authentication]\n{text}\n")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_paths_are_taken_from_the_folder_of_the_file(tmp_path: Path) -> None:
    settings = _load(
        tmp_path,
        '[authentication]\nmethods = ["token", "basic"]\n[authentication.token]\nkey = "file:keys/public.der"\n'
        '[authentication.basic]\nfile = "htpasswd"\n',
    )
    assert settings.is_on
    assert settings.token is not None
    assert present(settings.token.key).path == tmp_path / "keys" / "public.der"
    assert present(settings.basic).file == tmp_path / "htpasswd"


def test_all_problems_are_found_at_once(tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "broker-core.toml",
        '[authentication]\nmethods = ["token", "basic"]\n[log]\nlevel = "loud"\n',
    )
    loaded, problems = find_problems(file, environment={})
    assert loaded is not None
    assert {problem.path for problem in problems} == {("authentication", "methods"), ("log", "level")}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("file:/etc/public.der", "file:/etc/public.der"),
        ("env:TOKEN_KEY", "env:TOKEN_KEY"),
        (f"data:;base64,{KEY}", "********"),
        ("", ""),
    ],
)
def test_config_shows_where_a_key_is_and_no_key(value: str, shown: str) -> None:
    settings = TokenSettings.model_validate({"key": value})
    written: Any = settings.model_dump(mode="json")["key"]
    assert written == value
    assert masked(("authentication", "token", "key"), written) == shown
    assert KEY not in repr(settings)


def test_a_plugins_key_has_no_such_forms() -> None:
    assert masked(("plugins", "mine", "password"), "env:HUNTER2") == "********"


@pytest.mark.parametrize("table", ["[pulsar.tls]", "[http.tls]", "[kafka.tls]"])
def test_certificates_need_authorities_of_clients(tmp_path: Path, table: str) -> None:
    rest = f'{table}\ncertificate = "a"\nkey = "b"\nclient_ca = "c"\n'
    assert _load(tmp_path, f'[authentication]\nmethods = ["tls"]\n{rest}').methods == ("tls",)
