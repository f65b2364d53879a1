"""The pages of DescribeTopicPartitions over some names: the next request, and the rows so far (KIP-966)."""

from __future__ import annotations

from typing import Any, Final

from broker_core.client.client_errors import UnexpectedAnswer
from broker_core.client.kafka.pages import goes_on
from broker_core.listing import utf16_key

__all__ = ["DescribedPages"]

#: Partitions of a page; servers give 2,000 at most, unless their settings say more.
_PAGE: Final = 2000


class DescribedPages:
    """The pages for ``names``, each once, in their order; ``found`` are the rows by name with the partitions of all
    pages.

    A topic that was recreated between two of its pages is asked for again: its partitions are of two topics.
    """

    def __init__(self, names: list[str]) -> None:
        self._left = sorted(names, key=utf16_key)
        self._again: list[str] = []
        self._cursor: dict[str, Any] | None = None
        self.found: dict[str, dict[str, Any]] = {}

    def request(self) -> dict[str, Any] | None:
        """The request of the next page; ``None`` after the last one."""
        if not self._left:
            return None
        return {
            "topics": [{"name": name} for name in self._left],
            "response_partition_limit": _PAGE,
            "cursor": self._cursor,
        }

    def take(self, answer: dict[str, Any]) -> None:
        """Add a page. Raises :exc:`~broker_core.client.UnexpectedAnswer` for a cursor that does not go on."""
        for row in answer["topics"]:
            self._add(row)
        after = answer["next_cursor"]
        if after is None:
            self._left, self._again, self._cursor = self._again, [], None
            return
        name, partition = after["topic_name"], after["partition_index"]
        before = self._cursor or {"topic_name": self._left[0], "partition_index": 0}
        left = [each for each in self._left if utf16_key(each) >= utf16_key(name)]
        if not goes_on(before, after) or left[:1] != [name]:
            raise UnexpectedAnswer(f"the next page of topics would begin at {after}, behind {before}")
        self._left = left
        # At its first partition a topic is asked for by its name alone.
        self._cursor = after if partition else None

    def _add(self, row: dict[str, Any]) -> None:
        name = row["name"]
        known = self.found.get(name)
        if known is None or self._cursor is None or self._cursor["topic_name"] != name or row["error_code"]:
            self.found[name] = row
        elif known["topic_id"] == row["topic_id"]:
            known["partitions"] += row["partitions"]
        else:
            del self.found[name]
            self._again.append(name)
