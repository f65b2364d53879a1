"""Literals of a pattern, read from its text: the whole literal, the prefix, the alternatives, required substrings.

Only for patterns that RE2 *accepts*. Nothing is claimed if the text has syntax that is not understood here, since a
wrong claim would lose topics.

Runs of byte classes that every match of a pattern has (``[01][23]-[w-z]``) are read so too (:func:`class_run`): any
syntax that is not understood ends a run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Final

from broker_core.patterns.tokens import PatternToken, TokenKind, close_quote, tokens

__all__ = ["PatternShape", "class_run", "plain_shape", "read_shape", "top_level"]


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
