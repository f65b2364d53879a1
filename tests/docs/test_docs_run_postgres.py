"""The pages that need a PostgreSQL server do what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.page_runner import pages_to_run, run_page
from tests.support.postgres_server import PostgresServer

#: Pages that start many programs; of tests/postgres/fill and tests/postgres/commands these are the same without them.
LONG = {"how-to/postgres-fill.md"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.long] * (page in LONG)) for page in pages_to_run("postgres")],
)
def test_a_page_does_what_it_says(
    page: str, programs: Path, postgres: Callable[[], PostgresServer], tmp_path: Path
) -> None:
    run_page(page, tmp_path, programs, postgres)
