"""The official Python client (C++ inside) with credentials, against a server without brokers.

Its regex consumers list when they subscribe, and look again after 60 s. An empty namespace needs no broker.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest

from broker_core.access.authentication import Authenticator
from broker_core.settings import AuthenticationSettings
from tests.support.clock import AGES, wall_clock
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_serving import Serving, serving
from tests.support.tokens import data_url, der, rsa_key, token


@pytest.fixture
def quiet() -> logging.Logger:
    logger = logging.getLogger("tests.pulsar_client")
    logger.setLevel(logging.CRITICAL)
    return logger


def authenticator(tmp_path: Path) -> Authenticator:
    file = write_htpasswd(tmp_path / "htpasswd", alice="s3cret")
    settings = {
        "methods": ["token", "basic"],
        "token": {"key": data_url(der(rsa_key()))},
        "basic": {"file": str(file)},
    }
    return Authenticator(AuthenticationSettings.model_validate(settings))


def client(s: Serving, authentication: Any, quiet: logging.Logger, seconds: int = 30) -> pulsar.Client:
    url = f"pulsar://127.0.0.1:{s.address[1]}"
    return pulsar.Client(url, authentication=authentication, operation_timeout_seconds=seconds, logger=quiet)


def subscribed(made: pulsar.Client) -> None:
    made.subscribe(re.compile("persistent://acme/empty/.*"), "subscription")


def outcome(s: Serving, name: str) -> float:
    return s.sample("authentications_total", transport="pulsar", outcome=name)


def of_alice(seconds: float) -> str:
    return token({"sub": "alice", "exp": time.time() + seconds}).decode()


@pytest.mark.parametrize(
    "authentication",
    [
        lambda: pulsar.AuthenticationToken(of_alice(3600)),
        lambda: pulsar.AuthenticationToken(lambda: of_alice(3600)),
        lambda: pulsar.AuthenticationBasic("alice", "s3cret"),
    ],
)
async def test_a_regex_consumer_subscribes(
    authentication: Callable[[], Any], tmp_path: Path, quiet: logging.Logger
) -> None:
    checks = authenticator(tmp_path)
    async with serving(MemoryLister(at_once=False), authenticator=checks) as s:
        made = client(s, authentication(), quiet)
        try:
            await asyncio.to_thread(subscribed, made)
            assert [request.asker.role for request in s.lister.asked] == ["alice"]
        finally:
            await asyncio.to_thread(made.close)
        checks.close()


async def test_it_renews_a_token_that_ends_in_its_session(
    tmp_path: Path, quiet: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = wall_clock(monkeypatch)
    tokens = [of_alice(AGES), of_alice(9 * AGES)]
    async with serving(authenticator=authenticator(tmp_path)) as s:
        made = client(
            s, pulsar.AuthenticationToken(lambda: tokens.pop(0) if len(tokens) > 1 else tokens[0]), quiet
        )
        try:
            await asyncio.to_thread(subscribed, made)
            before = outcome(s, "renewed")
            clock.ahead = AGES + 60
            await eventually(lambda: outcome(s, "renewed") > before)
            assert s.sample("connections_closed_total", reason="expired") == 0
            await asyncio.to_thread(made.get_topic_partitions, "acme/empty/topic")
        finally:
            await asyncio.to_thread(made.close)


async def test_it_reconnects_where_it_has_no_new_token(
    tmp_path: Path, quiet: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = wall_clock(monkeypatch)
    async with serving(authenticator=authenticator(tmp_path)) as s:
        made = client(s, pulsar.AuthenticationToken(of_alice(AGES)), quiet)
        try:
            await asyncio.to_thread(subscribed, made)
            clock.ahead = AGES + 60
            await eventually(lambda: outcome(s, "expired") >= 1)
            await eventually(lambda: s.server.connections == 0)
        finally:
            await asyncio.to_thread(made.close)


async def test_it_is_disconnected_when_its_user_is_removed_and_another_goes_on(
    tmp_path: Path, quiet: logging.Logger
) -> None:
    checks = authenticator(tmp_path)
    async with serving(authenticator=checks) as s:
        removed = client(s, pulsar.AuthenticationBasic("alice", "s3cret"), quiet, seconds=3)
        staying = client(s, pulsar.AuthenticationToken(of_alice(3600)), quiet)
        try:
            for made in (removed, staying):
                await asyncio.to_thread(subscribed, made)
            write_htpasswd(tmp_path / "htpasswd", bob="s3cret")
            checks.reload()
            await s.admission.live.sweep()
            await eventually(lambda: outcome(s, "bad_password") >= 1)
            await eventually(lambda: len(s.admission.live) == 1)
            with pytest.raises(pulsar.PulsarException):
                await asyncio.to_thread(removed.get_topic_partitions, "acme/empty/topic")
            await asyncio.to_thread(staying.get_topic_partitions, "acme/empty/topic")
        finally:
            for made in (removed, staying):
                await asyncio.to_thread(made.close)
        checks.close()


async def test_what_is_refused_ends_with_its_own_time(tmp_path: Path, quiet: logging.Logger) -> None:
    refused = pulsar.AuthenticationToken(token({"sub": "alice"}, key=rsa_key(1)).decode())
    checks = authenticator(tmp_path)
    async with serving(MemoryLister(at_once=False), authenticator=checks) as s:
        made = client(s, refused, quiet, seconds=3)
        try:
            with pytest.raises(pulsar.PulsarException):
                await asyncio.to_thread(subscribed, made)
        finally:
            await asyncio.to_thread(made.close)
        await eventually(lambda: outcome(s, "bad_token") >= 1)
        assert outcome(s, "ok") == 0
        assert not s.lister.asked
        checks.close()
