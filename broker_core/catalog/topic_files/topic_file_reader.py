"""The lines of an imported file: plain names or JSON, checked one by one, gathered into rows of the catalogue.

Rules, for both formats:

- The first byte of the file decides: ``{`` means JSON lines, anything else plain names. A file that is declared as
  names is read as such, whatever it begins with.
- A line ends with a line feed; the last one may go without. Nothing else is taken off: spaces, ``#`` and carriage
  returns belong to the name. A file of names whose every line ends in a carriage return has Windows line ends and is
  refused, rather than imported under wrong names; so is one that begins with a byte order mark.
- An empty line is an error: it is no name.
- A file of names that looks like another kind of file is refused unless it is declared as names: one that begins with
  ``[`` (an array of JSON), one whose first line begins with ``name,`` (in either case, quoted, with ``;`` or a tab too)
  and whose lines have as many commas (CSV), and names with white space at an end or a tab in them.
- A name with a ``/`` is a full name and must be in the namespace; one without is the local name of a persistent topic.
- Repeated names collapse. Properties belong to the topic, so its partitions share them, and the last line that gives
  some wins; a line that gives none leaves the existing ones.
- A JSON line with properties, configs or replication and without partitions is about the topic of this name, with any
  partitions: a partitioned topic only gets these. ``"partitions": 0`` says that it is a topic without partitions.
- A ``topic_id`` (base64 or hexadecimal), configs of Kafka, and a number of replicas belong to the topic too.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from broker_core.catalog.catalog_errors import CatalogError, ImportRefused
from broker_core.catalog.topic_files.likely_mistakes import OddNames
from broker_core.catalog.topic_record import checked_text
from broker_core.compact_json import keys_once, read_json
from broker_core.counted import counted
from broker_core.errors import InvalidName
from broker_core.names import (
    DOMAINS,
    MAX_NAME_BYTES,
    MAX_PARTITIONS,
    PARTITION_SUFFIX,
    RESERVED_IDS,
    ListedNames,
    NamespaceName,
    TopicName,
    check_local_name,
    merge_listed,
    parse_topic_id,
    topic_in_namespace,
)
from broker_core.pattern_and_replica_bounds import MAX_REPLICATION
from broker_core.redaction import quoted

__all__ = [
    "CHUNK_BYTES",
    "MAX_LINE_BYTES",
    "UNSPECIFIED",
    "TopicFacts",
    "TopicInFile",
    "TopicLines",
    "TopicRows",
]

CHUNK_BYTES: Final = 8 * 1024 * 1024
#: A longer line is refused, so that a file without line feeds is not read into memory.
MAX_LINE_BYTES: Final = 1024 * 1024

#: A topic's row so far: its listed names (the compact form), and its properties (``None``: not given).
TopicInFile = tuple[str, str | None]
#: In place of the compact form: no line says whether the topic has partitions.
UNSPECIFIED: Final = "?"

_PLAIN: Final[TopicInFile] = ("*", None)
# The scanner of read_json without its other steps, which took a third of the time of an import.
_scan: Final[Callable[[str, int], tuple[Any, int]]] = json.JSONDecoder(object_pairs_hook=keys_once).scan_once  # type: ignore[attr-defined]
_KEYS: Final = ("name", "partitions", "properties", "topic_id", "configs", "replication")
#: A line that begins with its name, in characters that stand for themselves.
_NAME_FIRST: Final = re.compile(r'\{[ \t\r]*"name"[ \t\r]*:[ \t\r]*"([^"\\\x00-\x1f]*)"')
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
#: The most bytes that a character takes in UTF-8: a name of a quarter of the characters cannot be too long.
_CHARACTER_BYTES: Final = 4
_REMEMBERED_PROPERTIES: Final = 20_000
#: Longer properties (in characters) are read anew each time, so that at most some 60 MB are remembered.
_LONGEST_REMEMBERED: Final = 256


class TopicFacts(NamedTuple):
    """Facts that a line of JSON gives beside names and properties; ``None``: not given.

    ``topic_id`` has 16 bytes; ``configs`` is the text that is stored, ``{}`` for none.
    """

    topic_id: bytes | None
    configs: str | None
    replication: int | None

    @property
    def of_any_partitions(self) -> bool:
        """Whether the line is about a topic with its current partitions."""
        return self.configs is not None or self.replication is not None

    def after(self, earlier: TopicFacts) -> TopicFacts:
        """The facts of this line combined with those of an earlier one."""
        return TopicFacts(
            earlier.topic_id if self.topic_id is None else self.topic_id,
            earlier.configs if self.configs is None else self.configs,
            earlier.replication if self.replication is None else self.replication,
        )


class TopicRows:
    """The rows from a chunk of lines about the topics of one domain.

    If lines of a topic and of its partitions are kept ``apart``, the latter are in :attr:`partitions`, and a topic may
    be :data:`UNSPECIFIED`; else all is in :attr:`topics`.
    """

    __slots__ = ("_indices", "declared", "facts", "partitions", "topics")

    def __init__(self, *, apart: bool) -> None:
        #: The topics by local name without partition suffix.
        self.topics: dict[str, TopicInFile] = {}
        self.partitions: dict[str, TopicInFile] = {} if apart else self.topics
        #: Topics for which a line gives the number of partitions.
        self.declared: set[str] = set()
        #: Further facts by local name without partition suffix: few files have any.
        self.facts: dict[str, TopicFacts] = {}
        self._indices: dict[str, list[int]] = {}

    @property
    def properties_only(self) -> dict[str, TopicInFile]:
        """Topics (of :attr:`topics`) for which lines give only properties: each keeps its current partitions, or has
        none if it is new.
        """
        return {base: row for base, row in self.topics.items() if row[0] == UNSPECIFIED}

    def add(self, base: str, listed: str, properties: str | None) -> None:
        """Add a line about a topic, in any order with others about it."""
        _add(self.topics, base, listed, properties)

    def declare(self, base: str, partitions: int, properties: str | None) -> None:
        """Add a line that gives a topic's number of partitions."""
        self.declared.add(base)
        _add(self.partitions, base, str(ListedNames.partitioned(partitions)), properties)

    def add_partition(self, base: str, index: int, properties: str | None) -> None:
        """Add a line with the name of one partition; :meth:`finish` joins them, since there may be very many."""
        self._indices.setdefault(base, []).append(index)
        if properties is not None:
            _add(self.partitions, base, "", properties)

    def add_facts(self, base: str, facts: TopicFacts) -> None:
        """Add the facts of a line about a topic; of several lines the last one counts."""
        known = self.facts.get(base)
        self.facts[base] = facts if known is None else facts.after(known)

    def finish(self) -> None:
        """Join the collected partitions, at the end of the chunk."""
        for base, indices in self._indices.items():
            _add(self.partitions, base, str(ListedNames.of_indices(indices)), None)
        self._indices.clear()


