from __future__ import annotations

import sys

import pytest

from broker_core.cli.startup_checks.tracing import tracing_checks
from broker_core.settings import TracingSettings


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def verdict(settings: TracingSettings | None) -> str:
    return " ".join(f"{check.level} {check.name}: {check.text}" for check in tracing_checks(settings))


def test_where_spans_go(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdict(None) == ""
    said = verdict(TracingSettings(endpoint="https://collector:4318/?token=hunter2"))
    assert said == "ok tracing: spans go to https://collector:4318/?token=********"
    assert verdict(TracingSettings(endpoint="")).startswith(
        "warning tracing: spans go to a collector on this machine"
    )
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    assert (
        verdict(TracingSettings(endpoint="")) == "ok tracing: spans go where OTEL_EXPORTER_OTLP_ENDPOINT says"
    )


def test_the_libraries_are_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "broker_core.tracing.open_telemetry", raising=False)
    monkeypatch.delitem(sys.modules["broker_core.tracing"].__dict__, "Tracing", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert verdict(TracingSettings(endpoint="")).startswith(
        "error tracing: it needs the libraries of the extra otel"
    )
