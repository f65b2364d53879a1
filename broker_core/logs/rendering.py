"""Renders an event as its line: JSON, or words for a person. Text of a client can break neither, nor reach a terminal.

A traceback is several lines for a person. Those that follow the first are indented, so that no text of an exception can
pass for a line of the log.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

import structlog

from broker_core.compact_json import ascii_json, ascii_text, json_encoder
from broker_core.counted import counted
from broker_core.redaction import may_hold_credentials, printable, without_credentials

__all__ = ["LogRenderer"]

#: Characters that are shown of one value, and of one traceback.
_LONGEST_VALUE: Final = 8 * 1024
_LONGEST_TRACEBACK: Final = 32 * 1024
#: The longest escape of a character in JSON: two surrogates.
_LONGEST_ESCAPE: Final = len(r"\ud83d\ude00")

_INDENT: Final = "    "
_BETWEEN: Final = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)


class LogRenderer:
    """Renders events, each a mapping with ``event``, ``level``, ``timestamp`` and further fields.

    ``exc_info`` is an exception, a triple as of :func:`sys.exc_info`, or true for the one being handled.
    """

    def __init__(self, *, human: bool, colors: bool = False) -> None:
        self._human = human
        self._console = structlog.dev.ConsoleRenderer(
            colors=colors, exception_formatter=structlog.dev.plain_traceback
        )

    def line(self, event: MutableMapping[str, Any]) -> str:
        """The line with its end. Whatever is in the event, it raises nothing."""
        try:
            return (self._for_a_person(event) if self._human else self._json(event)) + "\n"
        except BaseException as error:  # noqa: BLE001 - of a value's own __repr__, say, which may raise SystemExit
            words = printable(f"{event.get('event')!s:.200} (not shown: {type(error).__name__})")
            return (words if self._human else ascii_json({"event": words})) + "\n"

    def lines(self, event: Mapping[str, Any], name: str, values: Sequence[str]) -> list[str]:
        """The lines of an event with each of ``values`` in its field ``name``; the other fields are looked at once."""
        if not self._human:
            try:
                frame = _frame(event, name, values)
            except Exception:  # noqa: BLE001 - of a value's own __repr__, say: each line says so
                frame = None
            if frame is not None:
                head, tail = frame
                return [f"{head}{ascii_text(value)}{tail}\n".replace("\x7f", "\\u007f") for value in values]
        return [self.line({**event, name: value}) for value in values]

    def _json(self, event: MutableMapping[str, Any]) -> str:
        raised = _exception(event.pop("exc_info", None))
        line = None
        if raised is None:  # as a rule there is nothing to hide: one look at all values is enough to know
            line = _encoded({str(key): value for key, value in event.items()})
        if line is None or len(line) > _LONGEST_VALUE or may_hold_credentials(line):
            plain = {str(key): _bounded(value) for key, value in event.items()}
            if raised is not None:
                text = without_credentials("".join(_chunks(raised, escaped=False)))
                plain["exception"] = text.rstrip("\n")[-_LONGEST_TRACEBACK:]
            line = _encoded(plain)
        # Everything but ASCII is escaped by json, DEL is not.
        return line.replace("\x7f", "\\u007f")

    def _for_a_person(self, event: MutableMapping[str, Any]) -> str:
        raised = _exception(event.pop("exc_info", None))
        plain = {printable(str(key)): _value(value) for key, value in event.items()}
        for key in ("exception", "stack"):
            if key in event:
                plain[key] = _indented(without_credentials(str(event[key])).split("\n"))
        if raised is not None:
            text = without_credentials("".join(_chunks(raised, escaped=True)))
            plain["exception"] = _indented(text.rstrip("\n").split("\n"))
        return str(self._console(None, "", plain))


def _frame(event: Mapping[str, Any], name: str, values: Sequence[str]) -> tuple[str, str] | None:
    """The text before and after each value in its line; ``None`` if lines must be looked at one by one."""
    names = list(event)
    at = names.index(name)
    head = _encoded({each: event[each] for each in names[:at]} | {name: ""})[: -len('""}')]
    tail = _encoded({each: event[each] for each in names[at:] if each != name})[1:]
    tail = tail if tail == "}" else f",{tail}"
    longest = _LONGEST_ESCAPE * max(map(len, values), default=0)
    if event.get("exc_info") or len(head) + len(tail) + longest > _LONGEST_VALUE:
        return None
    return None if any(map(may_hold_credentials, (head, tail, "\n".join(values)))) else (head, tail)


def _exception(exc_info: object) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1] if len(exc_info) == 3 else None
    return sys.exc_info()[1] if exc_info else None


def _chunks(raised: BaseException, *, escaped: bool) -> Iterator[str]:
    """The traceback in parts; ``escaped``: the text of an exception is in one line."""
    for chunk in traceback.TracebackException.from_exception(raised, compact=True).format():
        lines = chunk.strip("\n")
        ours = lines.lstrip(" |").startswith('File "') or lines in _BETWEEN
        yield chunk if ours or not escaped else printable(lines) + "\n"


def _indented(lines: list[str]) -> str:
    text = "\n".join(_INDENT + printable(line) for line in lines)
    if len(text) > _LONGEST_TRACEBACK:
        text = f"{_INDENT}...\n{_INDENT}" + text[-_LONGEST_TRACEBACK:].partition("\n")[2].lstrip()
    return text


def _value(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return printable(_cut(value if isinstance(value, str) else repr(value)))


def _bounded(value: object) -> object:
    return _cut(value) if isinstance(value, str) else value


def _shown(value: object) -> str:
    return _cut(str(value))


_encoded: Final = json_encoder(ascii_only=True, default=_shown)


def _cut(text: str) -> str:
    text = without_credentials(text)
    more = len(text) - _LONGEST_VALUE
    return text if more <= 0 else f"{text[:_LONGEST_VALUE]}... and {counted(more, 'character')} more"
