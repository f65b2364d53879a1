"""[upstream]: what does not go together is refused in words, and no token is shown anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.settings import (
    LoadedSettings,
    SettingsError,
    UpstreamSettings,
    find_problems,
    load_settings,
    masked,
)
from tests.support.files import file_with
from tests.support.narrowed import present

SECRET = "eyJhbGciOiJub25lIn0.c2VjcmV0.c2VjcmV0"
URL = 'service_url = "pulsar+ssl://broker:6651"\n'
KEY = 'methods = ["token"]\ntoken.key = "env:KEY"\n'


def load(tmp_path: Path, upstream: str, authentication: str = "") -> LoadedSettings:
    file = file_with(
        tmp_path / "broker-core.toml", f"[upstream]\n{URL}{upstream}\n[authentication]\n{authentication}\n"
    )
    return load_settings(file, environment={})


def test_nobody_s_rights_by_default() -> None:
    settings = UpstreamSettings(service_url="pulsar://a")
    assert (settings.forward, settings.token, settings.token_command, settings.tls) == (
        "gateway",
        None,
        (),
        None,
    )
    assert not settings.has_own_credentials
    assert not settings.ready


@pytest.mark.parametrize(
    ("upstream", "authentication", "said"),
    [
        ('token = "env:A"\ntoken_command = ["x"]', "", "upstream.token_command: upstream.token is set too"),
        (
            '[upstream.snapshots]\ntoken = "env:A"\ntoken_command = ["x"]',
            "",
            "upstream.snapshots.token_command: upstream.snapshots.token is set too",
        ),
        ('[upstream.snapshots]\nmax_age = "0.5s"', "", "upstream.snapshots.max_age"),
        ('admin_url = "pulsar://a:1"', "", "upstream.admin_url"),
        ('admin_url = "http://u@a:1"', "", "upstream.admin_url"),
        ('listing_depends_on = ["pattern"]', "", "upstream.listing_depends_on"),
        ('forward = "client"\ntoken = "env:A"', KEY, "upstream.token: the gateway has no use for a token"),
        ('forward = "client"\ntoken_command = ["x"]', KEY, "upstream.token_command: the gateway has no use"),
        (
            'forward = "client"\noriginal_auth_data = true',
            KEY,
            "upstream.original_auth_data: .* they are sent",
        ),
        ('forward = "client"', "", 'upstream.forward: .* of "token" and "basic", and none is set'),
        ('forward = "client"', 'methods = ["tls"]', "upstream.forward: .*, not 'tls'"),
        ('forward = "client"', KEY + 'anonymous_role = "a"', "upstream.forward: .*anonymous_role"),
        (
            "original_auth_data = true",
            KEY,
            "upstream.original_auth_data: the gateway needs credentials of its",
        ),
        ('original_auth_data = true\ntoken = "env:A"', "", "upstream.original_auth_data: clients send no"),
        ('tls.key = "a.pem"', "", r"upstream.tls.key: its certificate is missing"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, upstream: str, authentication: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load(tmp_path, upstream, authentication)


def test_tls_needs_an_address_of_tls(tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "broker-core.toml", '[upstream]\nservice_url = "pulsar://a"\ntls.ca = "ca.pem"'
    )
    with pytest.raises(SettingsError, match=r"upstream.service_url: upstream.tls is set: .* pulsar\+ssl"):
        load_settings(file, environment={})


def test_relative_files_belong_to_the_settings_file(tmp_path: Path) -> None:
    settings = present(load(tmp_path, 'token = "file:token"\ntls.ca = "ca.pem"').settings.upstream)
    assert present(settings.token).path == tmp_path / "token"
    assert present(settings.tls).ca == tmp_path / "ca.pem"
    assert settings.has_own_credentials


@pytest.mark.parametrize("forward", ['forward = "client"', f'token = "{SECRET}"\noriginal_auth_data = true'])
def test_credentials_of_clients_may_be_passed_on(tmp_path: Path, forward: str) -> None:
    assert load(tmp_path, forward, KEY).settings.upstream is not None


def test_a_token_in_the_settings_is_shown_nowhere(tmp_path: Path) -> None:
    loaded = load(tmp_path, f'token = "{SECRET}"')
    upstream = present(loaded.settings.upstream)
    assert present(upstream.token).read() == SECRET.encode()
    assert SECRET not in repr(loaded.settings)
    shown = {setting.path: masked(setting.path, setting.value) for setting in loaded.in_force()}
    assert shown["upstream", "token"] == "********"
    command = load(tmp_path, 'token_command = ["fetch", "--password", "secret"]')
    assert "secret" not in repr(command.settings)
    shown = {setting.path: masked(setting.path, setting.value) for setting in command.in_force()}
    assert "secret" not in str(shown["upstream", "token_command"])


@pytest.mark.parametrize(
    "line",
    [
        f'token = "{SECRET} x"',
        f'token = ["{SECRET}"]',
        f'token_command = "fetch {SECRET}"',
        f'token_command = [["{SECRET}"]]',
    ],
)
def test_errors_show_no_token(tmp_path: Path, line: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(tmp_path, line)
    assert SECRET not in str(refused.value)
    assert SECRET not in str(refused.value.__cause__)
    _, problems = find_problems(tmp_path / "broker-core.toml", environment={})
    assert problems
    assert not any(SECRET in problem.text for problem in problems)


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (SECRET, "it is the token itself"),
        ("a.b.c", "it is the token itself"),
        ("/run/secrets/token", "looks like a path"),
        ("./token", "looks like a path"),
        ("~/token", "looks like a path"),
        ("gateway.jwt", "looks like a path"),
        ("file:/run/secrets/token", None),
        ("", None),
    ],
)
def test_a_token_in_the_settings_is_warned_of(token: str, said: str | None) -> None:
    upstream = UpstreamSettings.model_validate({"service_url": "pulsar://a:1", "token": token})
    warning = upstream.token_warning
    assert (said is None) == (warning is None)
    if said is not None and warning is not None:
        assert said in warning
        assert token not in warning