def _add(rows: dict[str, TopicInFile], base: str, listed: str, properties: str | None) -> None:
    known = rows.get(base)
    if known is not None:
        if known[0] != UNSPECIFIED:
            listed = known[0] if listed == UNSPECIFIED else merge_listed(known[0], listed)
        properties = known[1] if properties is None else properties
    rows[base] = (listed, properties)


class TopicLines:
    """Reader of a file in chunks; iterating gives the rows of each, so that memory does not grow with the file.

    For stores that take less than the embedded catalogue: ``checked`` makes the text of properties, and raises a
    :exc:`CatalogError` for invalid ones; a listed local name has at most ``longest`` bytes (UTF-8).
    ``apart`` is as for :class:`TopicRows`. ``as_names`` takes each line as a name, whatever the file looks like;
    ``odd`` accepts odd names, and still reads JSON.
    """

    def __init__(
        self,
        namespace: NamespaceName,
        source: BinaryIO,
        *,
        checked: Callable[[object], str] = checked_text,
        longest: int = MAX_NAME_BYTES,
        apart: bool = False,
        as_names: bool = False,
        odd: bool = False,
    ) -> None:
        self._namespace = namespace
        self._as_names = as_names
        self._odd = None if as_names or odd else OddNames()
        self._apart = apart
        self._properties_only = UNSPECIFIED if apart else "*"
        self._source = source
        self._checked = checked
        self._longest = longest
        self._short = longest // _CHARACTER_BYTES
        self._prefixes = tuple(f"{domain}://{namespace}/" for domain in DOMAINS)
        self._ended_by_return = 0
        self._ended = 0
        self._properties: dict[tuple[tuple[str, str], ...], str] = {}
        self._tails: dict[str, tuple[int | None, str | None]] = {}
        self.is_json = False
        #: Bytes and lines read so far.
        self.bytes = 0
        self.lines = 0
        self._further = 0

    @property
    def names(self) -> int:
        """Number of names that the lines so far give: one each, or as many as there are partitions."""
        return self.lines + self._further

    def __iter__(self) -> Iterator[tuple[TopicRows, TopicRows]]:
        """The rows of each chunk: (persistent, non-persistent)."""
        for text in self._chunks():
            rows = (TopicRows(apart=self._apart), TopicRows(apart=self._apart))
            lines = text.split("\n")
            if self.is_json:
                self._read_json(lines, rows)
            else:
                if self._odd is not None:
                    self._odd.check(text, lines)
                self._read_names(lines, rows)
            self.lines += len(lines)
            for part in rows:
                part.finish()
            yield rows
        if self._ended and self._ended == self._ended_by_return and not self.is_json:
            raise ImportRefused(
                1,
                "it and all other lines end in a carriage return: the file has Windows line ends, convert them",
            )
        if self._odd is not None:
            self._odd.check_whole()

    def _chunks(self) -> Iterator[str]:
        """Whole lines, without the line feed of the last one."""
        rest = b""
        start = True
        while True:
            data = self._source.read(CHUNK_BYTES)
            self.bytes += len(data)
            block = rest + data
            if start and block:
                start = False
                self.is_json = block.startswith(b"{") and not self._as_names
                if block.startswith(_BYTE_ORDER_MARK):
                    raise ImportRefused(1, "the file begins with a byte order mark: remove it")
            if not data:
                if rest:
                    yield self._decoded(rest)
                return
            cut = block.rfind(b"\n")
            rest = block[cut + 1 :]
            if cut >= 0:
                self._ended += block.count(b"\n")
                self._ended_by_return += block.count(b"\r\n")
                yield self._decoded(block[:cut])
            if len(rest) > MAX_LINE_BYTES:
                raise ImportRefused(self.lines + 1, f"the line is longer than {MAX_LINE_BYTES} bytes")

    def _decoded(self, block: bytes) -> str:
        try:
            return block.decode()
        except UnicodeDecodeError as error:
            line = self.lines + block.count(b"\n", 0, error.start) + 1
            raise ImportRefused(line, f"it is not valid UTF-8 ({error.reason})") from None

    def _read_names(self, lines: list[str], rows: tuple[TopicRows, TopicRows]) -> None:
        persistent = rows[0].topics
        short = self._short
        for number, line in enumerate(lines):
            if "/" in line or PARTITION_SUFFIX in line:
                self._add(rows, number, line, None, None)
            elif not line or len(line) > short or "\0" in line:
                self._refuse_empty(number, line)
                self._add(rows, number, line, None, None)
            elif line not in persistent:
                persistent[line] = _PLAIN
            else:
                rows[0].add(line, "*", None)

    def _read_json(self, lines: list[str], rows: tuple[TopicRows, TopicRows]) -> None:
        persistent = rows[0].topics
        short = self._short
        tails = self._tails
        properties_only = self._properties_only
        for number, line in enumerate(lines):
            begin = _NAME_FIRST.match(line)
            known = None if begin is None else tails.get(line[begin.end() :])
            if begin is not None and known is not None:
                name, (partitions, text), facts = begin[1], known, None
            else:
                name, partitions, text, facts = self._parsed(number, line)
                if begin is not None and facts is None:
                    self._remember_tail(line[begin.end() :], begin[1] == name, partitions, text)
            if (partitions is None and facts is None) and not (
                # An escape may hide a lone surrogate, which is checked with the rest by _add.
                "/" in name
                or PARTITION_SUFFIX in name
                or (begin is None and "\\" in line)
                or not name
                or len(name) > short
            ):
                if name not in persistent:
                    persistent[name] = _PLAIN if text is None else (properties_only, text)
                else:
                    rows[0].add(name, "*" if text is None else properties_only, text)
                continue
            self._add(rows, number, name, partitions, text, facts)

    def _parsed(self, number: int, line: str) -> tuple[str, int | None, str | None, TopicFacts | None]:
        """Name, partitions, stored text of the properties, and other facts of a line."""
        value = self._object(number, line)
        name = value.get("name")
        partitions = value.get("partitions")
        properties = value.get("properties")
        facts = None
        if len(value) != (name is not None) + (partitions is not None) + (properties is not None):
            self._check_keys(number, value)
            facts = self._facts(number, value)
        text = None if properties is None else self._text_of(number, properties)
        if type(name) is not str:
            raise self._refused(number, 'it has no "name", or one that is not a string')
        if partitions is not None:
            partitions = self._whole(number, "partitions", partitions, 0, MAX_PARTITIONS)
        return name, partitions, text, facts

    def _facts(self, number: int, value: dict[str, Any]) -> TopicFacts | None:
        """The facts that a line gives beside names and properties."""
        topic_id, configs, replication = (value.get(key) for key in ("topic_id", "configs", "replication"))
        if topic_id is None and configs is None and replication is None:
            return None
        raw = None if topic_id is None else self._topic_id(number, topic_id)
        text = None if configs is None else self._configs_text(number, configs)
        if replication is not None:
            replication = self._whole(number, "replication", replication, 1, MAX_REPLICATION)
        return TopicFacts(raw, text, replication)

    def _topic_id(self, number: int, topic_id: object) -> bytes:
        if not isinstance(topic_id, str):
            raise self._refused(number, '"topic_id" must be a string')
        try:
            parsed = parse_topic_id(topic_id)
        except InvalidName as error:
            raise self._refused(number, str(error)) from None
        if parsed in RESERVED_IDS:
            raise self._refused(number, f'"topic_id" {topic_id!r} is reserved: no topic has it')
        return parsed.bytes

    def _configs_text(self, number: int, configs: Any) -> str:
        """The stored text of configs that are valid in Kafka."""
        from broker_core.kafka.configs import InvalidConfig, check_configs

        try:
            text = checked_text(configs, "configs")
            check_configs(configs, {})
        except (CatalogError, InvalidConfig) as error:
            raise self._refused(number, str(error)) from None
        return text

    def _remember_tail(self, tail: str, is_name: bool, partitions: int | None, text: str | None) -> None:
        """Remember the text of a line after its name: mostly few sets of properties are given to very many names."""
        # A text that gives the name once more would change the topic.
        if is_name and len(tail) <= _LONGEST_REMEMBERED and '"name"' not in tail and "\\" not in tail:
            if len(self._tails) >= _REMEMBERED_PROPERTIES:
                self._tails.clear()
            self._tails[tail] = (partitions, text)

    def _object(self, number: int, line: str) -> dict[str, Any]:
        try:
            value, end = _scan(line, 0)
            if end != len(line):
                value = read_json(line)  # white space around it, or an error that it words well
        except (StopIteration, ValueError, RecursionError):
            value = self._loaded(number, line)
        if type(value) is not dict:
            raise self._refused(number, 'it is not a JSON object like {"name": "orders", "partitions": 3}')
        return value

    def _loaded(self, number: int, line: str) -> Any:
        self._refuse_empty(number, line.strip())
        try:
            return read_json(line)
        except json.JSONDecodeError as error:
            raise self._refused(number, f"it is not JSON: {error.msg} (column {error.colno})") from None
        except (
            ValueError,
            RecursionError,
        ) as error:  # a key twice, thousands of digits, lists in lists in lists
            raise self._refused(number, f"it is not JSON that can be read: {error}") from None

    def _check_keys(self, number: int, value: dict[str, Any]) -> None:
        for key in value:
            if key not in _KEYS:
                near = difflib.get_close_matches(key, _KEYS, 1)
                known = f"known are {', '.join(_KEYS[:-1])} and {_KEYS[-1]}"
                hint = f'did you mean "{near[0]}"?' if near else known
                raise self._refused(number, f"unknown key {quoted(key)}: {hint}")

    def _whole(self, number: int, key: str, value: Any, least: int, most: int) -> int:
        """The whole number of a line's key; JSON has the same type for 3.0 and 3."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise self._refused(number, f'"{key}" must be a whole number from {least} to {most}')
        return value

    def _text_of(self, number: int, properties: Any) -> str:
        """The stored text of a line's properties."""
        try:
            key = tuple(properties.items())
            known = self._properties.get(key)
        except (AttributeError, TypeError):  # no object, or values that are lists: the check says so
            key, known = (), None
        if known is None:
            try:
                known = self._checked(properties)
            except CatalogError as error:
                raise self._refused(number, str(error)) from None
            if len(self._properties) >= _REMEMBERED_PROPERTIES:
                self._properties.clear()
            if len(known) <= _LONGEST_REMEMBERED:
                self._properties[key] = known
        return known

    def _add(
        self,
        rows: tuple[TopicRows, TopicRows],
        number: int,
        name: str,
        partitions: int | None,
        properties: str | None,
        facts: TopicFacts | None = None,
    ) -> None:
        domain = 0
        try:
            if "/" in name:
                domain, name = self._local(name)
            check_local_name(name)
        except InvalidName as error:
            raise self._refused(number, str(error)) from None
        if self._longest < MAX_NAME_BYTES:
            self._check_length(number, name, partitions)
        if facts is not None:
            own = name if partitions else TopicName.split_local(name)[0]
            rows[domain].add_facts(own, facts)
        if partitions:
            rows[domain].declare(name, partitions, properties)
            self._further += partitions - 1
            return
        base, index = TopicName.split_local(name)
        if index < 0:
            is_stated = partitions is not None or (
                properties is None and not (facts is not None and facts.of_any_partitions)
            )
            rows[domain].add(base, "*" if is_stated else self._properties_only, properties)
        else:
            rows[domain].add_partition(base, index, properties)

    def _check_length(self, number: int, name: str, partitions: int | None) -> None:
        size = len(name.encode()) + (len(f"{PARTITION_SUFFIX}{partitions - 1}") if partitions else 0)
        if size > self._longest:
            raise self._refused(
                number,
                f"its longest listed name {quoted(name)} has {counted(size, 'byte')}, at most {self._longest}",
            )

    def _local(self, name: str) -> tuple[int, str]:
        """(domain, local name) of a full name."""
        for domain, prefix in enumerate(self._prefixes):
            if name.startswith(prefix):
                return domain, name[len(prefix) :]
        topic = topic_in_namespace(self._namespace, name)
        return DOMAINS.index(topic.domain), topic.local

    def _refuse_empty(self, number: int, line: str) -> None:
        if not line:
            raise self._refused(number, "it is empty")

    def _refused(self, number: int, reason: str) -> ImportRefused:
        return ImportRefused(self.lines + number + 1, reason)
