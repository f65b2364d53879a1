from __future__ import annotations

import io
import json
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.catalog.catalog_errors import CatalogError, ImportRefused
from broker_core.catalog.topic_files.topic_file_reader import (
    CHUNK_BYTES,
    MAX_LINE_BYTES,
    TopicLines,
)
from broker_core.names import MAX_NAME_BYTES, NamespaceName
from broker_core.names.listed_names import ListedNames
from broker_core.names.partitions import MAX_PARTITIONS

NAMESPACE = NamespaceName("a", "b")


class Dripping(io.RawIOBase):
    """A source that gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, step: int) -> None:
        self._source = io.BytesIO(data)
        self._step = step

    def read(self, size: int = -1, /) -> bytes:
        return self._source.read(min(self._step, size) if size >= 0 else self._step)


def names_of(data: bytes | BinaryIO, *, as_names: bool = False) -> set[str]:
    """All names that a file lists: local if persistent, else full."""
    lines = TopicLines(NAMESPACE, io.BytesIO(data) if isinstance(data, bytes) else data, as_names=as_names)
    names: set[str] = set()
    for chunk in lines:
        for prefix, rows in zip(("", "non-persistent://a/b/"), chunk, strict=True):
            for base, (listed, _) in rows.topics.items():
                names |= {prefix + name for name in ListedNames.parse(listed).names(base)}
    return names


def refused(data: bytes) -> ImportRefused:
    with pytest.raises(ImportRefused) as raised:
        names_of(data)
    return raised.value


def test_lines_are_verbatim_if_they_are_said_to_be_names() -> None:
    names = [
        "#frag",
        " spaced ",
        "tab\tname",
        "back\\slash",
        "a\rb",
        "ends\r",
        "100%",
        "日本語",
        "😀",
        "x{1}",
        "\u2028",
    ]
    assert names_of("\n".join(names).encode(), as_names=True) == set(names)


@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"a\na\n", b"persistent://a/b/a\na"])
def test_the_last_line_feed_may_be_missing_and_repeated_names_collapse(data: bytes) -> None:
    assert names_of(data) == ({"a"} if data else set())


def test_full_names_and_both_domains() -> None:
    data = b"persistent://a/b/x\nnon-persistent://a/b/x\ny\nnon-persistent://a/b/p-partition-1"
    assert names_of(data) == {"x", "non-persistent://a/b/x", "y", "non-persistent://a/b/p-partition-1"}


def test_partitions_come_one_by_one_sparse_and_beside_their_plain_name() -> None:
    names = {
        "o",
        "o-partition-0",
        "o-partition-10",
        "o-partition-2",
        "o-partition-007",
        "o-partition-1-partition-2",
    }
    assert names_of("\n".join(names).encode()) == names


@given(
    st.sets(st.text(min_size=1, max_size=8).filter(lambda name: not set(name) & set("\n/\0\r"))),
    st.integers(1, 9),
)
def test_any_names_come_through_in_any_chunks(names: set[str], step: int) -> None:
    data = "\n".join(["first", *names]).encode(errors="surrogatepass")
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    assert names_of(Dripping(data, step), as_names=True) == {"first", *names}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "it is empty"),
        (b"a/b", "Invalid topic name 'a/b'"),
        (b"/", "Invalid topic name '/'"),
        (b"persistent://a/b/", "the local name is empty"),
        (b"persistent://a/b/c/d", "a local name has no '/'"),
        (b"c/d", "or a local name, in which a '/' is written %2F"),
        (b"persistent://a/c/x", "Topic 'persistent://a/c/x' is not in namespace a/b"),
        (b"topic://a/b/x", "Invalid topic domain 'topic'"),
        (b"nul\0", "NUL"),
        (b"x" * (MAX_NAME_BYTES + 1), f"at most {MAX_NAME_BYTES}"),
        ("é".encode() * 16_384, "32768 bytes"),
        (b"caf\xe9", "it is not valid UTF-8"),
        (b"\xed\xa0\x80", "it is not valid UTF-8"),
    ],
)
def test_what_is_wrong_with_a_line_and_which_it_is(line: bytes, reason: str) -> None:
    error = refused(b"one\ntwo\n" + line + b"\nfour\n")
    assert error.line == 3
    assert reason in error.reason


def test_line_numbers_go_on_from_chunk_to_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.catalog.topic_files.topic_file_reader.CHUNK_BYTES", 100)
    many = b"".join(b"%07d\n" % number for number in range(1000))
    assert refused(many + b"a/b\n").line == 1001
    assert refused(many + b"\xff").line == 1001


def test_a_file_without_line_feeds_is_not_read_into_memory() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1, /) -> bytes:
            self.given += size
            return b"x" * size

    source = Endless()
    with pytest.raises(ImportRefused, match=f"line 2: the line is longer than {MAX_LINE_BYTES} bytes"):
        names_of(_Chained(b"first\n", source))  # type: ignore[arg-type]
    assert source.given <= CHUNK_BYTES


class _Chained:
    def __init__(self, head: bytes, rest: io.RawIOBase) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int) -> bytes | None:
        head, self._head = self._head, b""
        return head or self._rest.read(size)


def test_windows_line_ends_are_refused_where_all_lines_have_them() -> None:
    assert "Windows line ends" in refused(b"a\r\nb\r\n").reason
    assert refused(b"a\r\nb").line == 1
    assert "Windows line ends" not in refused(b"a\r\nb\n").reason
    assert names_of(b"a\r", as_names=True) == {"a\r"}, "one line without an end is a name"
    assert names_of(b'{"name": "a"}\r\n{"name": "b"}\r\n') == {"a", "b"}, "white space in JSON"


def test_a_byte_order_mark_is_refused() -> None:
    error = refused(b"\xef\xbb\xbforders\n")
    assert (error.line, error.reason) == (1, "the file begins with a byte order mark: remove it")
    assert names_of("a\n\ufefforders\n".encode()) == {"a", "\ufefforders"}


def test_a_first_brace_means_json_and_a_later_one_does_not() -> None:
    assert names_of(b'{"name": "a"}') == {"a"}
    assert names_of(b"a\n{name: b}") == {"a", "{name: b}"}


def json_rows(*lines: object) -> dict[str, tuple[str, str | None]]:
    data = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    (chunk,) = TopicLines(NAMESPACE, io.BytesIO(data))
    return chunk[0].topics


def test_json_lines() -> None:
    assert json_rows(
        {"name": "a", "partitions": 3, "properties": {"y": "2", "x": "1"}},
        {"name": "persistent://a/b/b", "partitions": 0},
        {"name": "c", "partitions": None, "properties": None},
        {"properties": {}, "name": "d-partition-5"},
        {"name": "e-partition-1", "partitions": 2},
        '  {"name": "f\\u00e9\\n"}\t',
    ) == {
        "a": ("0-2", '{"x":"1","y":"2"}'),
        "b": ("*", None),
        "c": ("*", None),
        "d": ("5", "{}"),
        "e-partition-1": ("0-1", None),
        "fé\n": ("*", None),
    }


def test_the_last_properties_of_a_topic_win_and_a_line_without_leaves_them() -> None:
    assert json_rows(
        {"name": "a", "properties": {"k": "1"}},
        {"name": "a-partition-1", "properties": {"k": "2"}},
        {"name": "a-partition-0"},
        {"name": "a", "partitions": 2},
        {"name": "b", "properties": {"k": "1"}},
        {"name": "b", "properties": {}},
    ) == {"a": ("*,0-1", '{"k":"2"}'), "b": ("*", "{}")}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("orders", "it is not JSON: Expecting value (column 1)"),
        ('{"name": "a"', "it is not JSON: Expecting ',' delimiter"),
        ('{"name": "a"} {"name": "b"}', "it is not JSON: Extra data (column 15)"),
        ('["a"]', "it is not a JSON object"),
        ('{"name": "a", "partitions": 1, "partitions": 2}', "the key 'partitions' is there twice"),
        ('{"name": "a", "n\\u0061me": "b"}', "the key 'name' is there twice"),
        ('{"name": "a", "properties": {"k": "1", "k": "1"}}', "the key 'k' is there twice"),
        ("{}", 'it has no "name"'),
        ('{"name": null}', 'it has no "name"'),
        ('{"name": 1}', 'it has no "name", or one that is not a string'),
        ('{"name": ""}', "the local name is empty"),
        ('{"name": "a/b"}', "Invalid topic name 'a/b'"),
        ('{"name": "a\\u0000"}', "NUL"),
        ('{"name": "\\ud800"}', "lone surrogate"),
        ('{"name": "a", "partition": 3}', "unknown key 'partition': did you mean \"partitions\"?"),
        (
            '{"name": "a", "owner": null}',
            "unknown key 'owner': known are name, partitions, properties, topic_id, configs and replication",
        ),
        ('{"name": "a", "partitions": -1}', f"a whole number from 0 to {MAX_PARTITIONS}"),
        ('{"name": "a", "partitions": 1.5}', '"partitions" must be a whole number'),
        ('{"name": "a", "partitions": true}', '"partitions" must be a whole number'),
        ('{"name": "a", "partitions": "3"}', '"partitions" must be a whole number'),
        (f'{{"name": "a", "partitions": {MAX_PARTITIONS + 1}}}', '"partitions" must be a whole number'),
        ('{"name": "a", "properties": {"k": 1}}', "the value of property 'k' must be a string, not a number"),
        ('{"name": "a", "properties": {"k": []}}', "the value of property 'k' must be a string, not a list"),
        ('{"name": "a", "topic_id": 7}', '"topic_id" must be a string'),
        ('{"name": "a", "topic_id": "abc"}', "Invalid topic id 'abc'"),
        ('{"name": "a", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}', "is reserved: no topic has it"),
        ('{"name": "a", "configs": []}', "configs must be an object of strings, not a list"),
        ('{"name": "a", "configs": {"retention.ms": 7}}', "config 'retention.ms' must be a string"),
        ('{"name": "a", "configs": {"owner": "me"}}', "Unknown topic config name: owner"),
        ('{"name": "a", "configs": {"retention.ms": "soon"}}', "retention.ms"),
        ('{"name": "a", "replication": 0}', "must be a whole number from 1 to 32767"),
        ('{"name": "a", "replication": "3"}', "must be a whole number from 1 to 32767"),
        ('{"name": "a", "properties": ["k"]}', "properties must be an object of strings, not a list"),
        ('{"name": "a", "properties": {"k": "\\ud800"}}', "lone surrogate"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_what_is_wrong_with_a_json_line(line: str, reason: str) -> None:
    error = refused(f'{{"name": "x"}}\n{line}\n'.encode())
    assert error.line == 2
    assert reason in error.reason


def test_a_whole_number_may_be_written_with_a_point() -> None:
    data = b'{"name": "a", "partitions": 2.0}\n{"name": "b", "partitions": 0.0}\n'
    assert names_of(data) == {"a-partition-0", "a-partition-1", "b"}


def test_properties_are_remembered_within_bounds() -> None:
    lines = TopicLines(NAMESPACE, io.BytesIO(b""))
    for number in range(50_000):
        assert lines._text_of(0, {"id": str(number)}) == f'{{"id":"{number}"}}'
    assert len(lines._properties) <= 20_000


def test_long_properties_are_not_remembered() -> None:
    given = "".join(
        f'{{"name": "x{number}", "properties": {{"p": "{number:05000}"}}}}\n' for number in range(10)
    )
    lines = TopicLines(NAMESPACE, io.BytesIO(given.encode()))
    assert sum(len(rows.topics) for chunk in lines for rows in chunk) == 10
    assert not lines._properties
    assert not lines._tails


_NAMES = st.sampled_from(["x", "y", "persistent://a/b/z", "p-partition-3", "", "q/r", "a\\u0062", "\ud800"])
_TAILS = st.sampled_from(
    [
        "}",
        ', "properties": {"team": "a"}}',
        ', "properties": {"team": "a", "team": "b"}}',
        ', "partitions": 2}',
        ', "partitions": 2, "properties": {"n": "1"}}',
        ', "name": "y"}',
        ', "n\\u0061me": "y"}',
        ', "properties": {"name": "x"}}',
        ', "properties": {"a\\u0062": "\\t"}} ',
        ', "propertis": {}}',
        ', "partitions": -1}',
        ', "properties": {"a": 1}}',
        "",
    ]
)


# White space of Unicode is none of JSON's.
_SPACES = st.sampled_from(["", " ", "\t ", "\u00a0", "\u2003", "\x0b", "\x85"])


@given(st.lists(st.tuples(_SPACES, _NAMES, _TAILS), min_size=1, max_size=12))
def test_a_line_means_the_same_whatever_came_before_it(lines: list[tuple[str, str, str]]) -> None:
    """What follows a name is remembered, and must not say more about the next one than it would by itself."""

    def read(given: list[str]) -> dict[tuple[int, str], tuple[str, str | None]] | str:
        data = "".join(f"{line}\n" for line in given).encode(errors="surrogatepass")  # of one chunk
        try:
            chunks = list(TopicLines(NAMESPACE, io.BytesIO(data)))
        except ImportRefused as error:
            return str(error)
        return {
            (domain, name): row
            for chunk in chunks
            for domain, rows in enumerate(chunk)
            for name, row in rows.topics.items()
        }

    texts = [f'{{{space}"name": "{name}"{tail}' for space, name, tail in lines]
    together = read(texts)
    apart = [read([text]) for text in texts]
    if isinstance(together, str):
        first = next(number for number, each in enumerate(apart, 1) if isinstance(each, str))
        # Bytes that are no UTF-8 are found before any line is read.
        assert together.startswith(f"line {first}:") or "UTF-8" in together
        return
    assert not any(isinstance(each, str) for each in apart)
    named = {key for each in apart if isinstance(each, dict) for key in each}
    assert set(together) == named
    for key, (_, properties) in together.items():
        given = [each[key][1] for each in apart if isinstance(each, dict) and key in each]
        assert properties == next((text for text in reversed(given) if text is not None), None)


def test_a_store_may_take_shorter_names_and_fewer_properties() -> None:
    def none(properties: object) -> str:
        raise CatalogError("no properties here")

    def read(data: bytes) -> int:
        lines = TopicLines(NAMESPACE, io.BytesIO(data), checked=none, longest=20)
        return sum(len(part.topics) for rows in lines for part in rows)

    assert read(b"x" * 20 + b"\n" + "é".encode() * 10) == 2
    assert read(b'{"name": "xxxxxxxx", "partitions": 10}') == 1
    for bad, line in (
        (b"a\n" + b"x" * 21, 2),
        ("é".encode() * 10 + b"x", 1),
        (b'{"name": "xxxxxxxx"}\n{"name": "xxxxxxxx", "partitions": 11}', 2),
        (b"x" * 9 + b"-partition-1", 1),
    ):
        with pytest.raises(ImportRefused, match="bytes, at most 20") as raised:
            read(bad)
        assert raised.value.line == line
    with pytest.raises(ImportRefused, match="line 1: no properties here"):
        read(b'{"name": "a", "properties": {}}')


def test_every_name_that_lines_give_is_counted() -> None:
    for data, names in (
        (b"", 0),
        (b"a\na\nb-partition-1\nb-partition-1\n", 4),
        (b'{"name": "a"}\n{"name": "b", "partitions": 7}\n{"name": "c", "partitions": 0}', 9),
    ):
        lines = TopicLines(NAMESPACE, io.BytesIO(data))
        list(lines)
        assert lines.names == names
