"""Metrics as a scraper reads them, also of parts without a server."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.metrics.permit_metrics import show_permits
from broker_core.plugins import Dispatcher, PluginRegistry, show_plugins
from broker_core.settings import LimitsSettings

__all__ = ["samples", "scraped", "shown", "total"]


def scraped(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    """Every sample by name and labels, as a scraper reads the text."""
    return samples(generate_latest(registry).decode())


def samples(text: str) -> dict[tuple[str, str], float]:
    """Every sample of a text of metrics, by name and labels."""
    return {
        (
            sample.name,
            ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(samples: dict[tuple[str, str], float], name: str, label: str = "") -> float:
    """The sum of all samples of a name."""
    return sum(value for (found, labels), value in samples.items() if found == name and label in labels)


def shown(limits: LimitsSettings | None = None, **plugins: object) -> tuple[Metrics, Permits, Dispatcher]:
    """The metrics of permits and plugins."""
    metrics = Metrics()
    permits = Permits(limits)
    dispatcher = Dispatcher(PluginRegistry.load(given=plugins), on_call=metrics.plugin_call)
    show_permits(metrics, permits)
    show_plugins(metrics, dispatcher)
    return metrics, permits, dispatcher
