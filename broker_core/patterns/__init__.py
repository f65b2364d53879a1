"""Topics patterns: what a Pulsar broker matches, by RE2 only, and what can be known of a pattern before it runs.

A pattern loses its scheme and must then match ``tenant/namespace/topic`` in full, where the topic has no partition
suffix (docs/reference/pulsar-behaviour.md#topics-patterns).
"""

from broker_core.patterns.compile_with_re2 import MAX_LENGTH, compile_pattern
from broker_core.patterns.no_match import selecting_pattern
from broker_core.patterns.topics_pattern import TopicsPattern

__all__ = ["MAX_LENGTH", "TopicsPattern", "compile_pattern", "selecting_pattern"]
