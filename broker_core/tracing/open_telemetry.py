"""Listings as spans of OpenTelemetry, sent by OTLP over HTTP from a thread of the library's own.

The library keeps a bounded queue of spans that have ended (``OTEL_BSP_MAX_QUEUE_SIZE``), and drops what is beyond it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

from opentelemetry import context as contexts
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from broker_core.errors import ListingFailed
from broker_core.settings import TracingSettings
from broker_core.tracing.stages import traced_by

__all__ = ["ListingSpan", "Tracing"]

_NAME: Final = "broker-core"
_PREFIX: Final = "broker_core."
_ROOT: Final = "listing"


class _Exporter(OTLPSpanExporter):
    """The library's exporter, which may be shut down twice."""

    _is_shut = False

    def shutdown(self) -> None:
        if not self._is_shut:
            self._is_shut = True
            super().shutdown()  # type: ignore[no-untyped-call]


class Tracing:
    """Makes the spans of one server. ``provider`` is the library's, whose processors get the ended spans.

    ``exporter`` sends for them; shut down, it tries no more.
    """

    def __init__(self, provider: TracerProvider, exporter: SpanExporter | None = None) -> None:
        self._provider = provider
        self._exporter = exporter
        self._tracer = provider.get_tracer(_NAME)
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def to_collector(cls, settings: TracingSettings) -> Self:
        """Send spans to the address in the settings, or in the variables of OpenTelemetry, which decide all else."""
        sampler = None
        if "OTEL_TRACES_SAMPLER" not in os.environ:
            sampler = ParentBased(TraceIdRatioBased(settings.sample))
        provider = TracerProvider(sampler=sampler, resource=_resource(), shutdown_on_exit=False)
        endpoint = f"{settings.endpoint}/v1/traces" if settings.endpoint else None
        exporter = _Exporter(endpoint=endpoint)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return cls(provider, exporter)

    def listing(self, values: Mapping[str, Any]) -> ListingSpan:
        """``with tracing.listing(...) as span:`` a listing that begins now; stages in the block are its children."""
        return ListingSpan(self, self._tracer, values)

    def listed(self, values: Mapping[str, Any], seconds: float, reason: str | None = None) -> None:
        """Record a listing that took so long, and had no stages; ``reason`` is why it was refused."""
        now = time.time_ns()
        span = self._tracer.start_span(
            _ROOT, kind=SpanKind.SERVER, attributes=_attributes(values), start_time=now - int(seconds * 1e9)
        )
        if reason is not None:
            span.set_status(Status(StatusCode.ERROR, reason))
        span.end(now)

    def stage(self, name: str, values: Mapping[str, Any]) -> _Stage:
        """A child span of the one that is under way."""
        return _Stage(self._tracer, name, values)

    @contextmanager
    def under(self, headers: Mapping[str, str]) -> Iterator[None]:
        """``with tracing.under(headers):`` listings in the block are children of the client's span (`traceparent`)."""
        token = contexts.attach(self._propagator.extract(headers))
        try:
            yield
        finally:
            contexts.detach(token)

    def close(self, timeout: float) -> None:
        """Send the remaining spans, in at most ``timeout`` seconds."""
        # The library waits longer if the collector does not answer.
        closing = threading.Thread(target=self._provider.shutdown, name="tracing", daemon=True)
        closing.start()
        closing.join(timeout)
        if closing.is_alive() and self._exporter is not None:
            self._exporter.shutdown()  # ends the wait for the next attempt, and with it both threads


class _Stage:
    """One span, under way in its block."""

    __slots__ = ("_span", "_token")

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        values: Mapping[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self._span = tracer.start_span(name, kind=kind, attributes=_attributes(values))

    def note(self, **values: Any) -> None:
        self._span.set_attributes(_attributes(values))

    def __enter__(self) -> Self:
        self._token = contexts.attach(set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        contexts.detach(self._token)
        if error is not None:
            # Not the text of the error: it may be anybody's.
            reason = error.reason if isinstance(error, ListingFailed) else type(error).__name__
            self._span.set_status(Status(StatusCode.ERROR, reason))
        self._span.end()


class ListingSpan(_Stage):
    """The span of a listing. After its block it goes on until :meth:`written`, unless the listing has failed."""

    __slots__ = ("_stages", "_tracer", "_writing")

    def __init__(self, tracing: Tracing, tracer: Tracer, values: Mapping[str, Any]) -> None:
        super().__init__(tracer, _ROOT, values, SpanKind.SERVER)
        self._tracer = tracer
        self._stages = traced_by(tracing if self._span.is_recording() else None)
        self._writing: Any = None

    def __enter__(self) -> Self:
        self._stages.__enter__()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stages.__exit__(kind, error, traceback)
        if error is not None:
            super().__exit__(kind, error, traceback)
            return
        self._writing = self._tracer.start_span("write", context=set_span_in_context(self._span))
        contexts.detach(self._token)

    def written(self, unsent: ListingFailed | None = None) -> None:
        """End the span: the answer has left, or cannot be sent because of ``unsent``."""
        writing, self._writing = self._writing, None
        if writing is not None:
            if unsent is not None:
                self._span.set_status(Status(StatusCode.ERROR, unsent.reason))
            writing.end()
            self._span.end()


def _attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    return {_PREFIX + key: value for key, value in values.items() if value is not None}


def _resource() -> Resource:
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return Resource.create({} if named else {"service.name": _NAME})
