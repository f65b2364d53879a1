"""Regular expressions of RE2's whole syntax, at random, each with strings that nearly match it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import re2
from hypothesis import assume
from hypothesis import strategies as st

__all__ = ["HOSTILE", "NOISE", "Regex", "full_match", "is_valid", "noise", "regexes"]


@dataclass(frozen=True)
class Regex:
    """A pattern, and strings of which many match it (none has to)."""

    text: str
    samples: tuple[str, ...]


_CHARS = [*"abkK-_./09 \n", "ſ", "\u212a", "é", "É", "\ue000", "\uffee", "😀", "٣", "{", "}", "]", ",", "\r"]
_META = frozenset("\\.[](){}*+?|^$")
_CLASSES = [
    *(("[ab]", "ab"), ("[a-c]", "abc"), ("[^a]", "bk-"), ("[\\d]", "09"), ("[[:alpha:]]", "abK")),
    *(("[]a]", "]a"), ("[a-\U0001ffff]", "bk😀\ue000"), ("[k-s]", "ks"), ("[^\\n]", "ab"), ("[ſ]", "ſ")),
    *(("\\d", "09"), ("\\w", "a_0"), ("\\W", "-/."), ("\\pL", "aſé"), ("\\PL", "0-"), ("\\p{Lu}", "KÉ")),
    *(("\\s", " \n"), ("\\x41", "A"), ("\\pN", "0٣"), ("\\101", "A"), (".", "abK-é😀\n")),
]
_EMPTY = ["^", "$", "\\A", "\\z", "\\b", "\\B", "(?m:^)", "(?m:$)", "(?:^|k)", "(?:$)", "()"]
_FLAGS = ["(?i)", "(?s)", "(?m)", "(?U)", "(?-i)", "(?ms)", "(?)"]
_OPENINGS = [*["(", "(?:"] * 4, "(?P<n%d>", "(?<名%d>", "(?i:", "(?s:", "(?m:", "(?U:", "(?i-s:"]
_REPEATS = [
    *(("*", (0, 1, 2)), ("+", (1, 2)), ("?", (0, 1)), ("{0}", (0,)), ("{1}", (1,)), ("{2}", (2,))),
    *(("{1,2}", (1, 2)), ("{0,1}", (0, 1)), ("{1,}", (1, 3))),
]
_NO_COUNTS = ["{", "{,3}", "{a}", "}", "]", "{1"]

_Drawn = tuple[str, list[str]]  # a pattern, and three strings


class _Grammar:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.groups = 0

    def alternatives(self, depth: int) -> _Drawn:
        parts = [self.sequence(depth) for _ in range(self.random.choice([1, 1, 1, 2, 2, 3]))]
        return "|".join(text for text, _ in parts), [self.random.choice(parts)[1][i] for i in range(3)]

    def sequence(self, depth: int) -> _Drawn:
        parts = [self.repeated(depth) for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 3, 4]))]
        return "".join(text for text, _ in parts), [
            "".join(strings[i] for _, strings in parts) for i in range(3)
        ]

    def repeated(self, depth: int) -> _Drawn:
        text, strings = self.atom(depth)
        if not text or self.random.random() < 0.75:
            return text, strings
        repeat, times = self.random.choice(_REPEATS)
        text += repeat + self.random.choice(["", "", "?"])
        if self.random.random() < 0.1:  # which repeats what is repeated already
            text += "\\Q\\E" + self.random.choice(["*", "?", "{0}", "+", "{2}"])
        return text, [string * self.random.choice(times) for string in strings]

    def atom(self, depth: int) -> _Drawn:
        kind = self.random.random()
        if kind < 0.45:
            char = self.random.choice(_CHARS)
            return self.escaped(char), [char] * 3
        if kind < 0.66:
            text, chars = self.random.choice(_CLASSES)
            return text, [self.random.choice(chars) for _ in range(3)]
        if kind < 0.72:
            quoted = "".join(self.random.choice([*_CHARS, *"(*|"]) for _ in range(self.random.randrange(4)))
            return f"\\Q{quoted}\\E", [quoted] * 3
        if kind < 0.80:
            return self.random.choice(_EMPTY), [""] * 3
        if kind < 0.83:
            return self.random.choice(_FLAGS), [""] * 3
        if kind < 0.85:
            text = self.random.choice(_NO_COUNTS)
            return text, [text] * 3
        if depth == 0:
            return "a", ["a"] * 3
        text, strings = self.alternatives(depth - 1)
        opening = self.random.choice(_OPENINGS)
        if "%d" in opening:
            self.groups += 1
            opening %= self.groups
        return f"{opening}{text})", strings

    def escaped(self, char: str) -> str:
        if char in _META:
            return f"\\{char}"
        kind = self.random.random()
        if kind < 0.05:
            return f"\\x{{{ord(char):x}}}"
        if kind < 0.08 and ord(char) < 256:
            return f"\\x{ord(char):02x}"
        return f"\\{char}" if kind < 0.12 and char in "-/_ " else char

    def near(self, string: str) -> list[str]:
        """The string, and some that differ a little."""
        strings = [string, string.upper(), string.lower(), string.swapcase()]
        for _ in range(3):
            chars = list(string)
            at = self.random.randrange(len(chars) + 1)
            change = self.random.choice(["put", "drop", "swap"])
            if change == "put" or not chars:
                chars.insert(at, self.random.choice(_CHARS))
            elif change == "drop":
                chars.pop(at - 1)
            else:
                chars[at - 1] = self.random.choice(_CHARS)
            strings.append("".join(chars))
        return strings


@st.composite
def regexes(draw: st.DrawFn, starts: Sequence[str] = ("", "t/n/", "t", "^t/n/", "(?i)t/n/")) -> Regex:
    """Patterns that are nearly always valid, beginning in one of these ways."""
    # Seeded by one number: hundreds of draws an example took longer than what is tested.
    grammar = _Grammar(draw(st.randoms(use_true_random=True)))
    text, strings = grammar.alternatives(depth=2)
    start = grammar.random.choice(starts)
    plain = start.removeprefix("(?i)").removeprefix("^")
    if grammar.random.random() < 0.06:
        text += "\\Q" + grammar.random.choice(["", "a", "a|", "a\\"])
    assume("://" not in text)  # flags before two slashes, which are a scheme in topics patterns
    samples = {near for string in strings for near in grammar.near(plain + string)}
    return Regex(start + text, tuple(sorted(samples | {"", "a", "b"})))


#: Characters of which any text may be a pattern or, mostly, none.
NOISE = "aab|()[]{}*+?^$.\\\\QEbBAzC-:,12i<P>kK\nsm-x"


@st.composite
def noise(draw: st.DrawFn) -> Regex:
    """Any text of characters that mean something in a pattern."""
    text = draw(st.text(st.sampled_from(NOISE), max_size=14))
    removed = ["", "()", "()|*+?", "\\", "()[]|*+?^$.\\QE"]
    return Regex(
        text, tuple(sorted({text.translate(dict.fromkeys(map(ord, chars))) for chars in removed} | {"a"}))
    )


LONGEST = 1024  # characters, as many as a pattern may have

#: Texts of that length which are hard to read: what opens and never closes, again and again.
HOSTILE = [
    *(
        "(" * LONGEST,
        "[" * LONGEST,
        "[[:" * 341,
        "[[" * 512,
        "\\Q" * 512,
        "\\Q\\E" * 256,
        "a*" * 512,
        "(?<" * 341,
    ),
    *(
        "(?P<" * 256,
        "\\p{" * 341,
        "\\x{" * 341,
        "(?#" * 341,
        "{1," * 341,
        "(*A:" * 256,
        "(?i" * 341,
        "\\k<" * 341,
    ),
    *("[\\Q" * 341, "[^" * 512, "[]" * 512, "[^]" * 341, "\\" * LONGEST, "\\" * (LONGEST - 1), "(?i-" * 256),
    *(
        "[a-" * 341,
        "\\Qa" * 341,
        "|" * LONGEST,
        "(?:" * 341,
        ")" * LONGEST,
        "(?-" * 341,
        "\\b{a" * 256,
        "((?i)" * 204,
    ),
]


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    return options


_OPTIONS = _options()


def is_valid(text: str) -> bool:
    """Whether RE2 takes this pattern, as it is."""
    try:
        re2.compile(text, _OPTIONS)
    except re2.error:
        return False
    return True


def full_match(text: str, string: str) -> bool:
    """What google-re2 itself says of the pattern as it is."""
    return re2.compile(text, _OPTIONS).fullmatch(string) is not None
