"""Settings that let in more clients than an operator may have meant, or none: warnings at `check` and at the start."""

from __future__ import annotations

from collections.abc import Iterator

from broker_core.access.rule_warnings import odd_topics
from broker_core.settings import Settings

__all__ = ["wide_settings"]


def wide_settings(settings: Settings, *, identifies: bool = False) -> Iterator[tuple[str, str]]:
    """The wide settings by name, and what each lets in. ``identifies``: clients may have roles by other means."""
    if _is_ruled(settings):
        table = settings.authorization
        if not table.super_roles and not table.rules:
            yield "authorization", "there is no rule and no super role, so everything is denied"
        elif not (identifies or _may_have_roles(settings)):
            yield "authorization", "without authentication no client has a role, so everything is denied"
        for number, text in odd_topics(table):
            yield f"authorization.rules.{number}.topics", text
    for name, served in (("pulsar", settings.pulsar), ("http", settings.http), ("kafka", settings.kafka)):
        for network in () if served is None else served.haproxy_from:
            if network.prefixlen == 0:
                text = f"{network} is every address: any client can claim the address of another one"
                yield f"{name}.haproxy_from", text
    if _are_writes_open(settings):
        yield (
            "http.writes",
            "whoever connects from another machine may change topics: set authentication.methods, or writes = false",
        )
    yield from _wide_kafka(settings)
    super_roles = settings.authorization.super_roles
    for role in settings.authentication.proxy_roles:
        if role in super_roles:
            yield (
                "authorization.super_roles",
                f"{role!r} is one of authentication.proxy_roles too: no rule bounds what such a proxy asks for others",
            )


def _wide_kafka(settings: Settings) -> Iterator[tuple[str, str]]:
    kafka = settings.kafka
    if kafka is None:
        return
    listens = [kafka.listen] if kafka.tls is None else [kafka.listen, kafka.tls.listen]
    is_open = settings.upstream is None and not _is_ruled(settings)
    if (
        is_open
        and not (kafka.sasl.mechanisms or kafka.super_users)
        and not all(listen.is_loopback for listen in listens)
    ):
        yield (
            "kafka.listen",
            "whoever connects from another machine may change topics: set kafka.sasl.mechanisms, and rules",
        )
    readable = " and ".join(each for each in kafka.sasl.mechanisms if not each.startswith("SCRAM"))
    if readable and not kafka.listen.is_loopback:
        text = f"what {readable} send can be read on the way to kafka.listen: use [kafka.tls] from other machines"
        yield "kafka.sasl.mechanisms", text


def _is_ruled(settings: Settings) -> bool:
    """Whether rules bind anybody."""
    authorization = settings.authorization
    ruled = authorization.super_roles or authorization.rules or settings.authentication.is_on
    return authorization.mode == "rules" or (authorization.mode == "auto" and bool(ruled))


def _may_have_roles(settings: Settings) -> bool:
    """Whether any client can have a role: a plugin may authenticate, too."""
    has_users = settings.kafka is not None and bool(settings.kafka.sasl.mechanisms)
    return settings.authentication.is_on or has_users or bool(settings.plugins.enabled)


def _are_writes_open(settings: Settings) -> bool:
    """Whether everybody may change topics of the embedded catalogue over HTTP, from other machines too."""
    http = settings.http
    if http is None or not (http.api and http.writes) or settings.upstream is not None:
        return False
    if _is_ruled(settings):
        return False
    listens = [http.listen] if http.tls is None else [http.listen, http.tls.listen]
    return not all(listen.is_loopback for listen in listens)
