"""A Spark server that nobody is, hangs, or is something else, is said at once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from broker_core_spark.batch.build_errors import SessionFailed
from broker_core_spark.batch.spark.reached_server import check_server
from tests.support.ports import free_port

#: The frame of settings that a server of HTTP/2 begins with.
SETTINGS = b"\0\0\6\4\0\0\0\0\0\0\5\0\0\x40\0"


@contextmanager
def listening(answer: bytes | None) -> Iterator[str]:
    """The address of a server that sends this to its first client; ``None`` sends nothing and keeps the connection."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as connection:
                if answer is None:
                    ended.wait()
                else:
                    connection.recv(1000)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize("scheme", ["sc", "spark"])
def test_nobody(scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{free_port()}"
    with pytest.raises(SessionFailed, match=f"No Spark server answers at {address}: Connection refused"):
        check_server(address)


@pytest.mark.parametrize(("scheme", "parameters"), [("sc", "/;user_id=me;secret=hidden"), ("spark", "")])
def test_a_server_that_hangs(scheme: str, parameters: str) -> None:
    with (
        listening(None) as address,
        pytest.raises(
            SessionFailed, match=f"at {scheme}://{address}: it takes connections: timed out"
        ) as said,
    ):
        check_server(f"{scheme}://{address}{parameters}", 0.05)
    assert "hidden" not in str(said.value)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_another_server(answer: bytes) -> None:
    with listening(answer) as address, pytest.raises(SessionFailed, match="is no Spark Connect server"):
        check_server(f"sc://{address}")


def test_the_web_pages_of_a_master_are_none() -> None:
    with (
        listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address,
        pytest.raises(SessionFailed, match=f"at spark://{address} is no Spark master"),
    ):
        check_server(f"spark://{address}")


def test_a_master_says_that_it_has_no_such_file() -> None:
    with listening(b"\0\0\0\0\0\0\0\x3f\x08\0\0\0\x0b/files/none\0\0\0\x23Stream") as address:
        check_server(f"spark://{address}")


def test_a_server_of_spark_connect() -> None:
    with listening(SETTINGS) as address:
        check_server(f"sc://{address}")


@pytest.mark.parametrize("parameters", ["/;use_ssl=true", "/;token=abc"])
def test_one_with_encryption_is_asked_for_a_connection_alone(parameters: str) -> None:
    with listening(b"") as address:
        check_server(f"sc://{address}{parameters}")


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
