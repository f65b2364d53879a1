"""The parsed text of ``/metrics``, for a test that looks at a plugin's own metrics."""

from __future__ import annotations

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

__all__ = ["MetricFamilies"]


class MetricFamilies(dict[str, Metric]):
    """The families of one scrape by name, as ``prometheus_client`` parses them; a counter's has no ``_total``."""

    @classmethod
    def parse(cls, text: str) -> MetricFamilies:
        """The families of a text in Prometheus' format."""
        return cls({family.name: family for family in text_string_to_metric_families(text)})

    def value(self, sample: str, **labels: str) -> float:
        """The value of one sample, such as ``value("broker_core_mine_answers_total", outcome="found")``.

        ``labels`` are all labels of the sample. Raises :exc:`KeyError` if there is no such sample; the message names
        the others.
        """
        found = [each for family in self.values() for each in family.samples if each.name == sample]
        for each in found:
            if each.labels == labels:
                return float(each.value)
        if found:
            raise KeyError(f"{sample} has no labels {labels}; it has {[each.labels for each in found]}")
        raise KeyError(f"there is no sample {sample!r}; the families are {sorted(self)}")
