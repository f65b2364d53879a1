"""Warnings about questions that select otherwise than they seem: computed here for all transports, which show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker_core.names import NamespaceName
from broker_core.patterns import no_match
from broker_core.pipeline.answers.answer import QuestionWarning
from broker_core.plugin_api import PROPERTY, DefaultLister, ListingRequest
from broker_core.plugins import Dispatcher
from broker_core.redaction import cut_short, quoted

__all__ = ["QuestionWarnings"]

#: Properties that are named.
_MOST_NAMED: Final = 5
_NAMED: Final = 40  # characters of each


class QuestionWarnings:
    """Finds the warnings about questions; one for a pipeline."""

    def __init__(self, lister: DefaultLister, dispatcher: Dispatcher) -> None:
        self._lister = lister
        self._dispatcher = dispatcher

    def of(self, request: ListingRequest, *, filtered: bool, topics: int) -> tuple[QuestionWarning, ...]:
        """The warnings about a question whose answer has ``topics`` names; most questions cost next to nothing."""
        # A match of the pattern shows that it can match, whatever its lister takes for a match.
        unmatched = request.pattern is not None and not (filtered and topics)
        if not unmatched and not request.properties:
            return ()
        return tuple(self._found(request, filtered=filtered, unmatched=unmatched))

    def _found(
        self, request: ListingRequest, *, filtered: bool, unmatched: bool
    ) -> Iterator[QuestionWarning]:
        pattern = request.pattern
        if pattern is not None and unmatched:
            text = no_match(pattern, request.namespace)
            if text is not None:
                yield QuestionWarning("pattern", text)
            if not filtered:
                reason = cut_short(pattern.reason) if pattern.reason else "patterns.evaluate is false"
                yield QuestionWarning(
                    "unfiltered",
                    f"this server does not apply the topics pattern {quoted(pattern.raw)} ({reason}): topics that do "
                    "not match it are for the client to leave out",
                )
        if request.properties:
            read = self._read(request.namespace)
            unread = [] if read is None else sorted(key for key in request.properties if key not in read)
            if unread:
                named = ", ".join(repr(key[:_NAMED]) for key in unread[:_MOST_NAMED])
                more = f" and {len(unread) - _MOST_NAMED} more" if len(unread) > _MOST_NAMED else ""
                yield QuestionWarning(
                    "properties",
                    f"no topic of {request.namespace} is selected by the property {named}{more}: the answer is the one "
                    "without it (catalog.property_keys and plugins say which properties select)",
                )

    def _read(self, namespace: NamespaceName) -> frozenset[str] | None:
        """The properties that the default lister and the plugins of a namespace select by; ``None`` for any."""
        words, plugins = self._lister.depends_on, self._dispatcher.selecting_properties(namespace)
        if "properties" in words or plugins is None:
            return None
        return plugins | {word.removeprefix(PROPERTY) for word in words if word.startswith(PROPERTY)}
