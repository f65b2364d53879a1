"""Redaction of source addresses in results, reports and errors: no secret is shown.

Parts of an address are shown only if it can be read in one way. Of any other address, such as one with an unescaped
``@`` in a password, only the scheme is shown. Options (``?...``) may be passwords or signatures and are never shown.
"""

from __future__ import annotations

import re
from typing import Final

from broker_core.plugin_cli import RunningBroker

__all__ = ["redacted_message", "redacted_source"]

_HIDDEN: Final = "..."
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_POSTGRES: Final = ("postgresql", "postgres")
_HOST: Final = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?"
_DATABASE: Final = re.compile(
    rf"(?:[^@/?#\[\]]*@)?(?P<hosts>(?:{_HOST}(?:,{_HOST})*)?)(?P<database>(?:/[A-Za-z0-9._-]*)?)(?:\?[^@#]*)?"
)
_PLACE: Final = re.compile(r"(?:(?P<user>[^@/?#]*)@)?(?P<host>[^@/?#]*)(?P<path>(?:/[^@?#]*)?)(?:[?#][^@]*)?")
#: Schemes with a container in front of the ``@``: ``abfss://CONTAINER@ACCOUNT/path``.
_CONTAINER: Final = re.compile(r"[a-z0-9$][a-z0-9-]{2,62}")
_WITH_CONTAINER: Final = frozenset({"abfs", "abfss", "wasb", "wasbs"})
#: A connection string with a password, which is no source but may be given for one.
_PASSWORD: Final = re.compile(r"password\s*=", re.IGNORECASE)
#: The beginning of Spark's errors: ``[PATH_NOT_FOUND] Path does not exist: ...``.
_CONDITION: Final = re.compile(r"\[[A-Z0-9_.]+\]")


def redacted_source(source: str | RunningBroker) -> str:
    """An address without user, password and options. Paths and tables as they are."""
    if not isinstance(source, str):
        source = source.url
    scheme, separator, rest = source.partition("://")
    if not separator:
        name, colon, _ = source.partition(":")
        if colon and name.lower() in (*_POSTGRES, "jdbc"):
            return f"{name}:{_HIDDEN}"
        return _HIDDEN if _PASSWORD.search(source) else source
    if not _SCHEME.fullmatch(scheme):
        name = scheme.partition(":")[0]
        return f"{name}:{_HIDDEN}" if _SCHEME.fullmatch(name) else _HIDDEN
    if scheme.lower() in _POSTGRES:
        database = _DATABASE.fullmatch(rest)
        return f"{scheme}://{_HIDDEN if database is None else database['hosts'] + database['database']}"
    if scheme.lower() == "file" and rest.startswith("/"):
        return f"{scheme}://{re.split('[?#]', rest, maxsplit=1)[0]}"
    place = _PLACE.fullmatch(rest)
    if place is None:
        return f"{scheme}://{_HIDDEN}"
    container = scheme.lower() in _WITH_CONTAINER and _CONTAINER.fullmatch(place["user"] or "")
    return f"{scheme}://{place['user'] + '@' if container else ''}{place['host']}{place['path']}"


def redacted_message(source: str, said: str) -> str:
    """A message about a source from elsewhere. Only its error condition, if the address may have secrets."""
    if redacted_source(source) == source:
        return said
    condition = _CONDITION.match(said)
    return condition[0] if condition else "its reader refuses it"
