"""Reading exceptions that a plugin raised, safely.

An exception of a plugin is an object like any other that it hands over: its ``str()`` may raise or be megabytes, its
fields may have been changed, its causes may go on for ever. Everything read of it here is checked, bounded, valid
Unicode and without control characters, since it goes to clients, to the log and into JSON.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from types import CoroutineType
from typing import Final

from broker_core.errors import Cause, ListingFailed, ServerError, cause_of
from broker_core.memory import own_field

__all__ = [
    "LONGEST",
    "FailureForClient",
    "bounded",
    "failure_for_client",
    "in_words",
    "is_a",
    "is_awaitable",
    "kind",
    "shown",
    "shown_kind",
    "text",
    "trace",
]

#: Characters of an exception's text.
LONGEST: Final = 4096
#: Exceptions of one chain of causes that a traceback shows, and the innermost frames of each.
_CAUSES: Final = 8
_FRAMES: Final = 30
#: Exceptions of a group that are named.
_OF_A_GROUP: Final = 5

#: Control characters except line breaks and tabs, as Python writes them.
_CONTROLS: Final = {
    number: f"\\x{number:02x}" for number in (*range(32), *range(127, 160)) if chr(number) not in "\n\t"
}


_FIELDS: Final = vars(type)["__dict__"]  # of a class, whatever its metaclass does with the name


def is_a(value: object, kinds: type | tuple[type, ...]) -> bool:
    """``isinstance()`` that does not access the value: its ``__class__`` may be a property that raises."""
    return issubclass(type(value), kinds)


def is_awaitable(value: object) -> bool:
    """Whether a value can be awaited, found without accessing it."""
    try:
        return is_a(value, (CoroutineType, asyncio.Future)) or any(
            "__await__" in _FIELDS.__get__(each) for each in type.mro(type(value))
        )
    except BaseException:  # noqa: BLE001 - of a class whose metaclass is the plugin's
        return False


def bounded(words: str) -> str:
    """At most :data:`LONGEST` characters, without lone surrogates and without control characters."""
    head = str.__getitem__(words, slice(LONGEST + 1))  # a class derived from str may have another [:]
    if len(head) > LONGEST:
        head = head[: LONGEST - 1] + "…"
    return head.encode("utf-8", "backslashreplace").decode().translate(_CONTROLS)


def kind(error: BaseException) -> str:
    """The name of the exception's class."""
    try:
        return bounded(str(type(error).__name__))
    except BaseException:  # noqa: BLE001 - a metaclass of the plugin's may raise what it likes
        return "an exception whose class has no name"


def text(error: BaseException) -> str:
    """The exception's text."""
    try:
        return bounded(str(error))
    except BaseException as broken:  # noqa: BLE001 - as above
        return f"(its str() raised {kind(broken)})"


def shown(value: object) -> str:
    """The ``repr()`` of a value."""
    try:
        return bounded(repr(value))
    except BaseException as broken:  # noqa: BLE001 - as above
        return f"an object whose repr() raised {kind(broken)}"


def shown_kind(value: object) -> str:
    """The type of a value with its article, or the value itself if it is true or false."""
    return repr(value) if isinstance(value, bool) else f"a {type(value).__name__}"


def in_words(error: BaseException) -> str:
    """``KeyError: 'x'``: the kind, and the text if there is one; for a group, also the first of its exceptions."""
    said_by_it = text(error)
    words = f"{kind(error)}: {said_by_it}" if said_by_it else kind(error)
    if is_a(error, BaseExceptionGroup):
        held = BaseExceptionGroup.exceptions.__get__(error)
        inner = "; ".join(_in_a_group(each) for each in held[:_OF_A_GROUP])
        words += f" [{inner}{'; …' if len(held) > _OF_A_GROUP else ''}]"
    return bounded(words)


def _in_a_group(error: BaseException) -> str:
    # Groups in groups may be thousands deep, so they are only named.
    return kind(error) if is_a(error, BaseExceptionGroup) else in_words(error)


def trace(error: BaseException, *, texts: bool = True) -> str:
    """The traceback, with the causes as Python shows them; bounded in both directions.

    Without ``texts`` only the kinds of the exceptions are named.
    """
    parts: list[str] = []
    for each, why in _causes(error):
        lines = [f"{in_words(each) if texts else kind(each)}\n"]
        try:
            frames = traceback.format_tb(own_field(each, "__traceback__"), limit=-_FRAMES)
        except BaseException as broken:  # noqa: BLE001 - it reads the plugin's source
            frames = [f"  (the traceback cannot be shown: {kind(broken)})\n"]
        if frames:
            lines = ["Traceback (most recent call last):\n", *frames, *lines]
        parts.append("".join(lines) + why)
    return "\n".join(reversed(parts)).rstrip()


def _causes(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """The exception, its cause, the cause's cause; with the words that Python puts between each and the one before."""
    following: BaseException | None = error
    why = ""
    seen: set[int] = set()
    while following is not None and id(following) not in seen:
        if len(seen) == _CAUSES:
            return
        seen.add(id(following))
        yield following, why
        cause = own_field(following, "__cause__")
        if cause is not None:
            why = "\nThe above exception was the direct cause of the following exception:\n"
            following = cause
        else:
            why = "\nDuring handling of the above exception, another exception occurred:\n"
            suppressed = own_field(following, "__suppress_context__")
            following = None if suppressed else own_field(following, "__context__")


@dataclass(frozen=True, slots=True)
class FailureForClient:
    """The failure that a plugin wants the client to get (:exc:`~broker_core.errors.ListingFailed`)."""

    message: str
    cause: Cause
    code: ServerError
    counts: bool


def failure_for_client(error: BaseException) -> FailureForClient | None:
    """The failure of a :exc:`ListingFailed`; ``None`` for another exception, and for one that cannot be sent as it is.

    It was checked where it was made, and is read once more: a class derived from it need not have called it, and fields
    can be set.
    """
    if not is_a(error, ListingFailed):
        return None
    assert isinstance(error, ListingFailed)
    try:
        message, code, counts, reason = error.message, error.code, error.counts, error.reason
        cause = getattr(error, "cause", None)
    except BaseException:  # noqa: BLE001 - a field that was never set, or a property of the plugin's
        return None
    if not isinstance(message, str) or not isinstance(reason, str):
        return None
    if not isinstance(code, ServerError) or not isinstance(counts, bool):
        return None
    if not isinstance(cause, Cause):  # an old class may have another field of this name
        cause = cause_of(code, otherwise=Cause.PLUGIN)
    return FailureForClient(bounded(message), cause, code, counts and code is not ServerError.TooManyRequests)
