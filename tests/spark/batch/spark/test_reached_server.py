"""A Spark server that nobody is, hangs, or is something else, is said at once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import grpc
import pytest

from broker_core_spark.batch.build_errors import SessionFailed
from broker_core_spark.batch.spark.reached_server import check_server
from tests.support.ports import free_port


@contextmanager
def listening(answer: bytes | None) -> Iterator[str]:
    """The address of a server that sends this to its clients; ``None`` sends nothing and keeps the connection."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while not ended.is_set():
                    with server.accept()[0] as connection:
                        if answer is None:
                            ended.wait()
                        elif connection.recv(1000):
                            connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("scheme", ["sc", "spark"])
def test_nobody(scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{free_port()}"
    with pytest.raises(SessionFailed, match=f"No Spark server answers at {address}: Connection refused"):
        check_server(address)


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b""], ids=repr)
@pytest.mark.parametrize("parameters", ["", "/;user_id=me;secret=hidden", "/;use_ssl=true;token=hidden"])
def test_a_server_that_hangs_and_another_one(answer: bytes | None, parameters: str) -> None:
    with (
        listening(answer) as address,
        pytest.raises(
            SessionFailed, match=f"No Spark Connect server answers at sc://{address}: it takes connections"
        ) as said,
    ):
        check_server(f"sc://{address}{parameters}", 0.3)
    assert "hidden" not in str(said.value)


def test_a_server_of_spark_connect() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        check_server(f"sc://127.0.0.1:{port}/;user_id=me")
    finally:
        server.stop(None).wait()


def test_one_of_several_masters_is_enough() -> None:
    with listening(b"") as address:
        check_server(f"spark://127.0.0.1:{free_port()},{address}")


@pytest.mark.parametrize("master", ["sc://", "sc://host:port", "spark://", "spark://:7077"])
def test_what_is_no_address(master: str) -> None:
    with pytest.raises(SessionFailed, match="no address of a Spark server"):
        check_server(master)


@pytest.mark.parametrize(
    "master", ["local[2]", "yarn", "k8s://https://nowhere:6443", "local-cluster[1,2,1024]"]
)
def test_other_masters_are_not_asked(master: str) -> None:
    check_server(master)
