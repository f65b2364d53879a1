"""Differences that fragments in `changes/` name: the words of this tree, and those of the tree before in their place.

A row goes when its fragment goes into the changelog. Answers that are the same but for such words are not different.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["fragments_of"]


class _Named(NamedTuple):
    """What ``ours`` and ``theirs`` match stands for one thing, in answers to requests in which ``asked`` is found.

    Without ``theirs``, this tree alone says what ``ours`` matches.
    """

    fragment: str
    ours: str
    theirs: str | None = None
    asked: str = ""


_CODES: Final = r"'error_code': (29|100)(, 'error_message': (None|'[^']*'|\"[^\"]*\"))?"
#: White space between values of JSON, and behind the last one.
_SPACES: Final = re.compile(r'(?:(?<="):|(?<=[\]}"\w>]),) (?=["\[{<\d-]|null|true|false)|\n\Z')
_MASK: Final = r'"answer":"mask","ms":<time>(,"version":"1","kept":true)?'
_PARTITIONS: Final = (
    "'error_code': (0|-1|44), "
    r"'error_message': (None|'The topic \S+ is one without partitions, and cannot get any.')"
)
_CAUSES: Final = '"cause":"(UNKNOWN_TOPIC_ID|TOPIC_AUTHORIZATION_FAILED)"'
_NAMED: Final = (
    _Named("+rights.changed.md", "no right to list or lookup in", "no right to lookup in"),
    _Named(
        "+rights.changed.md",
        r"(?s)\A(?!.*has no right).+",
        r"(?s)\A.*Role \\?'(bob|guest)\\?' has no right to lookup in namespace (public/default|plug/\w+).*",
    ),
    _Named(
        "+find-acls-of-listed-ids.changed.md",
        _CODES,
        _CODES,
        r"kafka as (ann|bob): .*'topic_id'|damaged as (ann|bob): kafka",
    ),
    _Named(
        "+find-right-of-names.changed.md",
        _CODES,
        _CODES,
        r"kafka as (nobody|guest): .*'topic_id'|damaged as \w+: kafka",
    ),
    _Named("+find-right-of-names.changed.md", _CAUSES, _CAUSES, "audit line"),
    _Named(
        "+find-ids-over-http.security.md",
        r"(?s)\A(404 Not Found|502 Bad Gateway).*|\A.*(NOT_FOUND|PLUGIN).*",
        r'(?s)\A204 No Content.*|\A.*"outcome":"done".*',
        "DELETE /v1/topics/by-id",
    ),
    _Named(
        "+find-ids-over-http.security.md",
        r'"target":"[A-Za-z0-9_-]{22,36}"',
        r'"namespace":"[^"]*","target":"persistent://[^"]*"',
        "audit line .* DELETE /v1/topics/by-id",
    ),
    _Named(
        "+find-passing-listers.changed.md",
        '"outcome":"refused","cause":"POLICY_VIOLATION"',
        '"outcome":"failed","cause":"UNKNOWN_SERVER_ERROR"',
        "audit line",
    ),
    _Named(
        "+find-passing-listers.changed.md",
        _PARTITIONS,
        _PARTITIONS,
        "CreatePartitions",
    ),
    _Named("+explain-watch.added.md", r'"snapshot":null,"watch_refused":("[^"]*"|null),'),
    # Estimates and kept masks follow listings, and lookups of topics count as none.
    _Named("+find-right-of-names.changed.md", r'"estimate":\d+', r'"estimate":\d+', "/explain"),
    _Named("+find-right-of-names.changed.md", _MASK, _MASK, "/explain"),
    _Named("+question-warnings.added.md", r"(?m)^Topics-Warnings: .*\n"),
    _Named("+question-warnings.added.md", r',"warnings":\[".*?"\](?=\})'),
    _Named("+question-warnings.added.md", r'(?<="warnings":\[)".*?"(?=\])', None, "/explain"),
    _Named(
        "+question.changed.md",
        '"detail":"[^"]*(limits.properties|limits.property_bytes)[^"]*"',
        '"detail":"[^"]*(limits.properties|limits.property_bytes)[^"]*"',
    ),
    _Named(
        "+entity-tags.changed.md",
        r"(?s)\A304 Not Modified.*",
        r"(?s)\A200 OK.*",
        r"/topics\b.*'If-None-Match': '\*'",
    ),
    _Named(
        "+entity-tags.changed.md",
        r"(?s)\A400.*If-None-Match.*",
        r"(?s)\A200 OK.*",
        "/topics.*'If-None-Match'",
    ),
    _Named("32.one.fixed.md", r"\b1 (topic|row|name|partition)\b", r"\b1 (topic|row|name|partition)s\b"),
    _Named("+unfiltered.changed.md", ', unfiltered(?=")'),
    _Named(
        "+unfiltered.changed.md",
        r"(?s)\A.*400 Bad Request.*unfiltered=true asks for all of them.*",
        r"(?s)\A.*200 OK.*Topics-Filtered: false.*",
    ),
)


def fragments_of(request: str, ours: str, theirs: str) -> set[str]:
    """The fragments by which two different answers are the same; none, if they still differ."""
    compact, others = (_SPACES.sub(lambda at: at[0].strip(), each) for each in (ours, theirs))
    found = {"32.changed.md"} if _SPACES.search(ours) or _SPACES.search(theirs) else set()
    ours, theirs = compact, others
    for row in _NAMED:
        if not re.search(row.asked, request) or not re.search(row.ours, ours):
            continue
        if row.theirs is None:
            ours = re.sub(row.ours, "", ours)
        elif re.search(row.theirs, theirs):
            ours, theirs = (
                re.sub(each, f"<{row.fragment}>", said)
                for each, said in ((row.ours, ours), (row.theirs, theirs))
            )
        else:
            continue
        found.add(row.fragment)
    return found if ours == theirs else set()
