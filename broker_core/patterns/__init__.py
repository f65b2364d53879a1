"""Topics patterns as in a Pulsar broker: matching, by RE2 only, and the analysis of a pattern before it runs.

A pattern without its scheme must match ``tenant/namespace/topic`` in full, the topic without partition
suffix (docs/reference/pulsar-behaviour.md#topics-patterns).
"""

from broker_core.patterns.compile_with_re2 import MAX_LENGTH, compile_pattern
from broker_core.patterns.no_match import selecting_pattern
from broker_core.patterns.topics_pattern import TopicsPattern

__all__ = ["MAX_LENGTH", "TopicsPattern", "compile_pattern", "selecting_pattern"]
