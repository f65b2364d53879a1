"""The text of a pattern as it is read: its tokens, and by them the literals that every match surely has.

The tokens of a regular expression are read in one pass whose cost is linear in its length. The syntax is RE2's, and
also that of other dialects which RE2 refuses (lookaround, comments, possessive repetition ...), so that refused
patterns can be distinguished from broken ones.

Literals (the whole literal, the prefix, the alternatives, required substrings) are only for patterns that RE2
*accepts*. Nothing is claimed if the text has syntax that is not understood here, since a wrong claim would lose topics.
Runs of byte classes that every match of a pattern has (``[01][23]-[w-z]``) are read so too (:func:`class_run`): any
syntax that is not understood ends a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

__all__ = [
    "PatternShape",
    "PatternToken",
    "TokenKind",
    "class_run",
    "close_quote",
    "has_any_byte",
    "plain_shape",
    "read_shape",
    "tokens",
    "top_level",
]


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


@dataclass(frozen=True, slots=True)
class PatternShape:
    """The certain parts of every full match of a pattern; ``None`` and empty if nothing is certain.

    ``literal``: the only string that matches. ``prefix``: every match starts with it; with ``any_tail``, exactly the
    strings that start with it and have no newline after it match. ``alternatives``: patterns one of which must match
    whenever the whole one does. ``required``: substrings of every match, longest first. ``asserts``: there is a ``\\b``
    or ``\\B``, which depends on the character before it.
    """

    literal: str | None = None
    prefix: str | None = None
    any_tail: bool = False
    alternatives: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    asserts: bool = False


_MAX_ALTERNATIVES: Final = 16

# Nothing but characters, then perhaps "anything": most patterns, and read at once.
_PLAIN: Final = re.compile(
    r"\^?((?:[^\\.\[\](){}*+?|^$]|\\[!-/:-@\[-^`{-~])*)(\.\*\??)?\$?", re.ASCII | re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def plain_shape(text: str) -> PatternShape | None:
    """The shape of a pattern of literal characters with or without ``.*`` after them, else ``None``.

    Such a pattern is certainly valid in RE2, so its matches are known without compiling it.
    """
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return None
    literal = _ESCAPED.sub(r"\1", plain[1])
    required = (literal,) if literal else ()
    if plain[2] is None:
        return PatternShape(literal=literal, prefix=literal, required=required)
    return PatternShape(prefix=literal, any_tail=True, required=required)


def read_shape(text: str) -> PatternShape:
    """The shape of a pattern that RE2 has accepted; an empty one if the text has syntax that is not understood here."""
    plain = plain_shape(text)
    if plain is not None:
        return plain
    every = list(tokens(text))
    asserts = any(token.kind is TokenKind.ESCAPE and token.text in "bB" for token in every)
    top = top_level(every)
    if top is None:
        return PatternShape(asserts=asserts)
    bars = [token for token in top if token.kind is TokenKind.ALTERNATIVE]
    if bars:
        return PatternShape(alternatives=_bounded(_split(text, bars)), asserts=asserts)
    return replace(_concatenation(text, top), asserts=asserts)


def _split(text: str, bars: list[PatternToken]) -> tuple[str, ...]:
    starts = [0, *(bar.end for bar in bars)]
    ends = [*(bar.start for bar in bars), len(text)]
    return tuple(text[start:end] for start, end in zip(starts, ends, strict=True))


def _bounded(alternatives: tuple[str, ...]) -> tuple[str, ...]:
    return alternatives if len(alternatives) <= _MAX_ALTERNATIVES else ()


def top_level(every: list[PatternToken]) -> list[PatternToken] | None:
    """The tokens outside of groups, each group as one ``OPEN`` token that spans it; ``None`` if one is strange.

    Strange are flags, which change the meaning of characters, and a repetition of a repetition: RE2 takes ``a+\\Q\\E*``
    for ``(?:a+)*``.
    """
    top: list[PatternToken] = []
    opened: list[PatternToken] = []
    before: TokenKind | None = None
    for token in every:
        kind = token.kind
        if kind in _STRANGE or (kind is TokenKind.REPEAT and before in _UNREPEATABLE):
            return None
        before = kind
        if kind is TokenKind.OPEN:
            if not _is_plain_group(token.text):
                return None
            opened.append(token)
        elif kind is TokenKind.CLOSE:
            if not opened:
                return None
            group = opened.pop()
            if not opened:
                top.append(PatternToken(TokenKind.OPEN, group.text, group.start, token.end))
        elif not opened:
            top.append(token)
    return None if opened else top


_STRANGE: Final = frozenset({TokenKind.FLAGS, TokenKind.COMMENT, TokenKind.ANY_BYTE, TokenKind.BROKEN})
_UNREPEATABLE: Final = frozenset({None, TokenKind.REPEAT, TokenKind.OPEN, TokenKind.ALTERNATIVE})


def _is_plain_group(opening: str) -> bool:
    return opening in ("(", "(?:") or (opening.startswith(("(?P<", "(?<")) and opening.endswith(">"))


def _concatenation(text: str, top: list[PatternToken]) -> PatternShape:
    runs: list[str] = [""]
    certain = True  # nothing but literal characters so far
    prefix: str | None = None
    alternatives: tuple[str, ...] = ()
    any_tail = False
    for index, token in enumerate(top):
        if token.kind is TokenKind.REPEAT:
            continue
        following = top[index + 1] if index + 1 < len(top) else None
        repeat = following if following is not None and following.kind is TokenKind.REPEAT else None
        if repeat is None:
            if token.kind is TokenKind.LITERAL:
                runs[-1] += token.text
                continue
            if token.kind is TokenKind.BEGIN and index == 0:
                continue
            if token.kind is TokenKind.END and index == len(top) - 1:
                continue
        if certain:
            certain, prefix = False, runs[-1]
            any_tail = (
                token.kind is TokenKind.ANY and repeat is not None and _to_the_end(repeat, top[index + 2 :])
            )
            if token.kind is TokenKind.OPEN and repeat is None:
                alternatives = _expanded(text, token)
        if token.kind is TokenKind.LITERAL and repeat is not None and _at_least_once(repeat):
            runs[-1] += token.text
        runs.append("")
    if certain:
        literal = runs[-1]
        return PatternShape(literal=literal, prefix=literal, required=(literal,) if literal else ())
    required = tuple(sorted({run for run in runs if run}, key=lambda run: (-len(run.encode()), run)))
    return PatternShape(prefix=prefix, any_tail=any_tail, alternatives=alternatives, required=required)


def _to_the_end(repeat: PatternToken, rest: list[PatternToken]) -> bool:
    """Whether a ``.`` repeated so matches the whole rest of the string."""
    return repeat.text in ("*", "*?") and (not rest or (len(rest) == 1 and rest[0].kind is TokenKind.END))


def _at_least_once(repeat: PatternToken) -> bool:
    if repeat.text.startswith("+"):
        return True
    return repeat.text.startswith("{") and int(re.split(r"[,}]", repeat.text[1:])[0]) >= 1


def _expanded(text: str, group: PatternToken) -> tuple[str, ...]:
    """``a(b|c)d`` as ``a(?:b)d`` and ``a(?:c)d``: the first group taken apart into its alternatives."""
    inner = text[group.start + len(group.text) : group.end - 1]
    top = top_level(list(tokens(inner)))
    if top is None:
        return ()
    bars = [token for token in top if token.kind is TokenKind.ALTERNATIVE]
    if not bars:
        return ()
    parts = _split(inner, bars)
    return _bounded(
        tuple(f"{text[: group.start]}(?:{close_quote(part)}){text[group.end :]}" for part in parts)
    )


#: The longest run that is worth a search: each byte costs a pass over memory.
LONGEST: Final = 4
#: Bytes of a pattern's runs that are considered, so that a pattern of a thousand classes costs no more than others.
_MOST: Final = 64
#: Each byte of a class is assumed to have a chance of a tenth: names are digits and words, as a rule.
_BYTES: Final = 10
#: A run that begins at a byte of a name by chance more often than this is of no help.
_CHANCE: Final = 0.02
_CLASS: Final = re.compile(r"\[(?:[A-Za-z0-9_](?:-[A-Za-z0-9_])?)+\]", re.ASCII)
_ITEMS: Final = re.compile(r"(.)(?:-(.))?")
_EXACTLY: Final = re.compile(r"\{([1-9])\}", re.ASCII)
_DIGITS: Final = frozenset(b"0123456789")

_Bytes = frozenset[int]


@lru_cache(maxsize=1024)  # called for each chunk, and for each repeated search of a pattern
def class_run(text: str) -> tuple[_Bytes, ...]:
    """The run of byte classes in every match of a pattern; if there are several, the least likely one by chance.

    Empty if none is unlikely enough, or if the run is a literal text.
    """
    top = top_level(list(tokens(text)))
    if top is None or any(token.kind is TokenKind.ALTERNATIVE for token in top):
        return ()
    every = [
        run[begin : begin + LONGEST] for run in _runs(top) for begin in range(max(len(run) - LONGEST, 0) + 1)
    ]
    best = min((run for run in every if any(len(some) > 1 for some in run)), key=_chance, default=[])
    return tuple(best) if best and _chance(best) <= _CHANCE else ()


def _chance(run: Sequence[_Bytes]) -> float:
    return prod(min(len(some) / _BYTES, 1.0) for some in run)


def _runs(top: Sequence[PatternToken]) -> list[list[_Bytes]]:
    runs: list[list[_Bytes]] = [[]]
    left = _MOST
    for index, token in enumerate(top):
        if left <= 0:
            break
        if token.kind is TokenKind.REPEAT:
            continue
        following = top[index + 1] if index + 1 < len(top) else None
        times = 1
        if following is not None and following.kind is TokenKind.REPEAT:
            exactly = _EXACTLY.fullmatch(following.text)
            times = int(exactly[1]) if exactly else 0
        own = _bytes_of(token) if times else None
        if own is None:
            runs.append([])
        else:
            runs[-1] += (own * times)[:left]
            left -= len(own) * times
    return runs


def _bytes_of(token: PatternToken) -> list[_Bytes] | None:
    """The classes of a token's bytes; ``None`` if they are not certain."""
    if token.kind is TokenKind.LITERAL:
        return [frozenset((byte,)) for byte in token.text.encode()]
    if token.kind is TokenKind.ESCAPE and token.text == "d":
        return [_DIGITS]
    if token.kind is TokenKind.CLASS and _CLASS.fullmatch(token.text):
        found: set[int] = set()
        for first, last in _ITEMS.findall(token.text[1:-1]):
            found.update(range(ord(first), ord(last or first) + 1))
        return [frozenset(found)]
    return None
