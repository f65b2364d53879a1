"""Serving a generation: for the catalogue's current version, or not at all."""

from __future__ import annotations

from broker_core_spark.serving.generation_refresher import open_generation
from broker_core_spark.serving.pass_to_next_lister import UNDECLARED_STATIC
from broker_core_spark.serving.topic_lister import PrecomputedTopicLister

__all__ = [
    "UNDECLARED_STATIC",
    "PrecomputedTopicLister",
    "open_generation",
]
