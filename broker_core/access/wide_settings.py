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
    if _are_writes_open(settings):
        yield (
            "http.writes",
            "whoever connects from another machine may change topics: set authentication.methods, or writes = false",
        )
    super_roles = settings.authorization.super_roles
    for role in settings.authentication.proxy_roles:
        if role in super_roles:
            yield (
                "authorization.super_roles",
                f"{role!r} is one of authentication.proxy_roles too: no rule bounds what such a proxy asks for others",
            )


def _are_writes_open(settings: Settings) -> bool:
    """Whether everybody may change topics of the embedded catalogue over HTTP, from other machines too."""
    http, authorization = settings.http, settings.authorization
    if http is None or not (http.api and http.writes) or settings.upstream is not None:
        return False
    ruled = authorization.super_roles or authorization.rules or settings.authentication.is_on
    if authorization.mode == "rules" or (authorization.mode == "auto" and ruled):
        return False
    listens = [http.listen] if http.tls is None else [http.listen, http.tls.listen]
    return not all(listen.is_loopback for listen in listens)
