"""The pages build without a warning, and none of them is lost."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS, all_pages, read


def test_the_pages_build_without_warnings(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-b", "dummy",
         "-d", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_every_page_is_in_the_contents() -> None:
    listed = re.findall(r"^[a-z-]+/[a-z0-9-]+$", read("index.md"), re.MULTILINE)
    assert {f"{name}.md" for name in listed} == {*all_pages()} - {"index.md"}
