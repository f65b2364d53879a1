"""Listings of several pages: only matching names, and a check of their number."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker_core import ListingRequest
from broker_core.errors import ListingFailed
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_postgres.listing import listing_assembler
from broker_core_postgres.listing.listing_assembler import ListingAssembler
from tests.postgres.listing.lister_setup import page

NS = NamespaceName.parse("acme/orders")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.mark.parametrize("quick", [True, False], ids=["at-once", "in-a-thread"])
async def test_only_what_matches_is_left(
    threads: ThreadPoolExecutor, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not quick:
        monkeypatch.setattr(listing_assembler, "_QUICK", 0)
        monkeypatch.setattr(listing_assembler, "_QUICK_TO_MATCH", 0)
    pattern = compile_pattern("acme/orders/[a-c]+")
    assembler = ListingAssembler(ListingRequest(NS, Mode.ALL, pattern=pattern), finish=True, threads=threads)
    await assembler.add(page("a", "b-partition-1", "d", other=("c", "e")))
    await assembler.add(page("f", "ca"))
    listing = await assembler.finish()
    assert [name.rpartition("/")[2] for name in listing.names.to_pylist()] == [
        "c",
        "a",
        "b-partition-1",
        "ca",
    ]
    assert assembler.rows == 7


async def test_a_newline_is_no_character_of_any(threads: ThreadPoolExecutor) -> None:
    request = ListingRequest(NS, Mode.ALL, pattern=compile_pattern("acme/orders/a.*"))
    assembler = ListingAssembler(request, finish=False, threads=threads)
    await assembler.add(page("a\nb", "ac"))
    assert len(await assembler.finish()) == 1


async def test_names_that_were_not_counted(threads: ThreadPoolExecutor) -> None:
    assembler = ListingAssembler(ListingRequest(NS, Mode.ALL), finish=False, threads=threads)
    with pytest.raises(ListingFailed, match="2 names in 3 rows"):
        await assembler.add(page("a", "b", counted=3))
    with pytest.raises(ListingFailed, match="local name is empty"):
        await assembler.add(page("a", "", "b"))
