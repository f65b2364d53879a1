"""The authenticator: which method decides about a client, anonymous roles, and plugins."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from broker_core.access.authentication import (
    AuthenticationFailed,
    AuthenticationUnusable,
    Authenticator,
    InvalidRoles,
)
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.settings import AuthenticationSettings
from tests.support.htpasswd import write_htpasswd
from tests.support.tokens import data_url, der, rsa_key, token
from tests.support.verified import waited_for

PROXIES = ("proxy", "proxy2")
INVALID = "Invalid roles."
VERSION = "Must not set proxyVersion without connecting as a ProxyRole."
PEER = Peer("127.0.0.1:1", "pulsar")
WITH_CERTIFICATE = Peer("127.0.0.1:1", "pulsar", is_tls=True, common_name="alice")


def _authenticator(**table: object) -> Authenticator:
    return Authenticator(AuthenticationSettings.model_validate(table))


def test_without_settings_and_plugins_it_is_off() -> None:
    assert not _authenticator().enabled
    assert _authenticator(methods=["tls"]).enabled
    assert _authenticator(anonymous_role="guest").enabled


async def test_a_method_of_the_settings_decides() -> None:
    authenticator = _authenticator(methods=["tls"])
    assert authenticator.authenticate("tls", b"", WITH_CERTIFICATE) == Principal("alice")


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (None, "no_credentials"),
        ("", "no_credentials"),
        ("none", "no_credentials"),
        ("TLS", "unknown_method"),
        (" tls", "unknown_method"),
        ("token", "unknown_method"),
    ],
)
async def test_other_methods_are_refused(method: str | None, reason: str) -> None:
    authenticator = _authenticator(methods=["tls"])
    with pytest.raises(AuthenticationFailed) as refused:
        authenticator.authenticate(method, b"", WITH_CERTIFICATE)
    assert refused.value.reason == reason


@pytest.mark.parametrize("method", [None, "", "none", "TLS", " tls", "token"])
async def test_other_methods_are_anonymous_where_that_is_a_role(method: str | None) -> None:
    authenticator = _authenticator(methods=["tls"], anonymous_role="guest")
    assert authenticator.authenticate(method, b"", PEER) == Principal("guest")
    with pytest.raises(AuthenticationFailed):  # its credentials are wrong
        authenticator.authenticate("tls", b"", PEER)


class Plugins:
    """Answers ``badge`` with the data as the role, and passes otherwise."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, method: str, data: bytes, peer: Peer) -> Principal | None:
        self.asked.append(method)
        return Principal(data.decode()) if method == "badge" and data else None


async def test_plugins_decide_about_other_methods() -> None:
    plugins = Plugins()
    authenticator = Authenticator(AuthenticationSettings(methods=("tls",), anonymous_role="guest"), plugins)
    assert authenticator.enabled
    assert await waited_for(authenticator.authenticate("badge", b"bob", PEER)) == Principal("bob")
    with pytest.raises(AuthenticationFailed):  # a method of the settings is never a plugin's
        authenticator.authenticate("tls", b"", PEER)
    assert await waited_for(authenticator.authenticate(None, b"", PEER)) == Principal("guest")
    assert plugins.asked == ["badge", "none"]


async def test_credentials_that_no_plugin_accepts_are_not_anonymous() -> None:
    authenticator = Authenticator(AuthenticationSettings(anonymous_role="guest"), Plugins())
    with pytest.raises(AuthenticationFailed) as refused:
        await waited_for(authenticator.authenticate("badge", b"", PEER))
    assert refused.value.reason == "refused_by_plugins"


async def test_a_principal_of_a_plugin_that_has_ended_already_is_refused() -> None:
    async def plugins(method: str, data: bytes, peer: Peer) -> Principal | None:
        del method, peer
        return Principal("bob", float(data))

    authenticator = Authenticator(AuthenticationSettings(), plugins)
    later = time.time() + 60
    assert await waited_for(authenticator.authenticate("badge", str(later).encode(), PEER)) == Principal(
        "bob", later
    )
    with pytest.raises(AuthenticationFailed) as refused:
        await waited_for(authenticator.authenticate("badge", b"1", PEER))
    assert refused.value.reason == "expired"


