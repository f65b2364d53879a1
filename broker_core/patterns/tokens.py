"""The tokens of a regular expression, in one pass whose cost is linear in its length.

The syntax is RE2's, and also that of other dialects which RE2 refuses (lookaround, comments, possessive repetition
...), so that refused patterns can be distinguished from broken ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

__all__ = ["PatternToken", "TokenKind", "close_quote", "has_any_byte", "tokens"]


class TokenKind(Enum):
    """The kind of a token; ``PatternToken.text`` holds its text as written unless said otherwise."""

    LITERAL = auto()  # text holds the characters themselves, one or more
    ANY = auto()  # .
    CLASS = auto()  # [...]
    ESCAPE = auto()  # \d \pL \x41: one character, or none (\b); text holds the letter
    ANY_BYTE = auto()  # \C
    BEGIN = auto()  # ^ \A
    END = auto()  # $ \z
    OPEN = auto()  # "(", "(?:", "(?P<n>", "(?=" ...; "(?" alone if what follows is unknown
    CLOSE = auto()
    FLAGS = auto()  # (?i)
    COMMENT = auto()  # (?#...)
    ALTERNATIVE = auto()
    REPEAT = auto()  # "*", "+?", "{2,3}" ...
    BROKEN = auto()  # text says why; nothing comes after it


class PatternToken(NamedTuple):
    """One token, and its place in the pattern: ``[start, end)``."""

    kind: TokenKind
    text: str
    start: int
    end: int


_RUN: Final = re.compile(r"[^\\.\[(){*+?|^$]+")
_REPEAT: Final = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})[?+]?", re.ASCII)
# (?R) is a recursion, which can be repeated.
_FLAGS: Final = re.compile(r"\(\?(?!R\))[a-zA-Z]*(?:-[a-zA-Z]*)?\)", re.ASCII)
_GROUP: Final = re.compile(r"\((?:\?(?:P?<[^>=!][^>]*>|P=|<[=!]|[a-zA-Z]*(?:-[a-zA-Z]*)?:|[=!>|])?)?")
# PCRE's verbs, such as (*ACCEPT).
_VERB: Final = re.compile(r"\(\*[A-Za-z][A-Za-z0-9_]*(?:[:=][^)]*)?\)", re.ASCII)
_ESCAPE: Final = re.compile(
    r"\\(?:[pPxgNo]\{[^}]*\}|b\{[a-z_]+\}|[pP].|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[kg]<[^>]*>|c.|[0-7]{1,3}|.)",
    re.DOTALL | re.ASCII,
)
_SIMPLE: Final = {
    ".": TokenKind.ANY,
    ")": TokenKind.CLOSE,
    "|": TokenKind.ALTERNATIVE,
    "^": TokenKind.BEGIN,
    "$": TokenKind.END,
}
_ESCAPES: Final = {"C": TokenKind.ANY_BYTE, "A": TokenKind.BEGIN, "z": TokenKind.END}


def tokens(text: str, *, nested_classes: bool = False) -> Iterator[PatternToken]:
    """The tokens of ``text`` in order.

    ``nested_classes`` reads ``[a[b]]`` as one class, as Java does. A repetition comes right after its operand: the last
    character of a literal text before it is a token of its own.
    """
    position, size = 0, len(text)
    while position < size:
        start, char = position, text[position]
        if run := _RUN.match(text, position):
            position = run.end()
            yield from _literal(text, start, position, position)
        elif simple := _SIMPLE.get(char):
            position += 1
            yield PatternToken(simple, char, start, position)
        elif char == "\\":
            if text.startswith("\\Q", position):
                stop = text.find("\\E", position + 2)
                stop, position = (size, size) if stop < 0 else (stop, stop + 2)
                yield from _literal(text, start + 2, stop, position)
                continue
            match = _ESCAPE.match(text, position)
            if match is None:
                yield PatternToken(TokenKind.BROKEN, "a trailing backslash", start, size)
                return
            position = match.end()
            letter = text[start + 1]
            kind = _ESCAPES.get(letter, TokenKind.ESCAPE)
            if letter.isascii() and not letter.isalnum():
                kind = TokenKind.LITERAL
            yield PatternToken(kind, letter, start, position)
        elif char == "[":
            position = _class_end(text, position, nested=nested_classes)
            if position < 0:
                yield PatternToken(TokenKind.BROKEN, "a missing ']'", start, size)
                return
            yield PatternToken(TokenKind.CLASS, text[start:position], start, position)
        elif char == "(":
            token = _parenthesis(text, position)
            position = token.end
            yield token
        elif match := _REPEAT.match(text, position):
            position = match.end()
            yield PatternToken(TokenKind.REPEAT, match.group(), start, position)
        else:  # a brace that counts nothing
            position += 1
            yield PatternToken(TokenKind.LITERAL, char, start, position)


def _literal(text: str, start: int, stop: int, repeated_at: int) -> Iterator[PatternToken]:
    r"""``text[start:stop]`` as it is; its last character as a token of its own if a repetition begins at
    ``repeated_at``.

    An empty ``\Q\E`` in between is nothing, to RE2 too.
    """
    if stop - start > 1:
        ahead = repeated_at
        while text.startswith("\\Q\\E", ahead):
            ahead += 4
        if text.startswith(("*", "+", "?", "{"), ahead):
            yield PatternToken(TokenKind.LITERAL, text[start : stop - 1], start, stop - 1)
            start = stop - 1
    if start < stop:
        yield PatternToken(TokenKind.LITERAL, text[start:stop], start, repeated_at)


def _parenthesis(text: str, start: int) -> PatternToken:
    if text.startswith("(?#", start):
        stop = text.find(")", start)
        if stop < 0:
            return PatternToken(TokenKind.BROKEN, "a missing ')'", start, len(text))
        return PatternToken(TokenKind.COMMENT, text[start : stop + 1], start, stop + 1)
    if match := _FLAGS.match(text, start) or _VERB.match(text, start):
        return PatternToken(TokenKind.FLAGS, match.group(), start, match.end())
    match = _GROUP.match(text, start)
    assert match is not None  # it matches a lone parenthesis
    return PatternToken(TokenKind.OPEN, match.group(), start, match.end())


def _class_end(text: str, start: int, *, nested: bool) -> int:
    """The position after the ``]`` of the class at ``start``, or -1. The first ``]`` of a class is a member."""
    position, depth = _class_begin(text, start), 1
    while position < len(text):
        char = text[position]
        if char == "\\":
            if text.startswith("\\Q", position) and (stop := text.find("\\E", position)) >= 0:
                position = stop
            position += 2
        elif char == "]":
            position, depth = position + 1, depth - 1
            if not depth:
                return position
        elif char == "[" and text.startswith("[:", position) and (stop := text.find(":]", position + 2)) >= 0:
            position = stop + 2
        elif char == "[" and nested:
            position, depth = _class_begin(text, position), depth + 1
        else:
            position += 1
    return -1


def _class_begin(text: str, start: int) -> int:
    """The position after ``[``, ``[^``, ``[]`` or ``[^]``, with which a class begins."""
    position = start + 1
    if text.startswith("^", position):
        position += 1
    return position + 1 if text.startswith("]", position) else position


def close_quote(text: str) -> str:
    r"""``text`` with an open ``\Q`` closed, so that text appended to it is not quoted too."""
    position = 0
    while (position := text.find("\\", position)) >= 0:
        if not text.startswith("\\Q", position):
            position += 2
            continue
        stop = text.find("\\E", position + 2)
        if stop < 0:
            return text + "\\E"
        position = stop + 2
    return text


def has_any_byte(text: str) -> bool:
    r"""Whether the pattern uses ``\C``, which matches single bytes and so splits characters."""
    return "\\C" in text and any(token.kind is TokenKind.ANY_BYTE for token in tokens(text))
