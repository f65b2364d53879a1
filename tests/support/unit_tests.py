"""Which files of tests are of units: they start no program and no server, and need nothing beside `.venv`.

Told by what a file says, so that nobody has to remember a marker, and so that the others are not even imported.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.support.distributions import ROOT

__all__ = ["is_unit_tests", "shared_start_of", "turn_of_tests"]

#: Folders whose tests need programs: PostgreSQL, a JVM, wheels, real brokers.
_FOLDERS = frozenset(
    {"benchmarks", "differential", "docs", "examples", "explorer", "interop", "postgres", "spark"}
)
#: Folders whose files take longest, each for a minute or more: pages, examples, benchmarks, scenes with real brokers.
_LONGEST = frozenset({"benchmarks", "docs", "examples", "interop"})
#: What several files share, the longest first: its name, their folder, and words that each of them has.
_SHARED = (
    ("spark", "spark", "SparkSession"),
    ("pages", "docs", "programs: Path"),
    ("chromium", "explorer", "page_of"),
)
#: Files of a minute or more by themselves, most of which they wait for real brokers and clusters.
_LONG_SCENES = frozenset(
    f"test_{name}.py"
    for name in (
        "kafka_random",
        "secured",
        "spark_clusters",
        "spark_tables",
        "spark_versions",
        "watch_scenes",
        "watch_steps",
    )
)
#: What starts programs, or listens.
_STARTS = re.compile(
    r"""Popen|create_subprocess|sys\.executable|multiprocessing|pytester|scripts\.mutants
    |tests\.cli\.server(?:_process)?\b
    |tests\.support\.(?:admin_server|fresh_environment|pulsar_serving|raw_client|scripted_server|served)\b
    |broker_core\.(?:broker|testing)\ import|Lookup(?:Client|Session)|create_server|start_server|open_connection
    |def\ test\w+\(.*\b(?:wheels|distributions)\b""",
    re.VERBOSE,
)


def is_unit_tests(file: Path, tests: Path) -> bool:
    """Whether a file below the folder ``tests`` has tests of units alone."""
    if file.relative_to(tests).parts[0] in _FOLDERS:
        return False
    return _STARTS.search(file.read_text(encoding="utf-8")) is None


@cache
def shared_start_of(file: Path) -> str | None:
    """Name of what takes long to start and several files of tests share, if one process runs them all.

    It is the Spark session, whose JVM is warm then, the environment with the wheels in which pages of the documentation
    run, or the browser and the servers of the page in it.
    """
    for name, folder, words in _SHARED:
        if file.is_relative_to(ROOT / "tests" / folder) and words in file.read_text(encoding="utf-8"):
            return name
    return None


@cache
def turn_of_tests(file: Path, tests: Path) -> int:
    """When the tests of a file are run: with what several files share, and long scenes first, then other long files,
    units last.

    So no process of a run is alone with a long file at the end.
    """
    if (shared := shared_start_of(file)) is not None:
        return [name for name, _, _ in _SHARED].index(shared)
    if file.name in _LONG_SCENES:
        return len(_SHARED)
    if file.relative_to(tests).parts[0] in _LONGEST:
        return len(_SHARED) + 1
    return len(_SHARED) + (3 if is_unit_tests(file, tests) else 2)
