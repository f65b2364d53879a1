"""Quotas: how many requests, and bytes of answers, a client may have per second; decided here for all transports.

Theory of operation. Each quota has a bucket of tokens for each role, address or namespace (``per``), of requests and of
bytes. A request takes a token of each bucket of the quotas that match it, and of bytes as many as answers of the bucket
had lately; the difference to its own answer follows. With too few tokens it takes them all the same, and waits until
they would have been there: so a bucket's queue is first in, first out, without a list. A request that would wait too
long, or as one too many, is refused and takes nothing.

A full bucket is like a new one, so it is forgotten if there is no room. If all of a quota's buckets are in use, further
keys share one: no client gets more by being one of many.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from broker_core.access import OPERATOR, Asker, is_within, network_of
from broker_core.errors import QuotaExceeded
from broker_core.metrics import Metrics
from broker_core.names import MAX_NAMESPACE, NamespacePatterns, RulePattern
from broker_core.settings import QuotaSettings, Settings

__all__ = ["QuotaTurn", "Quotas"]

#: Buckets of one quota.
_MOST_BUCKETS: Final = 10_000
#: Seconds between two looks for buckets that are full.
_LOOK_AGAIN: Final = 1.0
#: Clients in namespaces whose quotas are known.
_MOST_KNOWN: Final = 8192
#: The share of the last answer in what the next one is taken to have.
_WEIGHT: Final = 0.25
#: Fewer seconds than these count as none: sums of fractions are not exact.
_NOTHING: Final = 1e-6
_WAIT_BOUNDS: Final = (0.001, 0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0)

_Key = tuple[str, ...]


class Quotas:
    """The quotas of one broker; for one event loop, whose clock ``clock`` is."""

    def __init__(
        self,
        quotas: Iterable[QuotaSettings] = (),
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        metrics = metrics or Metrics()
        self._clock = clock
        self._quotas = tuple(_Quota(each, clock()) for each in quotas)
        #: Whether there is any quota; without one there is nothing to check.
        self.on = bool(self._quotas)
        self._known: dict[tuple[str | None, str, str], tuple[tuple[_Quota, _Key], ...]] = {}
        self._requests = metrics.counter(
            "quota_requests",
            "Requests that a quota matches: at_once, waited, or refused.",
            "quota",
            "outcome",
        )
        self._waits = metrics.histogram(
            "quota_wait_seconds", "Seconds that requests wait for their quotas.", _WAIT_BOUNDS
        ).of()
        metrics.gauge(
            "quota_waiting",
            "Requests that wait for a quota.",
            lambda: {(each.name,): each.waiting for each in self._quotas},
            "quota",
        )
        metrics.gauge(
            "quota_buckets",
            "Buckets of a quota.",
            lambda: {(each.name,): len(each) for each in self._quotas},
            "quota",
        )

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Returns the function that puts the quotas of these settings in force, on the event loop; unchanged quotas go
        on.
        """
        there = {each.settings: each for each in self._quotas}
        now = self._clock()
        quotas = tuple(there.get(each) or _Quota(each, now) for each in settings.quotas)

        def swap() -> None:
            self._quotas = quotas
            self.on = bool(quotas)
            self._known = {}

        return swap

    def turn(self, asker: Asker, namespace: str = "", *, most_waiting: int | None = None) -> QuotaTurn | None:
        """The turn of a request; ``None`` if no quota matches. ``most_waiting`` is the most that the transport can let
        wait of one bucket.

        Raises :exc:`~broker_core.errors.QuotaExceeded`.
        """
        matching = self._matching(asker, namespace)
        if not matching:
            return None
        now = self._clock()
        buckets = [quota.bucket(key, now) for quota, key in matching]
        wait = 0.0
        for (quota, _), bucket in zip(matching, buckets, strict=True):
            needed = bucket.wait(now)
            limits = quota.settings
            queue = limits.queue if most_waiting is None else min(limits.queue, most_waiting)
            if needed > 0 and (needed > limits.max_wait or bucket.waiting >= queue):
                self._requests(quota.name, "refused")
                raise QuotaExceeded(limits.name, max(needed, bucket.clears_in(now) if bucket.waiting else 0))
            wait = max(wait, needed)
        for quota, _ in matching:
            self._requests(quota.name, "waited" if wait > 0 else "at_once")
        if wait > 0:
            self._waits.observe(wait)
        return QuotaTurn(buckets, wait, self._clock)

    def _matching(self, asker: Asker, namespace: str) -> tuple[tuple[_Quota, _Key], ...]:
        if asker.transport == OPERATOR:
            return ()
        if len(namespace) > MAX_NAMESPACE:
            namespace = ""  # the name of none
        role, host = asker.original_principal or asker.role, asker.host
        known = (role, host, namespace)
        found = self._known.get(known)
        if found is None:
            found = tuple(
                (quota, quota.key(*known)) for quota in self._quotas if quota.matches(role, host, namespace)
            )
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[known] = found
        return found


