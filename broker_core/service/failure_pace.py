"""The pace of an address whose clients fail to log in: the first failures cost nothing, a storm of them is slowed.

A handshake of TLS and the check of a password cost this server far more than the client. So an address that has failed
often waits with its next attempts; it is forgiven gradually. A good client of that address waits as well: for the delay
(a few seconds at the most), and then for its turn among the checks of passwords, one at a time, of some 85 ms each.
Every second check is of the newest attempt, the rest go by names in turn: after 200 wrong passwords a right one waits
for two checks, whatever their names. Credentials that are known at once, such as a token, wait for none.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from broker_core.access import network_of

__all__ = ["FailurePace"]

#: Failures that cost nothing: a wrong password is tried again by hand, and a certificate is replaced.
_FREE: Final = 8.0
#: Seconds of delay for each failure more.
_STEP: Final = 0.1
#: The longest delay, in seconds.
_LONGEST: Final = 5.0
#: Seconds after which half of the failures are forgiven.
_HALF: Final = 10.0
#: Addresses that are remembered; the one with the oldest last failure makes room.
_ADDRESSES: Final = 4096


class FailurePace:
    """Failures by address, with :meth:`delay` as the seconds that the next attempt from there has to wait.

    IPv6 addresses of one network of /64 count as one. ``clock`` is in seconds and never goes back.
    """

    __slots__ = ("_clock", "_failures")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        #: The number of failures, as of a time, by address; the latest failure is last.
        self._failures: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def failed(self, host: str) -> None:
        """Note that an attempt from this address (without a port) has failed."""
        network = network_of(host)
        now = self._clock()
        self._failures[network] = (self._count(network, now) + 1.0, now)
        self._failures.move_to_end(network)
        if len(self._failures) > _ADDRESSES:
            self._failures.popitem(last=False)

    def delay(self, host: str) -> float:
        """Seconds that an attempt from this address waits; 0 if it has not failed often of late."""
        if not self._failures:
            return 0.0
        network = network_of(host)
        count = self._count(network, self._clock())
        if count < 0.5:  # forgiven: nothing is remembered of it
            self._failures.pop(network, None)
        return min(max(count - _FREE, 0.0) * _STEP, _LONGEST)

    def _count(self, network: str, now: float) -> float:
        count, since = self._failures.get(network, (0.0, now))
        return count * math.pow(0.5, (now - since) / _HALF)
