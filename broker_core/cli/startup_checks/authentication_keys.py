"""The keys and files of ``[authentication]``: readable, usable, and closed to other users."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from broker_core.counted import counted
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import BasicSettings, Settings, TokenSettings

__all__ = ["authentication_checks"]


def authentication_checks(every: Settings) -> Iterator[Check]:
    """Findings about the methods of authentication, and the files that each needs."""
    settings, kafka = every.authentication, every.kafka
    if not settings.is_on and kafka is not None and kafka.sasl.mechanisms:
        yield Check.ok(
            "authentication", "off, except for Kafka clients: every other client is let in, and has no role"
        )
    elif not settings.is_on:
        yield Check.ok("authentication", "off: every client is let in, and none has a role")
    else:
        methods = ", ".join(settings.methods) or "no method"
        others = (
            f"others are {settings.anonymous_role!r}" if settings.anonymous_role else "others are refused"
        )
        yield Check.ok("authentication", f"{methods}; {others}")
    for method, table in (("token", settings.token), ("basic", settings.basic)):
        if table is not None and method not in settings.methods:
            yield Check.warning(
                f"authentication.{method}", f"it is not used: {method!r} is not one of authentication.methods"
            )
    if "token" in settings.methods and settings.token is not None:
        yield from _token_checks(settings.token)
    if "basic" in settings.methods and settings.basic is not None:
        yield from _basic_checks(settings.basic)


def _token_checks(settings: TokenSettings) -> Iterator[Check]:
    from broker_core.access import MOST_TRIED, TokenKeys, unusable_reason

    name = f"authentication.token.{'key' if settings.jwks is None else 'jwks'}"
    source = settings.jwks or settings.key
    try:
        keys = TokenKeys.read(settings)
    except (OSError, ValueError) as error:
        yield Check.error(name, unusable_reason(error))
        return
    kinds = ", ".join(keys.kinds)
    yield Check.ok(name, f"{source}: {kinds}, for {', '.join(settings.algorithms)}")
    for algorithm in keys.crowded:
        yield Check.warning(
            name,
            f"the set has more than {MOST_TRIED} keys for {algorithm}: a token that names none ('kid') is refused",
        )
    if source is not None and source.path is not None and settings.algorithms[0].startswith("HS"):
        yield from _shared(name, source.path, "make tokens of any role")


def _basic_checks(settings: BasicSettings) -> Iterator[Check]:
    from broker_core.access import read_htpasswd, unusable_reason

    name = "authentication.basic.file"
    if settings.file is None:
        return
    try:
        users = read_htpasswd(settings.file)
    except (OSError, ValueError) as error:
        yield Check.error(name, unusable_reason(error))
        return
    yield Check.ok(name, f"{settings.file}: {counted(len(users), 'user')}")
    weak = sum(hashed.startswith("$apr1$") for hashed in users.values())
    if weak:
        yield Check.warning(
            name,
            f"{weak} of {counted(len(users), 'hash', 'hashes')} with $apr1$, which is weak: `htpasswd -B` "
            "makes better ones",
        )
    yield from _shared(name, settings.file, "guess passwords without being noticed")


def _shared(name: str, path: Path, danger: str) -> Iterator[Check]:
    """A warning if everybody on this machine can read a secret."""
    if path.stat().st_mode & stat.S_IROTH:
        yield Check.warning(
            name, f"everybody on this machine can read {path}, and {danger}: `chmod o-r {path}`"
        )
