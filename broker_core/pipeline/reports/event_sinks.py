"""Sinks for listing events besides the metrics, if the settings have them: the access log, spans of traces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from broker_core.access import Asker
from broker_core.compact_json import ascii_text
from broker_core.errors import BrokerCoreError, ListingFailed
from broker_core.logs import AccessLog, json_fields
from broker_core.pipeline.answer import Answer, QuestionText, ReusableAnswer
from broker_core.plugin_api import ListingRequest
from broker_core.redaction import LONGEST_TEXT, shown
from broker_core.reloads import LiveSettings, Reloads
from broker_core.settings import Settings, TracingSettings

if TYPE_CHECKING:
    from broker_core.pipeline.answer import ReusableAnswer
    from broker_core.tracing import Tracing

__all__ = [
    "AccessLines",
    "EventSinks",
    "TracingUnavailable",
    "answered",
    "open_event_sinks",
    "open_tracing",
    "question_attributes",
    "refused",
]

#: Seconds in which the last lines of the access log are written.
_LAST_LINES: Final = 1.0
#: Seconds in which the last spans are sent.
_LAST_SPANS: Final = 2.0


class TracingUnavailable(BrokerCoreError):
    """The libraries of OpenTelemetry are not installed."""


@dataclass(frozen=True, slots=True)
class EventSinks:
    """The sinks of the settings; false if there is none, which is the default."""

    access_log: AccessLog | None = None
    tracing: Tracing | None = None

    def __bool__(self) -> bool:
        """Whether there is any sink."""
        return self.access_log is not None or self.tracing is not None


@asynccontextmanager
async def open_event_sinks(live: LiveSettings, reloads: Reloads) -> AsyncIterator[EventSinks]:
    """Open the sinks of the settings, until the end of the block.

    Raises :exc:`~broker_core.logs.LogFileError` or :exc:`TracingUnavailable`.
    """
    settings = live.current
    async with AsyncExitStack() as stack:
        access_log: AccessLog | None = None
        if settings.log.access is not None:
            access_log = await asyncio.to_thread(AccessLog, settings.log.access)
            stack.push_async_callback(asyncio.to_thread, access_log.close, _LAST_LINES)
            reloads.add("access log", access_log.reopen)
            live.add("log.access", partial(_prepare_access_log, access_log))
        tracing: Tracing | None = None
        if settings.tracing is not None:
            tracing = await asyncio.to_thread(open_tracing, settings.tracing)
            stack.push_async_callback(asyncio.to_thread, tracing.close, _LAST_SPANS)
        yield EventSinks(access_log, tracing)


def _prepare_access_log(access_log: AccessLog, settings: Settings) -> Callable[[], None]:
    assert settings.log.access is not None  # that it is there at all needs a restart
    return access_log.prepare(settings.log.access)


def open_tracing(settings: TracingSettings) -> Tracing:
    """The maker and sender of spans. Raises :exc:`TracingUnavailable`."""
    try:
        from broker_core.tracing import Tracing
    except ImportError as error:
        raise TracingUnavailable(
            "tracing: it needs the libraries of the extra otel, opentelemetry-sdk and "
            f"opentelemetry-exporter-otlp-proto-http: {error}"
        ) from error
    return Tracing.to_collector(settings)


class AccessLines:
    """Writes a line for each listing that the settings choose. Times are in seconds."""

    def __init__(self, log: AccessLog) -> None:
        self._log = log

    def ended(
        self,
        request: ListingRequest,
        asker: Asker,
        answer: Answer | ReusableAnswer,
        lister: str,
        waited: float,
        seconds: float,
        unsent: ListingFailed | None,
    ) -> None:
        """Write that the answer to a question, or an earlier one once more, was sent, or could not be."""
        if unsent is not None:
            self.refused(QuestionText.of(request), asker, unsent, waited, seconds)
        elif self._log.takes_next():
            fields = self._question(QuestionText.of(request), asker)
            fields += (_answered(answer, lister), _times(waited, seconds))
            if answer.stale is not None:
                fields.append(f'"stale_s":{answer.stale:.3f}')
            self._log.write(*fields)

    def refused(
        self, question: QuestionText, asker: Asker, failure: ListingFailed, waited: float, seconds: float
    ) -> None:
        """Write that a question has no answer, or that its client does not get it."""
        self._log.write(
            *self._question(question, asker),
            _times(waited, seconds),
            json_fields(refused(failure)),
        )

    def _question(self, question: QuestionText, asker: Asker) -> list[str]:
        """The asker and its question, as a line has them."""
        fields = [
            _asker_fields(
                asker.role,
                asker.original_principal,
                asker.remote_address,
                asker.client_version,
                asker.transport,
            ),
            _question_words(_begin(question.namespace), question.mode, _begin(question.pattern)),
        ]
        if keys := self._log.properties:
            pairs = {key: shown(value) for key, value in question.properties if key in keys}
            if pairs:
                fields.append(json_fields({"properties": pairs}))
        if question.page_limit is not None:
            fields.append(json_fields({"page_limit": question.page_limit}))
        return fields


def _begin(text: str | None) -> str | None:
    """The beginning of a text, with a mark if there is more."""
    return None if text is None else text[: LONGEST_TEXT + 1]


@lru_cache(2048)
def _asker_fields(
    role: str | None, principal: str | None, address: str, client_version: str, transport: str
) -> str:
    return json_fields(
        {
            "role": role,
            "principal": principal,
            "address": address,
            "client_version": shown(client_version),
            "transport": transport,
        }
    )


@lru_cache(2048)
def _question_words(namespace: str | None, mode: str | None, pattern: str | None) -> str:
    return json_fields(
        {
            "namespace": None if namespace is None else shown(namespace),
            "mode": mode,
            "pattern": None if pattern is None else shown(pattern),
        }
    )


def _answered(answer: Answer | ReusableAnswer, lister: str) -> str:
    # Not by json_fields, which takes as long as everything else in a line.
    sent = f'{answer.topics},"bytes":{answer.fields_size}' if answer.shown is None else str(answer.shown)
    return (
        f'"outcome":"{"served" if answer.changed else "unchanged"}","lister":{ascii_text(lister)},'
        f'"plan":"{answer.plan}","topics":{sent},'
        f'"topics_hash":{ascii_text(answer.topics_hash)},"filtered":{"true" if answer.filtered else "false"}'
    )


def _times(waited: float, seconds: float) -> str:
    return f'"waited_ms":{waited * 1000:.3f},"total_ms":{seconds * 1000:.3f}'


def question_attributes(question: QuestionText, asker: Asker) -> dict[str, Any]:
    """The asker and its question, as attributes of a span."""
    return {
        "role": asker.role,
        "principal": asker.original_principal,
        "address": asker.remote_address or None,
        "transport": asker.transport,
        "namespace": _shown(question.namespace),
        "mode": question.mode,
        "pattern": _shown(question.pattern),
        "page_limit": question.page_limit,
    }


def _shown(text: str | None) -> str | None:
    return None if text is None else shown(text[: LONGEST_TEXT + 1])


def answered(answer: Answer | ReusableAnswer, lister: str) -> dict[str, Any]:
    """The attributes of an answer."""
    return {
        "outcome": "served" if answer.changed else "unchanged",
        "lister": lister,
        "plan": answer.plan,
        "topics": answer.topics,
        "bytes": answer.fields_size,
        "topics_hash": answer.topics_hash,
        "filtered": answer.filtered,
        "stale_s": answer.stale,
    }


def refused(failure: ListingFailed) -> dict[str, Any]:
    """The fields of a refusal. The message is left out: it may have text from anywhere."""
    return {
        "outcome": "refused",
        "cause": failure.cause.name,
        "reason": failure.reason,
        "plugin": failure.plugin,
    }
