from __future__ import annotations

import asyncio
import socket

from broker_core.servers.arrival.socket_waits import readable, writable


async def test_readable_once_bytes_come(pair: tuple[socket.socket, socket.socket]) -> None:
    server, client = pair
    waiting = asyncio.create_task(readable(server))
    await asyncio.sleep(0)
    assert not waiting.done()
    client.send(b"x")
    await asyncio.wait_for(waiting, 60)
    assert server.recv(10) == b"x"


async def test_readable_once_the_peer_is_gone(pair: tuple[socket.socket, socket.socket]) -> None:
    server, client = pair
    client.close()
    await asyncio.wait_for(readable(server), 60)


async def test_writable_once_the_peer_has_read(pair: tuple[socket.socket, socket.socket]) -> None:
    server, client = pair
    try:
        while True:
            server.send(bytes(1 << 20))
    except BlockingIOError:
        pass
    waiting = asyncio.create_task(writable(server))
    await asyncio.sleep(0)
    assert not waiting.done()
    while not waiting.done():
        await readable(client)
        client.recv(1 << 20)


async def test_a_wait_that_is_given_up_leaves_nothing_behind(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    server, _ = pair
    loop = asyncio.get_running_loop()
    waiting = asyncio.create_task(readable(server))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not loop.remove_reader(server)
