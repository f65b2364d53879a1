"""Reading the text of a regular expression, as far as a listing needs to understand it.

Two readers share one tokenizer. :func:`read_shape` looks at a pattern that RE2 *accepts* and tells what every match must
look like (its literal, its alternatives, substrings that it cannot do without); it claims nothing where it is unsure,
since a wrong claim would lose topics. :func:`malformation` looks at a pattern that RE2 *refuses* and tells whether it is
no regular expression in any dialect, or one that another engine (Java's) would run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

__all__ = ["Shape", "close_quote", "has_any_byte", "malformation", "plain_shape", "read_shape"]


class _Kind(Enum):
    LITERAL = auto()  # text holds the character
    ANY = auto()  # .
    CLASS = auto()  # [...]
    ESCAPE = auto()  # \d \pL \x41: one character, or none (\b); not taken apart
    ANY_BYTE = auto()  # \C
    BEGIN = auto()  # ^ \A
    END = auto()  # $ \z
    OPEN = auto()  # text holds "(", "(?:", "(?P<n>", "(?=" ...
    CLOSE = auto()
    FLAGS = auto()  # (?i)
    ALTERNATIVE = auto()
    REPEAT = auto()  # text holds "*", "+?", "{2,3}" ...
    BROKEN = auto()  # text says why


@dataclass(frozen=True, slots=True)
class _Token:
    kind: _Kind
    text: str
    start: int
    end: int


_COUNT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}", re.ASCII)
_FLAGS = re.compile(r"\(\?[a-zA-Z]*(?:-[a-zA-Z]*)?\)", re.ASCII)
_GROUP = re.compile(r"\((?:\?(?:P?<[A-Za-z_]\w*>|P=\w*|<[=!]|[a-zA-Z]*(?:-[a-zA-Z]*)?:|[=!>|#]))?", re.ASCII)
_LONG_ESCAPE = re.compile(
    r"\\(?:[pP]\{[^}]*\}|[pP].|x\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|k<[^>]*>|c.|[0-7]{1,3}|.)",
    re.DOTALL | re.ASCII,
)


def _tokens(text: str, *, nested_classes: bool = False) -> Iterator[_Token]:
    """The tokens of ``text`` in order; every character belongs to one. ``nested_classes`` reads ``[a[b]]`` as Java does."""
    position = 0
    while position < len(text):
        start, char = position, text[position]
        if char == "\\":
            if text.startswith("\\Q", position):
                stop = text.find("\\E", position + 2)
                quoted_end = len(text) if stop < 0 else stop
                for index in range(position + 2, quoted_end):
                    yield _Token(_Kind.LITERAL, text[index], index, index + 1)
                position = len(text) if stop < 0 else stop + 2
                continue
            match = _LONG_ESCAPE.match(text, position)
            if match is None:
                yield _Token(_Kind.BROKEN, "a trailing backslash", start, len(text))
                return
            position = match.end()
            yield _Token(_escape_kind(text[start + 1]), text[start + 1], start, position)
        elif char == "[":
            position = _class_end(text, position, nested=nested_classes)
            if position < 0:
                yield _Token(_Kind.BROKEN, "a missing ']'", start, len(text))
                return
            yield _Token(_Kind.CLASS, text[start:position], start, position)
        elif char == "(":
            match = _FLAGS.match(text, position) or _GROUP.match(text, position)
            assert match is not None  # _GROUP matches a lone parenthesis
            position = match.end()
            kind = _Kind.FLAGS if match.group().endswith(")") else _Kind.OPEN
            yield _Token(kind, match.group(), start, position)
        elif char in "*+?" or (char == "{" and _COUNT.match(text, position)):
            count = _COUNT.match(text, position)
            position = count.end() if count else position + 1
            if position < len(text) and text[position] in "?+":
                position += 1
            yield _Token(_Kind.REPEAT, text[start:position], start, position)
        else:
            position += 1
            kind = {
                ".": _Kind.ANY,
                ")": _Kind.CLOSE,
                "|": _Kind.ALTERNATIVE,
                "^": _Kind.BEGIN,
                "$": _Kind.END,
            }.get(char, _Kind.LITERAL)
            yield _Token(kind, char, start, position)


def _escape_kind(char: str) -> _Kind:
    if char == "C":
        return _Kind.ANY_BYTE
    if char == "A":
        return _Kind.BEGIN
    if char == "z":
        return _Kind.END
    if char.isascii() and not char.isalnum():
        return _Kind.LITERAL
    return _Kind.ESCAPE


def _class_end(text: str, start: int, *, nested: bool) -> int:
    """The position behind the ``]`` of the class that starts here, or -1. The first ``]`` of a class is a member."""
    position = start + 1
    if text.startswith("^", position):
        position += 1
    if text.startswith("]", position):
        position += 1
    while position < len(text):
        if text[position] == "\\":
            if text.startswith("\\Q", position) and (stop := text.find("\\E", position)) >= 0:
                position = stop
            position += 2
        elif text[position] == "]":
            return position + 1
        elif text.startswith("[:", position) and (stop := text.find(":]", position + 2)) >= 0:
            position = stop + 2
        elif text[position] == "[" and nested:
            position = _class_end(text, position, nested=True)
            if position < 0:
                return -1
        else:
            position += 1
    return -1


def close_quote(text: str) -> str:
    r"""``text`` with an open ``\Q`` closed, so that what is put behind it is not quoted too."""
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
    r"""Whether the pattern uses ``\C``, which matches single bytes and so tears characters apart."""
    return "\\C" in text and any(token.kind is _Kind.ANY_BYTE for token in _tokens(text))


def malformation(text: str) -> str | None:
    """Why a pattern is no regular expression in any dialect, or ``None`` where some other engine may accept it."""
    plain, nested = _malformation(text, nested_classes=False), _malformation(text, nested_classes=True)
    return plain if nested is not None else None


def _malformation(text: str, *, nested_classes: bool) -> str | None:
    depth = 0
    repeatable = repeated = False
    for token in _tokens(text, nested_classes=nested_classes):
        if token.kind is _Kind.BROKEN:
            return token.text
        if token.kind is _Kind.ANY_BYTE:
            return "\\C is not allowed: it matches bytes, not characters"
        if token.kind is _Kind.FLAGS and "x" in token.text.split("-")[0]:
            return None  # comments from here on: nothing can be said of what looks like syntax in them
        if token.kind is _Kind.OPEN:
            if token.text == "(?#":
                return None  # a comment, likewise
            if "x" in token.text.partition("?")[2].split("-")[0] and token.text.endswith(":"):
                return None
            depth += 1
        elif token.kind is _Kind.CLOSE:
            depth -= 1
            if depth < 0:
                return "an unmatched ')'"
        elif token.kind is _Kind.REPEAT:
            counted = token.text.startswith("{")
            if repeated and not counted:
                return f"a stacked repetition operator {token.text!r}"
            if not repeatable and not repeated and not counted:
                return f"nothing to repeat before {token.text!r}"
            repeatable, repeated = False, True
            continue
        repeated = False
        repeatable = token.kind not in (_Kind.OPEN, _Kind.ALTERNATIVE, _Kind.FLAGS)
    return "a missing ')'" if depth else None


@dataclass(frozen=True, slots=True)
class Shape:
    """What every full match of a pattern looks like; ``None`` and empty where nothing is certain.

    ``literal``: the only string that matches. ``prefix``: with ``any_tail``, exactly the strings that start with it and
    have no newline behind it match. ``alternatives``: patterns of which one must match wherever the whole one does.
    ``required``: substrings of every match, longest first. ``asserts``: there are empty-width assertions other than
    anchors at the ends.
    """

    literal: str | None = None
    prefix: str | None = None
    any_tail: bool = False
    alternatives: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    asserts: bool = False


_MAX_ALTERNATIVES = 16


# Nothing but characters, then perhaps "anything": most patterns, and read at once.
_PLAIN = re.compile(r"\^?((?:[^\\.\[\](){}*+?|^$]|\\[!-/:-@\[-^`{-~])*)(\.\*\??)?\$?", re.ASCII)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def plain_shape(text: str) -> Shape | None:
    """The shape of a pattern of literal characters with or without ``.*`` behind them, else ``None``.

    Such a pattern is valid in RE2 for sure, so that nobody has to compile it to know what it matches.
    """
    plain = _PLAIN.fullmatch(text)
    if plain is None:
        return None
    literal = _ESCAPED.sub(r"\1", plain[1])
    required = (literal,) if literal else ()
    if plain[2] is None:
        return Shape(literal=literal, prefix=literal, required=required)
    return Shape(prefix=literal, any_tail=True, required=required)


def read_shape(text: str) -> Shape:
    """The shape of a pattern that RE2 has accepted; an empty one wherever the text has more than this understands."""
    plain = plain_shape(text)
    if plain is not None:
        return plain
    tokens = list(_tokens(text))
    asserts = any(_asserts_inside(token, index, len(tokens)) for index, token in enumerate(tokens))
    unsure = Shape(asserts=asserts)
    if any(token.kind in (_Kind.FLAGS, _Kind.BROKEN, _Kind.ANY_BYTE) for token in tokens):
        return unsure  # (?i) and its like change what the characters mean
    top = _top_level(tokens)
    if top is None:
        return unsure
    bars = [token for token in top if token.kind is _Kind.ALTERNATIVE]
    if bars:
        return Shape(alternatives=_bounded(_split(text, bars)), asserts=asserts)
    return replace(_concatenation(text, top), asserts=asserts)


def _asserts_inside(token: _Token, index: int, count: int) -> bool:
    if token.kind is _Kind.BEGIN:
        return index > 0
    if token.kind is _Kind.END:
        return index < count - 1
    return token.kind is _Kind.ESCAPE and token.text in "bB"


def _split(text: str, bars: list[_Token]) -> tuple[str, ...]:
    starts = [0, *(bar.end for bar in bars)]
    ends = [*(bar.start for bar in bars), len(text)]
    return tuple(text[start:end] for start, end in zip(starts, ends, strict=True))


def _bounded(alternatives: tuple[str, ...]) -> tuple[str, ...]:
    return alternatives if len(alternatives) <= _MAX_ALTERNATIVES else ()


def _top_level(tokens: list[_Token]) -> list[_Token] | None:
    """The tokens outside of groups, each group as one ``OPEN`` token that spans it; ``None`` if it does not balance."""
    top: list[_Token] = []
    opened: list[_Token] = []
    for token in tokens:
        if token.kind is _Kind.OPEN:
            if token.text not in ("(", "(?:") and not re.fullmatch(r"\(\?P?<\w+>", token.text, re.ASCII):
                return None  # a group with flags of its own
            opened.append(token)
        elif token.kind is _Kind.CLOSE:
            if not opened:
                return None
            group = opened.pop()
            if not opened:
                top.append(_Token(_Kind.OPEN, group.text, group.start, token.end))
        elif not opened:
            top.append(token)
    return None if opened else top


def _concatenation(text: str, top: list[_Token]) -> Shape:
    runs: list[str] = [""]
    certain = True  # nothing but literal characters so far
    prefix: str | None = None
    alternatives: tuple[str, ...] = ()
    any_tail = False
    for index, token in enumerate(top):
        following = top[index + 1] if index + 1 < len(top) else None
        repeat = following if following is not None and following.kind is _Kind.REPEAT else None
        if token.kind is _Kind.REPEAT:
            continue
        if token.kind is _Kind.BEGIN and index == 0 and repeat is None:
            continue
        if token.kind is _Kind.END and index == len(top) - 1:
            continue
        if token.kind is _Kind.LITERAL and repeat is None:
            runs[-1] += token.text
            continue
        if certain:
            certain, prefix = False, runs[-1]
            rest = top[index + 2 :] if repeat is not None else top[index + 1 :]
            at_end = all(t.kind is _Kind.END for t in rest) and len(rest) <= 1
            any_tail = (
                token.kind is _Kind.ANY and repeat is not None and repeat.text in ("*", "*?") and at_end
            )
            if token.kind is _Kind.OPEN and repeat is None:
                alternatives = _expanded(text, token)
        if token.kind is _Kind.LITERAL and repeat is not None and _at_least_once(repeat):
            runs[-1] += token.text
        runs.append("")
    if certain:
        literal = runs[-1]
        return Shape(literal=literal, prefix=literal, required=(literal,) if literal else ())
    required = tuple(sorted({run for run in runs if run}, key=lambda run: (-len(run.encode()), run)))
    return Shape(prefix=prefix, any_tail=any_tail, alternatives=alternatives, required=required)


def _at_least_once(repeat: _Token) -> bool:
    if repeat.text.startswith("+"):
        return True
    return repeat.text.startswith("{") and int(re.split(r"[,}]", repeat.text[1:])[0]) >= 1


def _expanded(text: str, group: _Token) -> tuple[str, ...]:
    """``a(b|c)d`` as ``a(?:b)d`` and ``a(?:c)d``: the first group taken apart into its alternatives."""
    inner_start, inner_end = group.start + len(group.text), group.end - 1
    inner = text[inner_start:inner_end]
    top = _top_level(list(_tokens(inner)))
    if top is None:
        return ()
    bars = [token for token in top if token.kind is _Kind.ALTERNATIVE]
    parts = _split(inner, bars)
    return _bounded(
        tuple(f"{text[: group.start]}(?:{close_quote(part)}){text[group.end :]}" for part in parts)
    )
