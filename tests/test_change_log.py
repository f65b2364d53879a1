"""The protocol of a change log: the embedded catalogue's follows it; an incomplete object does not."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest

from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.change_log import (
    CatalogVersion,
    Change,
    ChangeLog,
    Changes,
    Operation,
    read_version,
    version_text,
)
from broker_core.errors import InvalidName
from broker_core.names import TopicName
from broker_core.names.listed_names import NOTHING, ListedNames

NAME = TopicName.parse("persistent://a/b/orders")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class Half:
    name = "half"

    async def catalog_id(self) -> str:
        return "x"


async def test_the_embedded_one_is_a_change_log_and_half_of_one_is_not(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        reader = CatalogLogReader(catalog)
        log: ChangeLog = reader  # as the type checker sees it, too
        assert isinstance(log, ChangeLog)
        reader.close()
    assert not isinstance(Half(), ChangeLog)


def change(before: str, after: str) -> Change:
    return Change(
        3,
        Operation.UPDATE,
        NAME,
        uuid.uuid4(),
        ListedNames.parse(before),
        ListedNames.parse(after),
        {},
        {},
        NOW,
    )


def test_a_version_is_text_and_back() -> None:
    version = CatalogVersion("9GrtWCwoSuakf9O0VKaEUg", 17)
    assert str(version) == "9GrtWCwoSuakf9O0VKaEUg:17"
    assert CatalogVersion.parse(str(version)) == version


def test_a_stamp_tells_states_of_one_number_apart_where_both_are_known() -> None:
    one, other, unknown = (CatalogVersion("c", 1, stamp) for stamp in ("x", "y", ""))
    assert one == other
    assert not one.same_state(other)
    assert one.same_state(unknown)
    assert unknown.same_state(one)
    assert not one.same_state(CatalogVersion("c", 2, "x"))


@pytest.mark.parametrize("text", ["", "17", ":17", "a:", "a:-1", "a:١", "a:1.0"])
def test_other_text_is_no_version(text: str) -> None:
    with pytest.raises(InvalidName):
        CatalogVersion.parse(text)


def test_a_change_is_the_names_that_went_and_came() -> None:
    changed = change("*,0-2", "1-3")
    assert list(changed.removed) == ["persistent://a/b/orders", "persistent://a/b/orders-partition-0"]
    assert list(changed.added) == ["persistent://a/b/orders-partition-3"]
    assert change("", "*").listed_before == NOTHING


def test_changes_are_a_list_that_may_be_empty() -> None:
    version = CatalogVersion("x", 1)
    assert not Changes(version, version)
    one = Changes(version, CatalogVersion("x", 2), (change("", "*"),))
    assert [entry.operation for entry in one] == [Operation.UPDATE]
    assert len(one) == 1


@pytest.mark.parametrize("stamp", ["", "5f0c"])
def test_the_version_of_an_http_client_is_read_again(stamp: str) -> None:
    version = CatalogVersion("cafe", 12, stamp)
    found = read_version(version_text(version))
    assert (found, found.stamp) == (version, stamp)


@pytest.mark.parametrize("wrong", ["", "12", ".", ":1", "cafe:", "cafe:-1", "cafe:x.5f", "cafe:12.5f.6a"])
def test_what_is_no_version_of_an_http_client(wrong: str) -> None:
    with pytest.raises(InvalidName):
        read_version(wrong)
