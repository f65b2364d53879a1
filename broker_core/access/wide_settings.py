"""Settings that let in more than an operator may have meant: warnings for `check` and for the start."""

from __future__ import annotations

from collections.abc import Iterator

from broker_core.settings import Settings

__all__ = ["wide_settings"]


def wide_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Each such setting by its name, and what it lets in."""
    for network in settings.pulsar.haproxy_from:
        if network.prefixlen == 0:
            yield (
                "pulsar.haproxy_from",
                f"{network} is every address: whoever connects can claim the address of another client",
            )
    super_roles = settings.authorization.super_roles
    for role in settings.authentication.proxy_roles:
        if role in super_roles:
            yield (
                "authorization.super_roles",
                f"{role!r} is one of authentication.proxy_roles too: no rule bounds what such a proxy asks for others",
            )
