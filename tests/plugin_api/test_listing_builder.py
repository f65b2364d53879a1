"""Answers built piece by piece equal the listing of the same names, for any pieces and threads."""

from __future__ import annotations

import random
import threading
from typing import Any

import pyarrow as pa
import pytest

from broker_core import Listing, ListingBuilder, ListingRequest, Mode, NamespaceName
from broker_core.errors import InvalidListing
from broker_core.patterns import compile_pattern
from tests.support.examples import examples
from tests.support.one_test import in_one_test

NAMESPACE = NamespaceName.parse("acme/orders")
PARTS = ["a", "b", "-", "é", "\ue000", "😀", "\n", "__", "x" * 60, "y" * 130, "-partition-3", ","]
PATTERNS = [
    None, ".*", "acme/orders/.*", "acme/orders/a.*", "acme/orders/a-.*", "acme/orders/a-p.*", "acme/orders/aé",
    "acme/orders/(a|b).*", ".*-partition-3", ".*b", "acme/.*", "acme/orders/a-partition-3.*",
]  # fmt: skip


def request(text: str | None = None, mode: Mode = Mode.ALL) -> ListingRequest:
    return ListingRequest(NAMESPACE, mode, None if text is None else compile_pattern(text))


@in_one_test("mode", list(Mode))
@in_one_test("text", PATTERNS)
@in_one_test("seed", range(examples(3)))
def test_the_answer_is_that_of_a_listing(seed: int, text: str | None, mode: Mode) -> None:
    pick = random.Random(seed)
    asked = request(text, mode)
    builder = ListingBuilder(asked)
    full: list[str] = []
    for _ in range(pick.randint(0, 5)):
        domain = pick.choice(["persistent", "non-persistent"])
        names = ["".join(pick.choices(PARTS, k=pick.randint(1, 4))) for _ in range(pick.choice([1, 3, 40]))]
        names += pick.sample(["__change_events", "a__transaction_pending_ack"], pick.randint(0, 2))
        if pick.random() < 0.5:
            names.sort()
        if not mode.lists(domain):
            assert builder.add_local(domain, names) == 0
            continue
        these = [f"{domain}://{NAMESPACE}/{name}" for name in names]
        full += these
        kind = pick.randrange(5)
        if kind < 2:
            assert builder.add(these if kind else pa.array(these)) == len(names)
        else:
            page = "".join(f"/{name}" for name in names).encode()
            assert builder.add_local(domain, (names, pa.array(names), page)[kind - 2]) == len(names)
    found = builder.finish()
    whole = Listing.from_names(NAMESPACE, mode, full)
    wanted = whole.all() if asked.pattern is None else whole.matching(asked.pattern)
    assert found.names.equals(wanted.names)
    assert found.topics_hash == wanted.topics_hash
    assert bytes(found.body()) == bytes(wanted.body())
    assert builder.matched == (text is not None)


@in_one_test("literal", ["a", "aé", "a-partition-3", "a\nb", "a-partition-3-partition-0"])
@in_one_test("name", ["a", "aé", "b", "a-partition-3", "a\nb", "a-partition-3-partition-0", "ab"])
def test_a_page_of_one_name_is_compared_with_a_pattern_without_operators(name: str, literal: str) -> None:
    text = f"acme/orders/{literal}"
    builder = ListingBuilder(request(text))
    builder.add_local("persistent", [name])
    whole = Listing.from_names(NAMESPACE, Mode.ALL, [f"persistent://acme/orders/{name}"])
    assert builder.finish().names.to_pylist() == whole.matching(compile_pattern(text)).names.to_pylist()


def test_a_pattern_that_re2_does_not_know_is_not_applied() -> None:
    builder = ListingBuilder(request("acme/orders/(?!a).*"))
    builder.add_local("persistent", ["a", "b"])
    assert (len(builder.finish()), builder.matched) == (2, False)


@pytest.mark.parametrize(
    "names", [b"a/b", b"/a//b", b"/a\0", b"/\xff", ["a/b"], [""], [None], "ab"], ids=repr
)
def test_bad_local_names_are_refused(names: Any) -> None:
    with pytest.raises(InvalidListing):
        ListingBuilder(request()).add_local("persistent", names)


def test_bad_names_and_domains_are_refused() -> None:
    builder = ListingBuilder(request(mode=Mode.PERSISTENT))
    for name in ("persistent://acme/other/a", "non-persistent://acme/orders/a", "a"):
        with pytest.raises(InvalidListing):
            builder.add([name])
    with pytest.raises(InvalidListing, match="no domain"):
        builder.add_local("queue", ["a"])


def test_it_is_finished_once() -> None:
    builder = ListingBuilder(request())
    builder.finish()
    for use in (builder.finish, lambda: builder.add(["persistent://acme/orders/a"])):
        with pytest.raises(ValueError, match="is finished"):
            use()


def test_threads_may_add_at_once() -> None:
    builder = ListingBuilder(request("acme/orders/t[0-3]-.*"))

    def add(thread: int) -> None:
        for start in range(0, 2000, 100):
            builder.add_local(
                "persistent", [f"t{thread}-{number:05}" for number in range(start, start + 100)]
            )

    threads = [threading.Thread(target=add, args=(thread,)) for thread in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builder.nbytes > 8000 * 30
    assert len(builder.finish()) == 4 * 2000
