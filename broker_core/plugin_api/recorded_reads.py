"""A request that records the fields a plugin reads, by the words of ``broker_core_depends_on``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from broker_core.access import Asker
from broker_core.plugin_api.depends_on import PROPERTY, word_of
from broker_core.plugin_api.listing_request import ListingRequest

__all__ = ["Note", "RecordedProperties", "recorded", "recorded_asker"]

#: Called with the word of a field each time it is read.
Note: TypeAlias = Callable[[str], None]


def recorded(request: ListingRequest, note: Note) -> ListingRequest:
    """``request``, such that ``note`` is called with each field that is read: for one property, ``property:NAME``."""
    copy = object.__new__(_Request)
    for field in fields(request):
        object.__setattr__(copy, field.name, object.__getattribute__(request, field.name))
    object.__setattr__(copy, "asker", recorded_asker(request.asker, note))
    object.__setattr__(copy, "properties", RecordedProperties(request.properties, note))
    object.__setattr__(copy, "_note", note)
    return copy


def recorded_asker(asker: Asker, note: Note) -> Asker:
    """``asker``, such that ``note`` is called with the name of each field that is read."""
    copy = _Asker(*(object.__getattribute__(asker, field.name) for field in fields(Asker)))
    object.__setattr__(copy, "_note", note)
    return copy


class _Request(ListingRequest):
    __slots__ = ("_note",)

    def __getattribute__(self, name: str) -> Any:
        if name != "properties":  # its values report their reads themselves
            _record(self, word_of(name))
        return object.__getattribute__(self, name)


class _Asker(Asker):
    __slots__ = ("_note",)

    def __getattribute__(self, name: str) -> Any:
        _record(self, word_of(f"asker.{name}"))
        return object.__getattribute__(self, name)


def _record(value: object, word: str | None) -> None:
    if word is not None:
        try:
            note: Note = object.__getattribute__(value, "_note")
        except AttributeError:  # a copy that a plugin has made, by dataclasses.replace() say
            return
        note(word)


class RecordedProperties(Mapping[str, str]):
    """Properties that report each use."""

    __slots__ = ("_note", "_properties")

    def __init__(self, properties: Mapping[str, str], note: Note) -> None:
        self._properties = properties
        self._note = note

    def __getitem__(self, name: str) -> str:
        self._note(f"{PROPERTY}{name}")
        return self._properties[name]

    def __contains__(self, name: object) -> bool:
        self._note(f"{PROPERTY}{name}")
        return name in self._properties

    def __iter__(self) -> Iterator[str]:
        self._note("properties")
        return iter(self._properties)

    def __len__(self) -> int:
        self._note("properties")
        return len(self._properties)

    def __repr__(self) -> str:
        self._note("properties")
        return repr(self._properties)
