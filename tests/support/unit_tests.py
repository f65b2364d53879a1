"""Which files of tests are of units: they start no program and no server, and need nothing beside `.venv`.

Told by what a file says, so that nobody has to remember a marker, and so that the others are not even imported.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["is_unit_tests"]

#: Folders whose tests need programs: PostgreSQL, a JVM, wheels, real brokers.
_FOLDERS = frozenset({"benchmarks", "docs", "examples", "interop", "postgres", "spark"})
#: What starts programs, or listens.
_STARTS = re.compile(
    r"""Popen|sys\.executable|multiprocessing|pytester
    |tests\.cli\.server\b|tests\.support\.(?:admin_server|fresh_environment|pulsar_serving|scripted_server|served)\b
    |broker_core\.(?:broker|testing)\ import|Lookup(?:Client|Session)|create_server|start_server|open_connection
    |def\ test\w+\(.*\b(?:wheels|distributions)\b""",
    re.VERBOSE,
)


def is_unit_tests(file: Path, tests: Path) -> bool:
    """Whether a file below the folder ``tests`` has tests of units alone."""
    if file.relative_to(tests).parts[0] in _FOLDERS:
        return False
    return _STARTS.search(file.read_text(encoding="utf-8")) is None
