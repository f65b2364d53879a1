"""A listing in progress is one request; its answer is current unless it says how old it is."""

from __future__ import annotations

import dataclasses

import pytest

from broker_core import ListingRequest
from broker_core.memory.estimates import Estimates
from broker_core.memory.permits import Permits
from broker_core.names import NamespaceName
from broker_core.pipeline.request.held_permit import HeldPermit
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress


def test_it_does_not_change_and_what_is_listed_is_not_stale_by_itself() -> None:
    progress = ListingInProgress(
        ListingRequest(NamespaceName("t", "n")), None, HeldPermit(Permits(), Estimates().of("t/n", "q")), None
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        progress.trace = None  # type: ignore[misc]
    accepted = AcceptedAnswer("p", None, False, "00000000")
    assert (accepted.stale, accepted.owned, accepted.claimed) == (None, 0, False)
