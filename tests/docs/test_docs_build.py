"""The pages build without a warning, and each is in a table of contents."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS, all_pages, read


def test_the_pages_build_without_warnings(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "dummy",
         "-D", "smartquotes=0",  # the shapes of quotation marks, for which each text is looked at again
         "-d", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_page_is_in_the_contents() -> None:
    """In those of the whole, or of a page with pages of its own, whose paths begin at its own folder."""
    listed = _contents("index.md", "") | _contents("reference/python-api.md", "reference/")
    listed |= _contents("how-to/recipes.md", "how-to/")
    assert listed == {*all_pages()} - {"index.md"}


def _contents(page: str, folder: str) -> set[str]:
    found = re.findall(r"^[a-z-]+/[a-z0-9_-]+$", read(page), re.MULTILINE)
    return {f"{folder}{name}.md" for name in found}