class QuotaTurn:
    """The turn of one request: ``wait`` is how many seconds it has to wait (:meth:`begin`)."""

    __slots__ = ("_buckets", "_clock", "_estimates", "_is_waiting", "wait")

    def __init__(self, buckets: list[_Bucket], wait: float, clock: Callable[[], float]) -> None:
        self._buckets = buckets
        self.wait = wait
        self._clock = clock
        self._estimates = [bucket.take() for bucket in buckets]
        self._is_waiting = wait > 0
        for bucket in buckets:
            bucket.waiting += self._is_waiting

    async def begin(self) -> None:
        """Wait; a request that is given up meanwhile gives its tokens back."""
        if self._is_waiting:
            try:
                await asyncio.sleep(self.wait)
            except BaseException:
                self.leave()
                raise
            self._stop_waiting()

    def leave(self) -> None:
        """End the request; one that has not begun gives its tokens back. Once is enough."""
        if self._is_waiting:
            self._stop_waiting()
            for bucket, estimate in zip(self._buckets, self._estimates, strict=True):
                bucket.give_back(estimate)

    def _stop_waiting(self) -> None:
        self._is_waiting = False
        for bucket in self._buckets:
            bucket.waiting -= 1

    def spent(self, size: int) -> None:
        """Take the tokens for the ``size`` bytes of the answer."""
        for bucket, estimate in zip(self._buckets, self._estimates, strict=True):
            bucket.spent(size, estimate)
        self._estimates = [size] * len(self._buckets)

    @property
    def debt(self) -> float:
        """Seconds until one more request would not have to wait."""
        now = self._clock()
        return max(bucket.wait(now) for bucket in self._buckets)


class _Quota:
    """One quota, compiled, and its buckets."""

    def __init__(self, settings: QuotaSettings, now: float) -> None:
        self.settings = settings
        self.name = settings.name
        self._roles = None if "*" in settings.roles else tuple(map(RulePattern, settings.roles))
        self._namespaces = NamespacePatterns(settings.namespaces)
        self._buckets: dict[_Key, _Bucket] = {}
        self._others = _Bucket(settings, now)  # of whoever has no room for one of its own
        self._look = now

    def __len__(self) -> int:
        return len(self._buckets)

    @property
    def waiting(self) -> int:
        return sum(bucket.waiting for bucket in self._buckets.values()) + self._others.waiting

    def matches(self, role: str | None, host: str, namespace: str) -> bool:
        if self._roles is not None and not (role and any(each.matches(role) for each in self._roles)):
            return False
        if not self._namespaces.matches(namespace):
            return False
        return not self.settings.addresses or is_within(host, self.settings.addresses)

    def key(self, role: str | None, host: str, namespace: str) -> _Key:
        """The key of the bucket of a request."""
        address = network_of(host)
        # The first letter distinguishes roles and addresses: a role may be named like an address.
        of = {"role": f"r{role}" if role else f"a{address}", "address": address, "namespace": namespace}
        return tuple(of[each] for each in self.settings.per)

    def bucket(self, key: _Key, now: float) -> _Bucket:
        found = self._buckets.get(key)
        if found is None:
            if len(self._buckets) >= _MOST_BUCKETS and now >= self._look:
                self._look = now + _LOOK_AGAIN
                self._buckets = {
                    key: each for key, each in self._buckets.items() if each.waiting or not each.is_full(now)
                }
            if len(self._buckets) >= _MOST_BUCKETS:
                return self._others
            found = self._buckets[key] = _Bucket(self.settings, now)
        return found


class _Bucket:
    """Tokens of requests and of bytes; below 0 they belong to requests that wait."""

    __slots__ = ("_at", "_bytes", "_expected", "_requests", "_settings", "waiting")

    def __init__(self, settings: QuotaSettings, now: float) -> None:
        self._settings = settings
        self._at = now
        self._requests = self._most(settings.requests, 1)
        self._bytes = self._most(settings.bytes, 0)
        self._expected = 0.0  # bytes of an answer
        self.waiting = 0

    def _most(self, rate: float | None, least: int) -> float:
        return 0.0 if rate is None else max(rate * self._settings.burst, least)

    def _refill(self, now: float) -> None:
        passed, self._at = max(now - self._at, 0.0), now
        settings = self._settings
        if settings.requests is not None:
            most = self._most(settings.requests, 1)
            self._requests = min(self._requests + passed * settings.requests, most)
        if settings.bytes is not None:
            self._bytes = min(self._bytes + passed * settings.bytes, self._most(settings.bytes, 0))

    def is_full(self, now: float) -> bool:
        self._refill(now)
        settings = self._settings
        return self._requests >= self._most(settings.requests, 1) and (
            self._bytes >= self._most(settings.bytes, 0)
        )

    def wait(self, now: float) -> float:
        """Seconds until a request has its tokens."""
        self._refill(now)
        requests, size = self._settings.requests, self._settings.bytes
        seconds = 0.0
        if requests is not None and self._requests < 1:
            seconds = (1 - self._requests) / requests
        if size is not None and self._bytes < 0:
            seconds = max(seconds, -self._bytes / size)
        return seconds if seconds > _NOTHING else 0.0

    def clears_in(self, now: float) -> float:
        """Seconds after which one more request may wait, if as many wait as may."""
        return self.wait(now) / (self.waiting + 1)

    def take(self) -> float:
        """Take the tokens of a request; gives the bytes that are taken for its answer."""
        self._requests -= 1
        self._bytes -= self._expected
        return self._expected

    def give_back(self, estimate: float) -> None:
        self._requests += 1
        self._bytes += estimate

    def spent(self, size: int, estimate: float) -> None:
        self._bytes += estimate - size
        self._expected += (size - self._expected) * _WEIGHT
