"""Entity tags of topics, and the conditions of requests: ``If-Match``, ``If-None-Match`` (RFC 9110)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from hashlib import blake2b
from typing import Final

from broker_core.catalog import PreconditionFailed, TopicRecord
from broker_core.names import ListedNames
from broker_core.servers.http.api.operation import Parameter, Schema

__all__ = [
    "IF_MATCH",
    "IF_NONE_MATCH",
    "KNOWN",
    "EntityTags",
    "check_conditions",
    "topic_etag",
]

#: The members of a topic that never change, besides its id.
_FIXED: Final = frozenset({"name", "created"})
_TAG: Final = re.compile(r'[ \t]*(?:(W/)?("[\x21\x23-\x7e\x80-\U0010ffff]*")[ \t]*)?(?:,|$)')

#: The pattern of :class:`EntityTags`, for the document; spaces and empty elements of the list aside.
_ENTITY_TAGS: Final[Schema] = {
    "type": "string",
    "format": "entity-tags",
    "pattern": r'^(\*|(W/)?"[!#-~]*"(, ?(W/)?"[!#-~]*")*)$',
}


def topic_etag(topic: TopicRecord) -> str:
    """The strong tag of a topic: it differs after each change, and for a recreated topic of the same name.

    Clients that change a topic get it though they may not list it: it is a digest of the id with the rest, so that it
    neither has the id nor can be compared with a guess of the rest without it.
    """
    content = repr(
        tuple(_content(getattr(topic, each.name)) for each in fields(topic) if each.name not in _FIXED)
    )
    digest = blake2b(content.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return f'"{digest}"'


def _content(value: object) -> object:
    if isinstance(value, Mapping):
        return sorted(value.items())
    return str(value) if isinstance(value, ListedNames) else value


class EntityTags:
    """A list of tags in a header, or ``*`` for any. Raises :exc:`ValueError` for anything else."""

    def __init__(self, text: str) -> None:
        self.any = text.strip() == "*"
        self._tags: list[tuple[bool, str]] = []
        place = len(text) if self.any else 0
        while place < len(text):
            tag = _TAG.match(text, place)
            if tag is None:
                raise ValueError('must be * or entity tags, such as "xyzzy"')
            if tag[2] is not None:
                self._tags.append((tag[1] is not None, tag[2]))
            place = tag.end()
        if not (self.any or self._tags):
            raise ValueError('must be * or entity tags, such as "xyzzy"')

    def matches(self, etag: str, *, weakly: bool = False) -> bool:
        """Whether this tag is one of the list; if not compared ``weakly``, a weak one of the list is equal to none."""
        etag = etag.removeprefix("W/")
        return self.any or any(tag == etag and (weakly or not weak) for weak, tag in self._tags)

    @property
    def lone(self) -> str | None:
        """The text between the quotes of the list's only tag; ``None`` for several, and for one that is not ours."""
        tags = [tag[1:-1] for _, tag in self._tags]
        return tags[0] if len(tags) == 1 and tags[0].isascii() else None


IF_MATCH: Final = Parameter(
    "If-Match",
    "The ETag that the topic must have, or `*` for any topic that is there; otherwise the answer is 412.",
    read=EntityTags,
    schema=_ENTITY_TAGS,
    within="header",
)
IF_NONE_MATCH: Final = Parameter(
    "If-None-Match",
    "`*`: the topic must not be there; otherwise the answer is 412.",
    read=EntityTags,
    schema=_ENTITY_TAGS,
    within="header",
)
KNOWN: Final = Parameter(
    IF_NONE_MATCH.name,
    "The ETags that the client has, or `*` for any; 304 if one of them is still that of the answer.",
    read=EntityTags,
    schema=_ENTITY_TAGS,
    within="header",
)


def check_conditions(
    topic: TopicRecord | None, if_match: EntityTags | None, if_none_match: EntityTags | None
) -> None:
    """Raise :exc:`~broker_core.catalog.PreconditionFailed` unless a topic, or ``None``, meets the conditions."""
    if if_match is not None:
        if topic is None:
            raise PreconditionFailed("If-Match: the topic is not there")
        if not if_match.matches(topic_etag(topic)):
            raise PreconditionFailed(
                f"If-Match: the topic is another one now, with the ETag {topic_etag(topic)}"
            )
    if (
        if_none_match is not None
        and topic is not None
        and if_none_match.matches(topic_etag(topic), weakly=True)
    ):
        raise PreconditionFailed("If-None-Match: the topic is there")
