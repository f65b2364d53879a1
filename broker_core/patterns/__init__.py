"""Topics patterns as in a Pulsar broker: matching, by RE2 only, and the analysis of a pattern before it runs.

A pattern without its scheme must match ``tenant/namespace/topic`` in full, the topic without partition
suffix (docs/reference/pulsar-behaviour.md#topics-patterns).
"""

from broker_core.patterns.matchless import no_match as no_match
from broker_core.patterns.matchless import selecting_pattern
from broker_core.patterns.pattern_compiler import MAX_LENGTH, compile_pattern
from broker_core.patterns.pattern_compiler import REMEMBERED as REMEMBERED
from broker_core.patterns.pattern_compiler import compile_now as compile_now
from broker_core.patterns.pattern_text import class_run as class_run
from broker_core.patterns.refused_patterns import refused_part as refused_part
from broker_core.patterns.topics_pattern import TopicsPattern
from broker_core.patterns.topics_pattern import may_match as may_match
from broker_core.patterns.topics_pattern import real_pattern as real_pattern

#: The public names; the others are for the core alone.
__all__ = ["MAX_LENGTH", "TopicsPattern", "compile_pattern", "selecting_pattern"]
