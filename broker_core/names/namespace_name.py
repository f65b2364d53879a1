"""The name of a namespace: ``tenant/namespace`` of ``[-=:.\\w]`` (ASCII), as Pulsar's ``NamespaceName`` checks it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from broker_core.errors import InvalidName
from broker_core.immutable import seal, seal_value
from broker_core.redaction import quoted

__all__ = ["MAX_NAMESPACE", "NamespaceName"]

#: The longest name of a namespace, in characters (which are ASCII): clients choose it, and it is kept in many places.
MAX_NAMESPACE: Final = 1024
_ENTITY = re.compile(r"[-=:.\w]+", re.ASCII)


class _TextAndHash:
    """The text and the hash of a namespace, made once since a listing needs them several times; not fields of it."""

    __slots__ = ("_hash", "_text")


_text_slot, _hash_slot = seal(_TextAndHash, "_text"), seal(_TextAndHash, "_hash")
_put_text, _put_hash = _text_slot.__set__, _hash_slot.__set__
_text_of: Final[Callable[[_TextAndHash], str]] = _text_slot.__get__
_hash_of: Final[Callable[[_TextAndHash], int]] = _hash_slot.__get__


@dataclass(frozen=True, slots=True, order=True, init=False)
class NamespaceName(_TextAndHash):
    """A namespace; ``str()`` is ``tenant/namespace``. Building one checks both parts."""

    tenant: str
    namespace: str

    def __new__(cls, tenant: str, namespace: str) -> Self:
        # The characters of subclasses of str, whose methods could change their answers.
        tenant, namespace = str.__str__(tenant), str.__str__(namespace)
        size = len(tenant) + 1 + len(namespace)
        if size > MAX_NAMESPACE:
            shown = quoted(f"{tenant}/{namespace}")
            raise InvalidName(f"Invalid namespace name {shown}: {size} characters, at most {MAX_NAMESPACE}")
        for what, part in (("tenant", tenant), ("namespace", namespace)):
            if not _ENTITY.fullmatch(part):
                raise InvalidName(
                    f"Invalid namespace name {f'{tenant}/{namespace}'!r}: the {what} {part!r} must be one or more of "
                    "letters, digits, '_', '-', '=', ':' and '.'"
                )
        name = object.__new__(cls)
        _put_tenant(name, tenant)
        _put_namespace(name, namespace)
        _put_text(name, f"{tenant}/{namespace}")
        _put_hash(name, hash((tenant, namespace)))
        return name

    @classmethod
    def parse(cls, text: str) -> NamespaceName:
        """The namespace written as ``tenant/namespace``; an :exc:`InvalidName` says what is wrong with it."""
        return _parse_namespace(text)

    def __eq__(self, other: object) -> bool:
        if self is other:  # as a rule, since parsing gives the same object for a name
            return True
        return _text_of(self) == _text_of(other) if type(other) is NamespaceName else NotImplemented

    def __hash__(self) -> int:
        return _hash_of(self)

    def __str__(self) -> str:
        return _text_of(self)


# One object stands for a namespace in many requests and listings.
_put_tenant, _put_namespace = seal_value(NamespaceName)


@lru_cache(maxsize=4096)
def _parse_namespace(text: str) -> NamespaceName:
    parts = text.split("/")
    if len(parts) != 2:
        raise InvalidName(f"Invalid namespace name {quoted(text)}: expected tenant/namespace")
    return NamespaceName(*parts)
