"""All parts of the benchmark, size by size and round by round, with all trees in turns."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.growth.asking import Asking, changed_topics
from tests.benchmarks.growth.catalogues import Catalogues
from tests.benchmarks.growth.figures import best_of
from tests.benchmarks.growth.many_namespaces import measure_namespaces
from tests.benchmarks.growth.names_columns import PROPERTY_KEYS
from tests.benchmarks.growth.questions import ask_questions
from tests.benchmarks.growth.restart import measure_restart
from tests.benchmarks.growth.slow_readers import measure_slow_readers
from tests.benchmarks.growth.trees import Tree
from tests.benchmarks.growth.under_change import measure_under_change
from tests.benchmarks.names import namespace_of

__all__ = ["measure"]

#: Servers of all trees run side by side up to so many topics; of more, one at a time.
_SIDE_BY_SIDE: Final = 2_000_000
#: Old versions that are held at a time are of at most so many topics together.
_PINNED_TOPICS: Final = 10_000_000
#: Seconds; a server writes its snapshots two seconds after they were read.
_PATIENCE: Final = 4.0
#: Comparisons with a fresh load.
_LOOKS: Final = 5
_CHANGES: Final = ("create", "delete", "property")


def measure(
    trees: Sequence[Tree],
    catalogues: Catalogues,
    options: argparse.Namespace,
    results: dict[str, Any],
    say: Callable[[str], None],
    keep: Callable[[], None],
) -> None:
    """Put the figures into ``results["sizes"]`` and ``results["namespaces"]``; what is there stays after a failure.

    ``keep`` is called when a size is done.
    """
    for size in options.sizes:
        part = _Parts(trees, catalogues, options, say, size, f"{size:,} topics")
        try:
            part.of_one_namespace()
        finally:
            results["sizes"][str(size)] = part.summary()
            keep()
    if "namespaces" in options.parts:
        count = options.namespaces
        part = _Parts(trees, catalogues, options, say, count, f"{count:,} namespaces")
        try:
            part.of_many_namespaces()
        finally:
            results["namespaces"][str(count)] = part.summary()
            keep()


@dataclass(slots=True)
class _Parts:
    """The parts at one size. ``found`` has the figures by tree and part, a mapping for each round."""

    trees: Sequence[Tree]
    catalogues: Catalogues
    options: argparse.Namespace
    say: Callable[[str], None]
    size: int
    about: str
    found: dict[str, dict[str, list[dict[str, float]]]] = field(default_factory=dict)

    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """One value for each figure."""
        return {
            tree.label: {
                part: best_of(part, rounds) for part, rounds in self.found.get(tree.label, {}).items()
            }
            for tree in self.trees
        }

    def of_one_namespace(self) -> None:
        """All parts but that of many namespaces."""
        made = self.catalogues.of_topics(self.size)
        groups = [list(self.trees)] if self.size <= _SIDE_BY_SIDE else [[tree] for tree in self.trees]
        for _ in range(self.options.rounds):
            for group in groups:
                if self._wants("questions", "under-change", "pages"):
                    self._served(group, made)
            for tree in self.trees:
                if self._wants("changes", "pages"):
                    self._in_process(tree, made)
                if self._wants("random"):
                    self._random(tree, made)
                if self._wants("restart"):
                    self._tell(tree, "restarts")
                    with self.catalogues.copy(made) as catalog:
                        figures = measure_restart(
                            tree, catalog, self.size, min(_PATIENCE, self.options.seconds)
                        )
                    self._add(tree, "restart", figures)

    def of_many_namespaces(self) -> None:
        """The part of many namespaces."""
        made = self.catalogues.of_namespaces(self.size)
        for _ in range(self.options.rounds):
            for tree in self.trees:
                self._tell(tree, "all namespaces")
                with self.catalogues.copy(made) as catalog:
                    self._add(tree, "namespaces", measure_namespaces(tree, catalog, self.size))

    def _served(self, trees: Sequence[Tree], made: Path) -> None:
        """What is asked of running servers."""
        seconds = self.options.seconds
        with ExitStack() as stack:
            asking = []
            for tree in trees:
                catalog = stack.enter_context(self.catalogues.copy(made))
                asking.append(Asking(stack.enter_context(tree.server(catalog)), self.size))
            if self._wants("questions"):
                self._tell(trees[0], "questions")
                for tree, figures in zip(trees, ask_questions(asking), strict=True):
                    self._add(tree, "questions", figures)
            for tree, one in zip(trees, asking, strict=True):
                if self._wants("under-change"):
                    self._tell(tree, "clients beside changes")
                    self._add(tree, "under-change", measure_under_change(one, seconds))
                if self._wants("pages"):
                    self._tell(tree, "slow readers")
                    self._add(tree, "pages", measure_slow_readers(one, seconds))

    def _in_process(self, tree: Tree, made: Path) -> None:
        """What one change and one page cost in the process that answers."""
        self._tell(tree, "changes and pages")
        with self.catalogues.copy(made) as catalog:
            costs = tree.program(
                "one_change",
                catalog=catalog,
                namespace=namespace_of(self.size),
                property_keys=PROPERTY_KEYS,
                topics=changed_topics(self.size),
                repeats=self.options.repeats,
                pinned=min(10, max(1, _PINNED_TOPICS // self.size)),
            )
        changes = {"pinned memory": costs["pinned"]}
        for kind in (*_CHANGES, "unchanged"):
            changes[f"{kind} cpu"] = min(cpu for cpu, _ in costs[kind])
        # Mostly that of the first one: afterwards the allocator has kept what the next one needs.
        changes["memory"] = max(most for kind in _CHANGES for _, most in costs[kind])
        pages = {
            f"{kind} cpu": min(cpu for cpu, _ in costs[kind])
            for kind in ("first page", "middle page", "page after a change")
        }
        if self._wants("changes"):
            self._add(tree, "changes", changes)
        if self._wants("pages"):
            self._add(tree, "pages", pages)

    def _random(self, tree: Tree, made: Path) -> None:
        """Random changes; it fails if the answers differ from those of a fresh load."""
        self._tell(tree, "random changes")
        changes = self.options.random_changes
        with self.catalogues.copy(made) as catalog:
            figures = tree.program(
                "random_changes",
                catalog=catalog,
                namespace=namespace_of(self.size),
                property_keys=PROPERTY_KEYS,
                topics=changed_topics(self.size),
                changes=changes,
                alone=changes // 10,
                looks=_LOOKS,
            )
        self._add(tree, "random", figures)

    def _wants(self, *parts: str) -> bool:
        return not set(parts).isdisjoint(self.options.parts)

    def _tell(self, tree: Tree, what: str) -> None:
        self.say(f"{self.about}: {tree.label}: {what}")

    def _add(self, tree: Tree, part: str, figures: dict[str, float]) -> None:
        self.found.setdefault(tree.label, {}).setdefault(part, []).append(figures)
