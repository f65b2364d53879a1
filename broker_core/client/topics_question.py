"""PIP-452's question, and the listing that is made of a server's answer to it: the names that match."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final

from broker_core.client.client_errors import InvalidQuestion, UnexpectedAnswer
from broker_core.client.topic_listing import TopicListing
from broker_core.errors import InvalidListing, InvalidPattern
from broker_core.names import DOMAINS, Mode, NamespaceName
from broker_core.redaction import quoted

__all__ = ["TopicsQuestion"]

_FEW: Final = 1000  # names that are looked at on the event loop
#: Characters of a pattern that is applied here. A broker applies 1,024, so the client has to take many more.
_LONGEST_PATTERN: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class TopicsQuestion:
    """A question for the topics of a namespace that match; equal questions have equal answers. ``properties`` are
    sorted by key.
    """

    namespace: NamespaceName
    mode: Mode
    pattern: str | None
    topics_hash: str | None
    properties: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls,
        namespace: str | NamespaceName,
        mode: Mode,
        pattern: str | None,
        topics_hash: str | None,
        properties: Mapping[str, str] | None,
    ) -> TopicsQuestion:
        """Checked question from a caller's arguments.

        Raises :exc:`~broker_core.errors.InvalidName`, since brokers close the connection over a bad namespace, and
        :exc:`~broker_core.client.InvalidQuestion` for a value that is no text.
        """
        if not isinstance(namespace, NamespaceName):
            namespace = NamespaceName.parse(namespace)
        pairs = tuple((properties or {}).items())
        for text in (pattern, topics_hash):
            if text is not None:
                _check_text(text)
        for pair in pairs:
            for text in pair:
                _check_text(text)
        return cls(namespace, Mode(mode), pattern, topics_hash, tuple(sorted(pairs)))

    async def listing(
        self,
        names: Any,
        *,
        filtered: bool,
        changed: bool,
        topics_hash: str | None,
        warnings: tuple[str, ...] = (),
    ) -> TopicListing:
        """The listing of a server's answer: ``names`` are a list of a few or a ``pyarrow.LargeStringArray``.

        Names that the server did not filter are filtered here; a hash that it did not send is computed, and compared
        with the question's. ``warnings`` are the server's; a pattern that matches nothing is looked at here too. Raises
        :exc:`~broker_core.errors.InvalidPattern` for a pattern that RE2 does not support, and
        :exc:`~broker_core.client.UnexpectedAnswer` for names of another namespace or mode.
        """
        if not changed:
            return TopicListing(
                [], filtered=filtered, changed=False, topics_hash=topics_hash, warnings=warnings
            )
        to_filter = self.pattern is not None and not filtered
        work = partial(self._selected, names, to_filter=to_filter, to_hash=topics_hash is None)
        names, computed = work() if len(names) <= _FEW else await asyncio.to_thread(work)
        if not warnings and not len(names):
            warnings = self.warnings_of_none()
        if computed is not None and computed == self.topics_hash:
            return TopicListing([], filtered=filtered, changed=False, topics_hash=computed, warnings=warnings)
        return TopicListing(names, filtered=filtered, topics_hash=topics_hash or computed, warnings=warnings)

    def warnings_of_none(self) -> tuple[str, ...]:
        """The reason why no topic matches, if the pattern alone shows it."""
        if self.pattern is None:
            return ()
        from broker_core.patterns import compile_pattern, no_match

        try:
            pattern = compile_pattern(self.pattern, max_length=_LONGEST_PATTERN, remember=False)
        except InvalidPattern:  # of another dialect: its server knows
            return ()
        warning = no_match(pattern, self.namespace)
        return () if warning is None else (warning,)

    def _selected(self, names: Any, *, to_filter: bool, to_hash: bool) -> tuple[Any, str | None]:
        """The names that match, in the order of the hash, and their hash; as they are if neither is asked for."""
        if not (to_filter or to_hash):
            self._check_names(names)
            return names, None
        from broker_core.listing import Listing

        try:
            selection = Listing.from_names(self.namespace, self.mode, names).all()
        except InvalidListing as invalid:
            raise UnexpectedAnswer(f"the server lists what cannot be listed: {invalid}") from None
        if to_filter:
            assert self.pattern is not None
            selection = selection.matching(_compiled(self.pattern))
        return selection.names, selection.topics_hash if to_hash else None

    def _check_names(self, names: Any) -> None:
        """Raise :exc:`UnexpectedAnswer` for names of another namespace or mode."""
        prefixes = tuple(f"{domain}://{self.namespace}/" for domain in DOMAINS if self.mode.lists(domain))
        if isinstance(names, list):
            bad = next((name for name in names if not name.startswith(prefixes)), None)
        else:
            import pyarrow.compute as pc

            fits = reduce(pc.or_, (pc.starts_with(names, prefix) for prefix in prefixes))
            # Not the index at once: Arrow imports pandas, if it is installed, to make a scalar of Python's False. An
            # empty listing fits: of no values `all` is null unless min_count is 0.
            bad = (
                None
                if pc.all(fits, min_count=0).as_py()
                else names[pc.index(fits, value=False).as_py()].as_py()
            )
        if bad is not None:
            raise UnexpectedAnswer(
                f"the server lists what cannot be listed: {quoted(bad)} does not belong into a listing of "
                f"{self.namespace} of mode {self.mode.name}"
            )


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise InvalidQuestion(
            f"patterns, hashes and properties are texts, not {type(text).__name__}: {text!r:.100}"
        )
    try:
        text.encode()
    except UnicodeError:
        raise InvalidQuestion(f"a text that is no Unicode cannot be sent: {text!r:.100}") from None


def _compiled(pattern: str) -> Any:
    from broker_core.patterns import compile_pattern

    compiled = compile_pattern(pattern, max_length=_LONGEST_PATTERN, remember=False)
    if not compiled.supported:
        raise InvalidPattern(
            f"The server did not apply the topics pattern {quoted(pattern)}, and this client cannot, for it has RE2: "
            f"{compiled.reason}"
        )
    return compiled
