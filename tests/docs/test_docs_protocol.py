"""docs/reference/protocol.md: hashes, codes and texts of errors are those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from types import CodeType

import pytest

from broker_core.errors import ServerError
from broker_core.listing.listing_hash import crc_text, extend_crc, topics_hash
from broker_core.names import MAX_NAME_BYTES
from broker_core.settings import HttpSettings, Settings
from broker_core.wire.pulsar.frames import frame_limit
from tests.docs.pages import ROOT, Table, code_in, read, tables

PAGE = "reference/protocol.md"


def table(*columns: str) -> Table:
    (found,) = [one for one in tables(PAGE) if one.columns == columns]
    return found


@pytest.mark.parametrize("row", table("topics", "hash").rows, ids=lambda row: row[1])
def test_a_hash_is_the_hash(row: tuple[str, str]) -> None:
    assert code_in(row[1]) == [topics_hash(code_in(row[0]))]


def test_the_hash_of_raw_text() -> None:
    assert f"`{crc_text(extend_crc(0, memoryview(b'123456789')))}`" in read(PAGE)


@cache
def said() -> list[str]:
    """The texts in the sources; of a formatted one, the parts around what is put in.

    They are those of the compiled modules, which are read in a tenth of the time of a syntax tree.
    """
    sources = map(str, (ROOT / "broker_core").rglob("*.py"))
    return [text for source in sources for text in _texts(SourceFileLoader(source, source).get_code(source))]


def _texts(value: object) -> Iterator[str]:
    """The texts among the constants of a compiled function or module, and of those in it."""
    if isinstance(value, CodeType):
        value = value.co_consts
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | frozenset):
        for each in value:
            yield from _texts(each)


@pytest.mark.parametrize("row", table("code", "number", "when", "text").rows, ids=lambda row: row[2])
def test_an_error_is_one_that_is_sent(row: tuple[str, str, str, str]) -> None:
    code, number, _, text = row
    assert ServerError[code_in(code)[0]] == int(number)
    sources = said()
    for part in re.split(r"\.\.\.|NAME|'", code_in(text)[0]):
        assert not part.strip() or any(part.strip() in one for one in sources), part


def test_the_bounds_are_the_defaults() -> None:
    settings = Settings()
    limits = settings.limits
    bounds = [row[1] for row in table("what", "bound", "setting").rows]
    for number in (
        frame_limit(settings.pulsar.max_message_size),
        settings.patterns.max_length,
        limits.properties,
        limits.property_bytes,
        limits.concurrent_lookups,
        MAX_NAME_BYTES,
        settings.watchers.most,
    ):
        assert any(re.search(rf"(?<![\d,]){number:,}(?![\d,])", bound) for bound in bounds), number


def test_the_bounds_name_settings_that_exist() -> None:
    settings = Settings(http=HttpSettings())
    for _, _, setting in table("what", "bound", "setting").rows:
        for name in code_in(setting):
            part, _, key = name.partition(".")
            assert hasattr(getattr(settings, part), key), name