def test_identity_follows_the_rules_of_proxies() -> None:
    authenticator = _authenticator(methods=["tls"], proxy_roles=["proxy"])
    assert authenticator.identity(Principal("proxy"), original_principal="alice") == ("proxy", "alice")
    assert authenticator.identity(Principal("alice"), original_principal=None) == ("alice", None)
    assert authenticator.identity(Principal("alice"), original_principal="") == ("alice", "")
    with pytest.raises(InvalidRoles):
        authenticator.identity(Principal("alice"), original_principal="bob")


def test_there_is_nothing_to_reload_without_files() -> None:
    authenticator = _authenticator(methods=["tls"])
    authenticator.reload()
    assert authenticator.files == ()


def test_a_key_that_cannot_be_used_names_its_setting(tmp_path: Path) -> None:
    for table, said in (
        ({"methods": ["token"], "token": {"key": f"file:{tmp_path}/no"}}, "authentication.token.key: "),
        ({"methods": ["token"], "token": {"jwks": f"file:{tmp_path}/no"}}, "authentication.token.jwks: "),
        (
            {"methods": ["token"], "token": {"key": data_url(b"hunter2")}},
            "authentication.token.key: it is no public key",
        ),
        ({"methods": ["basic"], "basic": {"file": f"{tmp_path}/no"}}, "authentication.basic.file: "),
    ):
        with pytest.raises(AuthenticationUnusable) as refused:
            _authenticator(**table)
        assert said in str(refused.value)
        assert "hunter2" not in str(refused.value)


async def test_all_methods_side_by_side_and_one_broken_file(tmp_path: Path) -> None:
    key, htpasswd = tmp_path / "key", write_htpasswd(tmp_path / "htpasswd", bob="secret")
    key.write_bytes(der(rsa_key()))
    authenticator = _authenticator(
        methods=["token", "tls", "basic"], token={"key": f"file:{key}"}, basic={"file": str(htpasswd)}
    )
    assert authenticator.files == (key, htpasswd)
    assert authenticator.authenticate("token", token({"sub": "alice"}), PEER) == Principal("alice")
    assert await waited_for(authenticator.authenticate("basic", b"bob:secret", PEER)) == Principal("bob")
    assert authenticator.authenticate("tls", b"", WITH_CERTIFICATE) == Principal("alice")
    await asyncio.to_thread(key.write_bytes, b"broken")
    write_htpasswd(htpasswd, bob="other")
    with pytest.raises(
        AuthenticationUnusable, match=rf"^authentication\.token\.key: {key}: it is no public key"
    ):
        authenticator.reload()
    assert authenticator.authenticate("token", token({"sub": "alice"}), PEER) == Principal("alice")
    assert await waited_for(authenticator.authenticate("basic", b"bob:other", PEER)) == Principal("bob")
    with pytest.raises(AuthenticationFailed):
        authenticator.authenticate("token", token({"sub": "alice"}, key=rsa_key(1)), PEER)
    authenticator.close()


def with_proxies(*roles: str) -> Authenticator:
    return Authenticator(AuthenticationSettings(proxy_roles=roles))


@pytest.mark.parametrize(
    ("role", "original", "version"),
    [
        ("proxy", "alice", None),
        ("proxy", "alice", "4.2.4"),
        ("alice", None, None),
        ("alice", "", None),  # authorization denies it everything
    ],
)
def test_roles_that_are_accepted(role: str, original: str | None, version: str | None) -> None:
    principal = Principal(role)
    found = with_proxies(*PROXIES).identity(principal, original_principal=original, proxy_version=version)
    assert found == (role, original)


@pytest.mark.parametrize(
    ("role", "original", "version", "message"),
    [
        ("proxy", None, None, INVALID),
        ("proxy", "", None, INVALID),
        ("proxy", "proxy", None, INVALID),
        ("proxy", "proxy2", None, INVALID),
        ("admin", "alice", None, INVALID),
        ("alice", "alice", None, INVALID),
        ("alice", "proxy", None, INVALID),
        ("alice", "bob", "4.2.4", INVALID),
        ("alice", None, "4.2.4", VERSION),
        ("alice", "", "", VERSION),
    ],
)
def test_roles_that_are_refused(role: str, original: str | None, version: str | None, message: str) -> None:
    with pytest.raises(InvalidRoles) as refused:
        with_proxies(*PROXIES).identity(Principal(role), original_principal=original, proxy_version=version)
    assert refused.value.message == message


def test_without_proxy_roles_nobody_names_another() -> None:
    with pytest.raises(InvalidRoles, match=INVALID):
        with_proxies().identity(Principal("alice"), original_principal="bob")
