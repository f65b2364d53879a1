"""docs/how-to/troubleshoot.md quotes what the server and its commands say, word by word."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, code_in, tables

PAGE = "how-to/troubleshoot.md"


def test_the_quoted_words_are_those_of_the_sources() -> None:
    sources = (*ROOT.glob("broker_core/**/*.py"), *ROOT.glob("plugins/*/broker_core_*/**/*.py"))
    # A text that goes on in the next line is one text.
    said = re.sub(r'"\s*\n\s*f?"', "", "".join(path.read_text(encoding="utf-8") for path in sources))
    quoted = {
        words
        for table in tables(PAGE)
        if table.columns[0] in ("the line has", "event", "its text has")
        for row in table.rows
        for words in code_in(row[0])
    }
    assert len(quoted) > 20
    assert sorted(words for words in quoted if words not in said) == []
