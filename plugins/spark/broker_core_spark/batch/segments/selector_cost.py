"""The cost of matching a name with the selectors of a namespace, judged by their texts, to share work among tasks.

The numbers were measured with the names and patterns of the benchmark. They only have to be right in relation to each
other: a wrong one makes a task longer, and no answer wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from broker_core_spark.batch.segments.task_assignment import NamespaceCost
from broker_core_spark.format import NameSelector

__all__ = ["namespace_costs", "pattern_seconds"]

#: A literal, or a pattern that begins with one: two binary searches a segment.
_PREFIX: Final = 0.2e-9
#: A pattern that needs some substring, which one automaton for all of them looks for.
_CLUE: Final = 0.8e-9
#: A pattern with nothing to look for is matched with every name.
_NOTHING: Final = 60e-9
#: The automaton of substrings, for each name, if there is a pattern for it.
_AUTOMATON: Final = 1.7e-6
_LITERAL_PREFIX: Final = re.compile(r"(?:[^\\.+*?()|\[\]{}^$]|\\[^\w\s])*(?:\.\*)?")
_CLUE_TEXT: Final = re.compile(r"[\w\-/]{3,}(?![?*{])")
_WITHOUT_CLUE: Final = re.compile(r"\[[^\]]*\]|\(\?[a-zA-Z]*i")


def pattern_seconds(text: str | None) -> float:
    """Seconds of one core for a name and a pattern, ``None`` for all names."""
    if text is None or _LITERAL_PREFIX.fullmatch(text):
        return _PREFIX
    if _WITHOUT_CLUE.search(text) and "(?i" in text:
        return _NOTHING
    return _CLUE if _CLUE_TEXT.search(_WITHOUT_CLUE.sub(".", text)) else _NOTHING


def namespace_costs(
    required: Mapping[tuple[str, str], Sequence[NameSelector]],
) -> dict[str, NamespaceCost]:
    """The costs of the namespaces of these selectors, each for its most expensive domain."""
    found: dict[str, NamespaceCost] = {}
    for (namespace, _), selectors in required.items():
        cost = NamespaceCost(len(selectors), _seconds(selector.pattern for selector in selectors))
        if namespace not in found or found[namespace].seconds < cost.seconds:
            found[namespace] = cost
    return found


def _seconds(patterns: Iterable[str | None]) -> float:
    costs = [pattern_seconds(text) for text in set(patterns)]
    return sum(costs) + (_AUTOMATON if any(cost > _PREFIX for cost in costs) else 0.0)
