from __future__ import annotations

import asyncio

import pytest

from broker_core.client.loop_bound import LoopBound


class Client(LoopBound):
    closed = False

    def ask(self) -> None:
        self._check_loop()

    async def close(self) -> None:
        self.closed = True

    def __repr__(self) -> str:
        return "<Client>"


async def test_it_is_closed_at_the_end_also_after_an_error() -> None:
    async with Client() as client:
        assert not client.closed
    assert client.closed
    other = Client()
    with pytest.raises(KeyError):
        async with other:
            raise KeyError
    assert other.closed


def test_a_second_loop_is_refused() -> None:
    client = Client()

    async def ask() -> None:
        client.ask()
        client.ask()

    asyncio.run(ask())
    with pytest.raises(
        RuntimeError, match=r"^<Client> belongs to another event loop: make one in each loop$"
    ):
        asyncio.run(ask())
