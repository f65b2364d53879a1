"""The official client of a consumer: authentication and TLS as for the lookups, and its options checked."""

from __future__ import annotations

import asyncio
import inspect
import logging
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

import pulsar
import pulsar.asyncio

from broker_core.client import ClientTls, Credentials

__all__ = ["check_subscribe_options", "official_client"]

_log = logging.getLogger("broker_core.consumer")
#: Options of the official `subscribe` that the consumer sets itself, with the argument to use instead.
_OWN: Final = {
    "topic": "topics_pattern",
    "subscription_name": "subscription_name",
    "receiver_queue_size": "queue_size",
    "max_total_receiver_queue_size_across_partitions": "queue_size",
    "pattern_auto_discovery_period": "period",
    "regex_subscription_mode": "mode",
    "is_pattern_topic": "topics_pattern",
    "batch_receive_policy": "the arguments of batch_receive()",
    "message_listener": "receive()",
}
#: Seconds that a thread of the client waits for credentials.
_CREDENTIALS_SECONDS: Final = 30.0


def check_subscribe_options(options: Mapping[str, Any]) -> None:
    """Raise :exc:`TypeError` for an option that the official `subscribe` lacks, or that the consumer sets."""
    known = inspect.signature(pulsar.asyncio.Client.subscribe).parameters
    for name in options:
        if name in _OWN:
            raise TypeError(f"a RegexConsumer sets {name} itself: give {_OWN[name]}")
        if name not in known:
            raise TypeError(f"a RegexConsumer has no option {name}, nor has the official client's subscribe")


async def official_client(
    service_url: str,
    *,
    auth: Any = None,
    tls: ClientTls | None = None,
    operation_timeout: float = 30.0,
    connect_timeout: float = 10.0,
    options: Mapping[str, Any] | None = None,
) -> pulsar.asyncio.Client:
    """A client with the authentication and TLS of a ``LookupClient``; ``options`` of ``pulsar.Client`` go before both.

    Its log has warnings and errors only, on standard error. Raises what the official client raises.
    """
    settings: dict[str, Any] = {
        "logger": pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/stderr"),
        "operation_timeout_seconds": max(1, round(operation_timeout)),
        "connection_timeout_ms": max(1, round(connect_timeout * 1000)),
        "authentication": await _authentication(auth),
        **_tls_settings(tls or ClientTls()),
        **(options or {}),
    }
    return pulsar.asyncio.Client(service_url, **settings)


def _tls_settings(tls: ClientTls) -> dict[str, Any]:
    # Without an authority, the system's, as for the lookups: the official client has a list of its own.
    ca = tls.ca or ssl.get_default_verify_paths().cafile
    settings: dict[str, Any] = {
        "tls_trust_certs_file_path": None if ca is None else str(ca),
        "tls_validate_hostname": tls.verify_hostname,
    }
    if tls.certificate is not None:
        settings["tls_certificate_file_path"] = str(tls.certificate)
        settings["tls_private_key_file_path"] = str(tls.key or tls.certificate)
    return settings


async def _authentication(auth: Any) -> pulsar.Authentication | None:
    if auth is None:
        return None
    credentials: Credentials = auth if isinstance(auth, Credentials) else auth.credentials
    if credentials.method == "token":
        # Before the first connection, so that a missing token is an error here.
        first = await credentials.current()
        return pulsar.AuthenticationToken(_token_source(credentials, first or b""))
    if credentials.method == "tls":
        return pulsar.AuthenticationTLS(str(auth.certificate), str(auth.key or auth.certificate))
    if credentials.method == "basic":
        user, _, password = (await credentials.current() or b"").decode().partition(":")
        return pulsar.AuthenticationBasic(user, password)
    raise ValueError(f"the official client is not given credentials of the method {credentials.method}")


def _token_source(credentials: Credentials, first: bytes) -> Callable[[], str]:
    """A function that gives the current token to a thread of the client, for each connection and each challenge."""
    loop = asyncio.get_running_loop()
    last = [first.decode()]

    def current() -> str:
        asking = credentials.current()
        try:
            future = asyncio.run_coroutine_threadsafe(asking, loop)
            last[0] = (future.result(_CREDENTIALS_SECONDS) or b"").decode()
        # An exception would end the client's thread; the server refuses an old token in words.
        except Exception as error:  # noqa: BLE001
            asking.close()
            _log.warning("no new token, the last one is used: %s", error)
        return last[0]

    return current
