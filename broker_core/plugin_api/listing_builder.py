"""Builds an answer page by page, as a lister reads it from elsewhere: checked, matched and encoded as it comes.

The core checks what a plugin builds here, so it is not matched or hashed a second time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import pyarrow as pa

from broker_core.errors import InvalidListing, InvalidName
from broker_core.immutable import seal
from broker_core.listing import ListingEncoder, ListingPart, Selection, selection_of
from broker_core.names import (
    NON_PERSISTENT,
    PERSISTENT,
    as_column,
    check_local_names,
    column_data,
    split_full_names,
    with_ends,
)
from broker_core.patterns import TopicsPattern, real_pattern
from broker_core.plugin_api.listing_request import ListingRequest

__all__ = ["ListingBuilder"]


@final
class ListingBuilder:
    """The answer to one request in the making: give :meth:`finish` to ``TopicListingResult.success``.

    Names may come in any order and more than once; system topics are left out, and so are names that the request's
    pattern does not match, if RE2 supports the pattern (else nothing is matched here). Pages in the order of the hash
    (:class:`~broker_core.Listing`) are the cheapest: each is appended as it is, and one whose first and last name are
    in the range of a pattern such as ``orders-.*`` is not looked at any further.

    Any thread may add; a lock lets in one at a time.
    """

    __slots__ = ("_making",)

    def __init__(self, request: ListingRequest) -> None:
        if not isinstance(request, ListingRequest):
            raise TypeError(f"a ListingBuilder is made of a request, not of a {type(request).__name__}")
        pattern = request.pattern
        if pattern is not None and not real_pattern(pattern).supported:
            pattern = None
        _making.__set__(self, _Making(ListingEncoder(request.namespace, request.mode, pattern), pattern))

    @property
    def nbytes(self) -> int:
        """Bytes that the builder holds, for which to acquire permits (:meth:`~broker_core.ListingRequest.reserve`)."""
        return _made(self).encoder.nbytes

    @property
    def matched(self) -> bool:
        """Whether the builder applies the request's pattern: the value of ``filtered=`` of the answer."""
        return _made(self).pattern is not None

    def add(self, names: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]) -> int:
        """Add full names (``persistent://tenant/namespace/topic``), a list or an Arrow column; returns how many.

        Raises :exc:`~broker_core.errors.InvalidListing` for text that is no name, and for a name of another namespace
        or mode.
        """
        column = as_column(names)
        with _made(self).lock:
            encoder = _made(self).open()
            persistent, other = split_full_names(column, encoder.namespace, encoder.mode)
            encoder.add(NON_PERSISTENT, _page(other))
            encoder.add(PERSISTENT, _page(persistent))
        return len(column)

    def add_local(
        self, domain: str, names: bytes | Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]
    ) -> int:
        """Add names without ``domain://tenant/namespace/``; returns how many.

        ``names`` is a list, an Arrow column, or UTF-8 bytes in which each name follows a slash (``/a/b/c``: a local
        name has none), which is the quickest form that a database can give. Names of a domain that the request's mode
        does not list are left out, and count as 0. Raises :exc:`~broker_core.errors.InvalidListing` for a bad name.
        """
        if domain not in (PERSISTENT, NON_PERSISTENT):
            raise InvalidListing(f"{domain!r:.50} is no domain: write {PERSISTENT!r} or {NON_PERSISTENT!r}")
        if isinstance(names, bytes):
            try:
                if not names.isascii():
                    names.decode()
            except UnicodeDecodeError as error:
                raise InvalidListing(f"topics must be strings of valid UTF-8: {error}") from None
            page = names
        else:
            page = _page(as_column(names))
        with _made(self).lock:
            return _made(self).open().add(domain, page)

    def finish(self) -> Selection:
        """All topics that were added and match. The builder is of no use afterwards."""
        making = _made(self)
        with making.lock:
            encoder = making.open()
            making.is_finished = True
            listing = encoder.finish()
        text = None if making.pattern is None else making.pattern.text
        return selection_of(listing, ListingPart(0, len(listing), text=text))


class _Making:
    """The parts that a builder has so far."""

    __slots__ = ("encoder", "is_finished", "lock", "pattern")

    def __init__(self, encoder: ListingEncoder, pattern: TopicsPattern | None) -> None:
        self.encoder = encoder
        self.pattern = pattern
        self.is_finished = False
        self.lock = threading.Lock()

    def open(self) -> ListingEncoder:
        if self.is_finished:
            raise ValueError("the listing is finished: begin another one with ListingBuilder(request)")
        return self.encoder


_making = seal(ListingBuilder, "_making")
_made: Final[Callable[[ListingBuilder], _Making]] = _making.__get__


def _page(names: pa.LargeStringArray) -> bytes:
    """A column of local names as a page, each after a slash."""
    if not len(names):
        return b""
    try:
        check_local_names(names)
    except InvalidName as error:
        raise InvalidListing(str(error)) from None
    data, offsets = column_data(with_ends(names, "/", ""))
    return bytes(memoryview(data)[int(offsets[0]) : int(offsets[-1])])
