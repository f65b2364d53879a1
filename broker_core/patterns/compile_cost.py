"""An upper bound of the cost of compiling a pattern, from its text alone, before any engine sees it.

google-re2 holds the interpreter's lock while it compiles. Its bound on memory ends the compiling of a program that is
too large, but not the parsing before that: each Unicode class (``\\pL``) expands to hundreds of ranges, and ``(?i)``
folds each of them (0.3 ms a class). So their number has a bound of its own.
"""

from __future__ import annotations

import re
from typing import Final

from broker_core.patterns.tokens import PatternToken, TokenKind, tokens

__all__ = ["MAX_UNICODE_CLASSES", "estimated_instructions", "unicode_classes"]

#: Unicode classes that a pattern may name: 6 ms of parsing at the worst.
MAX_UNICODE_CLASSES: Final = 20

#: The most instructions of one token. A class of letters has 700 to 1,300.
_UNICODE_CLASS: Final = 1500
_CLASS: Final = 60
_ANY: Final = 12
_OTHER: Final = 3
#: Case folding makes classes of characters.
_FOLDED: Final = 4

_ESCAPED_CLASS: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[pP]")
_FEW_BYTES: Final = re.compile(r"\[[\w.-]+\]", re.ASCII)  # [a-f0-9]
_COUNTS: Final = re.compile(r"\d+", re.ASCII)


def unicode_classes(text: str) -> int:
    r"""How many classes such as ``\pL`` and ``\P{Greek}`` the text of a pattern names."""
    if "\\p" not in text and "\\P" not in text:
        return 0
    return sum(map(_unicode_classes, tokens(text)))


def _unicode_classes(token: PatternToken) -> int:
    if token.kind is TokenKind.CLASS:
        return len(_ESCAPED_CLASS.findall(token.text))
    return 1 if token.kind is TokenKind.ESCAPE and token.text in "pP" else 0


def estimated_instructions(text: str) -> int:
    """A loose upper bound on RE2's instructions for a pattern; meaningless for a pattern that RE2 refuses.

    A repetition counts its operand as often as it may occur. Linear in the length of the text.
    """
    sizes = [0]  # of the open groups, outermost first
    last = 0  # of the operand of a following repetition
    folded = 1
    for token in tokens(text):
        kind = token.kind
        if kind is TokenKind.OPEN:
            folded = _FOLDED if token.text.startswith("(?") and token.text != "(?:" else folded
            sizes.append(_OTHER)
            continue
        if kind is TokenKind.REPEAT:
            times = max(map(int, _COUNTS.findall(token.text)), default=1) + 1
            sizes[-1] += last * (times - 1) + 2 * times
            last = last * times + 2 * times  # a repetition of a repetition repeats all of it
            continue
        if kind is TokenKind.CLOSE and len(sizes) > 1:
            last = sizes.pop() + _OTHER
        elif kind is TokenKind.FLAGS:
            folded = _FOLDED  # a repetition after flags repeats what is before them
            continue
        else:
            last = folded * _instructions(token)
        sizes[-1] += last
    return sum(sizes)


def _instructions(token: PatternToken) -> int:
    if token.kind is TokenKind.LITERAL:
        return len(token.text.encode(errors="replace"))
    if token.kind is TokenKind.ANY:
        return _ANY
    classes = _unicode_classes(token)
    if classes:
        return classes * _UNICODE_CLASS
    if token.kind is TokenKind.CLASS:
        if _FEW_BYTES.fullmatch(token.text):
            return len(token.text) // 2
        return max(_CLASS, 4 * len(token.text))
    return _CLASS // 4
