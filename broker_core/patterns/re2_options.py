"""Settings of RE2: the memory for compiling, the largest program, and the anchors at both ends."""

from __future__ import annotations

from typing import Any, Final

import re2

from broker_core.patterns.tokens import close_quote

__all__ = ["MAX_PROGRAM", "anchored_text", "engine_options"]

#: Instructions of a compiled program. `(.*){1000}` has 10,000; from about 17,000 on RE2's automaton does not fit into
#: its memory, and RE2 turns to a way of matching that is a hundred times slower.
MAX_PROGRAM: Final = 12_000


def engine_options(memory: int) -> Any:
    """The options of an engine that takes at most so many bytes, and logs nothing."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    return options


def anchored_text(text: str) -> str:
    """The pattern that matches a text if all of it matches ``text``."""
    return rf"\A(?:{close_quote(text)})\z"
