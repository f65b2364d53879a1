"""A mapped listing is the core's listing of the same names, whatever is asked of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.listing import Listing
from broker_core.listing_columns import build_columns
from broker_core.name_columns import as_column, split_full_names
from broker_core.names import NON_PERSISTENT, Mode
from broker_core.patterns import compile_pattern
from broker_core_spark.format.mapped_listing import MappedListing
from tests.support.topics import NAMESPACE, assert_listing, full_names, visible

NAMES = st.lists(full_names(), max_size=20, unique=True)


def mapped(names: list[str], mode: Mode) -> MappedListing:
    """As a generation makes it: from columns of more than these names."""
    columns = build_columns(NAMESPACE, *split_full_names(as_column(names), NAMESPACE, Mode.ALL))
    others = sum(name.startswith(f"{NON_PERSISTENT}://") for name in visible(names))
    low = 0 if mode.lists(NON_PERSISTENT) else others
    high = others if mode is Mode.NON_PERSISTENT else len(columns.fields)
    return MappedListing(
        NAMESPACE, mode, columns.fields[low:high], columns.joined[low:high], others if low == 0 else 0
    )


@given(NAMES, st.sampled_from(Mode))
def test_a_mapped_listing_is_a_listing(names: list[str], mode: Mode) -> None:
    shown = [name for name in visible(names) if mode.lists(name.partition("://")[0])]
    listing = mapped(names, mode)
    assert listing.column_bytes == 0
    assert_listing(listing, shown)
    assert (listing.column_bytes > 0) is bool(shown)
    assert listing.nbytes >= listing.column_bytes


@settings(max_examples=40, deadline=None)
@given(NAMES, NAMES, st.sampled_from([".*", "t/n/a.*", ".*k.*", "t/n/a", "(?s).*\n.*"]))
def test_it_can_be_changed_and_filtered(names: list[str], more: list[str], raw: str) -> None:
    listing = mapped(names, Mode.ALL)
    pattern = compile_pattern(raw)
    plain = Listing.from_names(NAMESPACE, Mode.ALL, names)
    assert listing.matching(pattern).names.equals(plain.matching(pattern).names)
    changed = listing.with_changes(names[::2], more)
    assert changed.names.equals(plain.with_changes(names[::2], more).names)
    assert changed.topics_hash == plain.with_changes(names[::2], more).topics_hash


def test_it_has_no_other_attributes_than_a_listing() -> None:
    with pytest.raises(AttributeError, match="'MappedListing' object has no attribute 'other'"):
        _ = mapped([], Mode.ALL).other
