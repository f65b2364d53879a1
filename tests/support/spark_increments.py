"""A catalogue and its patterns before and after a few changes, for builds elsewhere: in full, then an increment."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.catalogue_chains import SqliteChanges
from tests.support.spark_catalogues import (
    expected_generation,
    fill,
    generation_files,
    questions_about,
    write_patterns,
)

__all__ = ["BeforeAndAfter"]

_NAMESPACE = "public/large"
_CATALOGUE, _PATTERNS = "catalogue.sqlite", "patterns.jsonl"


@dataclass(frozen=True, slots=True)
class BeforeAndAfter:
    """Folders with the files of a build: before and after topics came, went and were renamed, and a pattern came."""

    before: Path
    after: Path

    @classmethod
    def below(cls, folder: Path, *, topics: int) -> BeforeAndAfter:
        """Write both, of so many topics."""
        made = cls(folder / "before", folder / "after")
        made.before.mkdir()
        names = [f"orders-{number}" for number in range(topics)]
        fill(made.before / _CATALOGUE, {_NAMESPACE: names, "public/small": ["a", "b"]})
        questions = questions_about(_NAMESPACE)
        write_patterns(made.before / _PATTERNS, questions)
        shutil.copytree(made.before, made.after)
        added = {"namespace": _NAMESPACE, "mode": "PERSISTENT", "pattern": ".*-1.*5"}
        write_patterns(made.after / _PATTERNS, [*questions, added])
        at = (_NAMESPACE, "persistent")
        SqliteChanges(made.after / _CATALOGUE).change(
            {
                (*at, "orders-155-renamed"): None,
                **{(*at, f"orders-{number}"): None for number in range(topics, topics + 5)},
            },
            [(*at, "orders-155"), (*at, "orders-7"), (*at, f"orders-{topics - 1}")],
        )
        return made

    def check(self, built: Mapping[Path, Sequence[Mapping[str, Any]]], *, segment_bytes: int) -> None:
        """The full build and the increment in each store, by their records, are whole generations, and their files."""
        for at, folder in enumerate((self.before, self.after)):
            whole = folder / "whole"
            expected = expected_generation(
                folder / _CATALOGUE, folder / _PATTERNS, whole, segment_bytes=segment_bytes
            )
            files = generation_files(whole, expected)
            for store, records in built.items():
                assert records[at]["generation"] == expected.id, (store, at)
                assert generation_files(store, expected) == files, (store, at)
        for full, increment in built.values():
            assert (increment["full_because"], increment["topics"] - full["topics"]) == ("", 3), increment
            # The names of some segments are kept, the postings of all have the added pattern.
            assert 0 < increment["segments_kept"] < increment["segments"], increment
