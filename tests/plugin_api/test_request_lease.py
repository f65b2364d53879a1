"""Additional memory for a plugin, from coroutines and threads, always released."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker_core import Lease
from broker_core.errors import TooManyRequests
from broker_core.plugin_api.request_lease import UNCOUNTED
from tests.support.eventually import eventually


class Memory:
    """Bytes up to a most; a larger demand waits until :meth:`give_back`, or is refused from ``refuses`` on."""

    def __init__(self, most: int = 1000, refuses: int = 10**9) -> None:
        self.loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self.most = most
        self.refuses = refuses
        self.taken = 0
        self.waiting = 0
        self._freed = asyncio.Condition()

    async def grow(self, size: int) -> None:
        assert asyncio.get_running_loop() is self.loop
        if size >= self.refuses:
            raise TooManyRequests("no memory", reason="heap")
        async with self._freed:
            self.waiting += 1
            await self._freed.wait_for(lambda: self.taken + size <= self.most)
            self.waiting -= 1
            self.taken += size

    def try_grow(self, size: int) -> bool:
        assert asyncio.get_running_loop() is self.loop
        fits = self.taken + size <= self.most
        self.taken += size if fits else 0
        return fits

    def give_back(self, size: int) -> None:
        assert asyncio.get_running_loop() is self.loop
        self.taken -= size
        self._told = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        async with self._freed:
            self._freed.notify_all()


async def test_it_grows_and_is_given_back() -> None:
    memory = Memory()
    async with Lease(memory, 100) as lease:
        await lease.grow(50)
        assert lease.try_grow(25)
        assert not lease.try_grow(10_000)
        assert lease.size == memory.taken == 175
        async with Lease(memory, 5) as other:
            assert memory.taken == 180
        assert other.size == 0
    assert memory.taken == lease.size == 0


async def test_an_error_in_the_block_gives_it_back() -> None:
    memory = Memory()
    with pytest.raises(KeyError):
        async with Lease(memory, 100):
            raise KeyError
    assert memory.taken == 0


async def test_what_is_refused_is_not_held() -> None:
    memory = Memory(refuses=500)
    with pytest.raises(TooManyRequests):
        async with Lease(memory, 600):
            pytest.fail("it was refused")
    async with Lease(memory, 10) as lease:
        with pytest.raises(TooManyRequests):
            await lease.grow(600)
        assert lease.size == memory.taken == 10
    assert memory.taken == 0


async def test_in_a_thread() -> None:
    memory = Memory()

    def work() -> int:
        with Lease(memory, 100) as lease:
            lease.grow_blocking(50)
            assert lease.try_grow(25)
            assert not lease.try_grow(10_000)
            return lease.size

    assert await asyncio.to_thread(work) == 175
    await eventually(lambda: memory.taken == 0)


async def test_on_a_loop_of_its_own_in_a_thread() -> None:
    memory = Memory()

    async def work() -> int:
        async with Lease(memory, 100) as lease:
            await lease.grow(1)
            assert lease.try_grow(1)
            return lease.size

    assert await asyncio.to_thread(lambda: asyncio.run(work())) == 102
    await eventually(lambda: memory.taken == 0)


async def test_the_end_of_the_block_while_it_grows() -> None:
    memory = Memory(most=100)
    lease = Lease(memory, 60)
    async with lease:
        growing = asyncio.create_task(lease.grow(70))
        await eventually(lambda: memory.waiting == 1)
    with pytest.raises(RuntimeError, match="its block has ended"):
        await growing
    await eventually(lambda: memory.taken == 0)


async def test_whoever_waits_may_be_cancelled() -> None:
    memory = Memory(most=100)
    async with Lease(memory, 60) as lease:
        growing = asyncio.create_task(lease.grow(70))
        await eventually(lambda: memory.waiting == 1)
        growing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await growing
        assert lease.size == memory.taken == 60
    assert memory.taken == 0


async def test_misuse_is_told() -> None:
    memory = Memory()
    lease = Lease(memory, 1)
    with pytest.raises(RuntimeError, match=r"write `async with request\.lease"):
        await lease.grow(1)
    async with lease:
        with pytest.raises(RuntimeError, match="entered once"):
            async with lease:
                pass
        with pytest.raises(RuntimeError, match=r"block the event loop: await lease\.grow"):
            lease.grow_blocking(1)
        with pytest.raises(ValueError, match="negative"):
            await lease.grow(-1)
        with pytest.raises(TypeError):
            lease.try_grow(1.5)  # type: ignore[arg-type]
    uses: list[Callable[[], object]] = [lambda: lease.try_grow(1), lambda: lease.grow_blocking(1)]
    for use in uses:
        with pytest.raises(RuntimeError, match="is over"):
            use()
    with pytest.raises(RuntimeError, match="block the event loop: write `async with`"), Lease(memory, 1):
        pass
    with pytest.raises(TypeError):
        Lease(memory, "1")  # type: ignore[arg-type]
    assert memory.taken == 0


async def test_where_nobody_counts() -> None:
    async with Lease(UNCOUNTED, 10**15) as lease:
        await lease.grow(1)
        assert lease.try_grow(1)
    assert "is over" in repr(lease)


def test_where_nobody_counts_and_there_is_no_loop() -> None:
    with Lease(UNCOUNTED, 5) as lease:
        lease.grow_blocking(2)
        assert lease.size == 7
