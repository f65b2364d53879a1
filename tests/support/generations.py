"""Small catalogues and questions, their expected answers, and generations that are read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from hypothesis import strategies as st

from broker_core.names import Mode, TopicName
from broker_core.patterns import compile_pattern
from broker_core_spark.format.canonical_question import CanonicalQuestion, NameSelector
from broker_core_spark.format.segment_reader import SegmentRun
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.store import Store, open_store
from tests.support.topics import local_names, visible

__all__ = [
    "CATALOGUE",
    "PATTERNS",
    "QUESTIONS",
    "catalogues",
    "expected",
    "memory",
    "picked_by",
    "questions_about",
    "questions_of",
]

_numbers = count()

#: Two namespaces with names that are hard to sort, and an empty one.
CATALOGUE: Mapping[str, Mapping[str, Any]] = {
    "t/n": {
        "persistent": [
            *(f"orders-{i:03}" for i in range(60)),
            *("a-partition-0", "a-partition-10", "a-partition-2", "a-b", "q\n", "😀", "\ue000", "x" * 200),
            "__change_events",
        ],
        "non-persistent": ["orders-000", "live", "b-partition-3"],
    },
    "t/m": {"persistent": [f"other-{i}" for i in range(20)]},
    "t/empty": {},
}
PATTERNS = [
    None,
    "t/n/orders-.*",
    "persistent://t/n/a",
    ".*0.*",
    "t/n/.*[13579]",
    "t/[mn]/o.*",
    "nothing",
    "(?s).*q.*",
]


def memory() -> Store:
    """A store of its own."""
    return open_store(f"memory://test-{next(_numbers)}")


def questions_about(namespaces: Iterable[str], patterns: Iterable[str | None]) -> list[CanonicalQuestion]:
    """Every pattern in every mode of every namespace."""
    patterns = list(patterns)
    return [
        CanonicalQuestion.of(namespace, mode, pattern)
        for namespace in namespaces
        for mode in Mode
        for pattern in patterns
    ]


QUESTIONS = questions_about(CATALOGUE, PATTERNS)


def expected(
    catalogue: Mapping[str, Mapping[str, Any]],
    question: CanonicalQuestion,
    properties: Mapping[str, Mapping[str, str]] | None = None,
) -> list[str]:
    """The full names that answer a question, one name at a time."""
    text = question.selector.pattern
    pattern = None if text is None else compile_pattern(text)
    names = visible(
        f"{domain}://{question.namespace}/{local}"
        for domain in question.domains
        for local in catalogue[question.namespace].get(domain, [])
    )
    kept = [name for name in names if pattern is None or pattern.matches(name)]
    return [
        name
        for name in kept
        if all(
            (properties or {}).get(str(TopicName.parse(name).partitioned_name), {}).get(key) == value
            for key, value in question.selector.properties
        )
    ]


def catalogues() -> st.SearchStrategy[dict[str, dict[str, list[str]]]]:
    """Catalogues of a few namespaces with hostile names in both domains."""
    names = st.lists(local_names(), max_size=12, unique=True)
    domains = st.fixed_dictionaries({}, optional={"persistent": names, "non-persistent": names})
    return st.dictionaries(st.sampled_from(["t/n", "t/n-1", "t/m", "a/b"]), domains, min_size=1)


def questions_of(generation: Generation) -> list[CanonicalQuestion]:
    """All questions that a generation answers, in order."""
    return [CanonicalQuestion.parse(line[:-1]) for line in generation.opened.lines.to_pylist()]


def picked_by(run: SegmentRun, selector: NameSelector) -> list[int]:
    """The rows of a run that a selector picks."""
    rows: list[int] = run.postings.rows(selector.key).tolist()
    return rows
