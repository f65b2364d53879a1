"""Topics patterns as in a Pulsar broker: matching, by RE2 only, and the analysis of a pattern before it runs.

A pattern without its scheme must match ``tenant/namespace/topic`` in full, the topic without partition
suffix (docs/reference/pulsar-behaviour.md#topics-patterns).
"""

from broker_core.patterns.class_runs import class_run
from broker_core.patterns.compile_with_re2 import MAX_LENGTH, REMEMBERED, compile_now, compile_pattern
from broker_core.patterns.matchless import no_match, selecting_pattern
from broker_core.patterns.quick_match import may_match
from broker_core.patterns.refusal import refused_part
from broker_core.patterns.topics_pattern import TopicsPattern, real_pattern

__all__ = [
    "MAX_LENGTH",
    "REMEMBERED",
    "TopicsPattern",
    "class_run",
    "compile_now",
    "compile_pattern",
    "may_match",
    "no_match",
    "real_pattern",
    "refused_part",
    "selecting_pattern",
]
