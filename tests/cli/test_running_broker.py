"""Asking the running broker over HTTP, and the error if it does not answer."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker_core.cli.options.credentials import GivenCredentials, UnusableCredentials
from broker_core.cli.running_broker import BrokerUnreachable, broker_url, get
from broker_core.testing import serve
from tests.cli.conftest import Cli
from tests.support.certificates import Authority
from tests.support.files import file_with
from tests.support.narrowed import present
from tests.support.ports import free_port


async def test_a_page_is_read() -> None:
    async with serve(settings={"http": {"listen": "127.0.0.1:0"}}) as server:
        host, port = present(server.broker.http_address)
        url = broker_url(f"{host}:{port}")
        assert url == f"http://{host}:{port}"
        assert "broker_core_build_info" in await asyncio.to_thread(get, url, "/metrics")
        with pytest.raises(BrokerUnreachable, match="HTTP status 404"):
            await asyncio.to_thread(get, url, "/nothing")
        with pytest.raises(BrokerUnreachable, match=r"no address for HTTP: http\.listen is"):
            await asyncio.to_thread(get, broker_url(server.url.removeprefix("pulsar://")), "/metrics")


def test_nobody_there_is_said() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(
        BrokerUnreachable, match=f"cannot connect to {url}: Connection refused; is the server running"
    ):
        get(url, "/metrics")


@pytest.mark.parametrize("given", ["ftp://host", "http://", "://x"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(BrokerUnreachable, match="is no address of a broker"):
        broker_url(given)


@pytest.mark.parametrize(
    ("listen", "asked"), [("0.0.0.0:1", "http://127.0.0.1:1"), ("[::]:1", "http://[::1]:1")]
)
def test_the_settings_say_where_it_is(listen: str, asked: str, tmp_path: Path, cli: Cli) -> None:
    config = file_with(tmp_path / "broker-core.toml", f'[http]\nlisten = "{listen}"\n')
    said = cli("spark", "status", "--config", config, "--store", tmp_path / "store", "--json").printed
    assert f"cannot connect to {asked}: " in said


def test_without_an_address_nothing_is_asked(tmp_path: Path, cli: Cli) -> None:
    config = file_with(tmp_path / "broker-core.toml", "")
    assert "no --broker" in cli("spark", "patterns", "export", "--config", config).failed(1)


def test_a_free_port_is_not_asked(tmp_path: Path, cli: Cli) -> None:
    config = file_with(tmp_path / "broker-core.toml", '[http]\nlisten = "127.0.0.1:0"\n')
    assert "http.listen is a free port (0)" in cli("spark", "patterns", "export", "--config", config).failed(
        1
    )


@contextmanager
def one_answer(
    status: str, body: str, context: ssl.SSLContext | None = None
) -> Iterator[tuple[int, list[bytes]]]:
    """A server for one request: its port, and what it was sent."""
    heard: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        try:
            connection, _ = listening.accept()
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
        except OSError:  # nobody has come, or it did not trust this server
            return
        with connection:
            heard.append(connection.recv(65_536))
            connection.sendall(
                f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
            )

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield listening.getsockname()[1], heard
    finally:
        listening.close()
        thread.join(60)


def test_the_token_goes_to_the_broker(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("aaa.bbb.ccc\n")
    given = GivenCredentials(token_file=tmp_path / "token")
    with one_answer("200 OK", "page") as (port, heard):
        assert get(f"http://127.0.0.1:{port}/below", "/metrics", credentials=given) == "page"
    assert heard[0].startswith(b"GET /below/metrics HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer aaa.bbb.ccc\r\n" in heard[0]


def test_the_token_follows_no_redirect(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("aaa.bbb.ccc\n")
    given = GivenCredentials(token_file=tmp_path / "token")
    with (
        one_answer("302 Found\r\nLocation: http://127.0.0.1:1/", "") as (port, _),
        pytest.raises(BrokerUnreachable, match="HTTP status 302"),
    ):
        get(f"http://127.0.0.1:{port}", "/metrics", credentials=given)


def test_a_refusal_says_what_the_broker_says() -> None:
    challenge = '401 Unauthorized\r\nWWW-Authenticate: Bearer realm="broker-core"'
    with (
        one_answer(challenge, json.dumps({"error": "who are you"})) as (port, _),
        pytest.raises(BrokerUnreachable, match="HTTP status 401: who are you") as caught,
    ):
        get(f"http://127.0.0.1:{port}", "/metrics")
    assert caught.value.wants_credentials
    with (
        one_answer("401 Unauthorized", "") as (port, _),
        pytest.raises(BrokerUnreachable, match="HTTP status 401") as caught,
    ):
        get(f"http://127.0.0.1:{port}", "/metrics")
    assert not caught.value.wants_credentials


def test_https_trusts_what_the_option_names(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = authority.issue("server")
    client = authority.issue("operator")
    given = GivenCredentials(cert=client.certificate, key=client.key, ca=authority.ca)
    with one_answer("200 OK", "page", server.server_context(authority.ca)) as (port, _):
        assert get(f"https://127.0.0.1:{port}", "/metrics", credentials=given) == "page"
    with (
        one_answer("200 OK", "page", server.server_context()) as (port, heard),
        pytest.raises(BrokerUnreachable, match=r"certificate is not accepted: .*name it with --ca FILE"),
    ):
        get(f"https://127.0.0.1:{port}", "/metrics")
    assert heard == []
    with pytest.raises(UnusableCredentials, match="for TLS"):
        get("http://127.0.0.1:1", "/metrics", credentials=given)


async def test_the_socket_of_the_operator_is_asked_first(cli: Cli, tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bc-"))
    try:
        async with serve(settings={"admin": {"socket": str(folder / "admin")}}) as server:
            await server.create("persistent://t/n/a")
            await server.list("t/n", pattern="t/n/.*")
            url = broker_url(f"unix:{folder}/admin")
            assert url == f"unix:{folder}/admin"
            for path in ("/metrics", "/questions", "/plugins", "/-/live", "/-/ready"):
                assert await asyncio.to_thread(get, url, path)
            assert '"t/n/.*"' in await asyncio.to_thread(get, url, "/questions")
            config = file_with(tmp_path / "s.toml", f'[admin]\nsocket = "{folder}/admin"\n')
            said = await asyncio.to_thread(
                cli, "spark", "patterns", "export", "--config", config, "--min-count", "1"
            )
            assert (said.code, "t/n/.*" in said.out) == (0, True)
        with pytest.raises(BrokerUnreachable, match="No such file"):
            get(url, "/metrics")
    finally:
        shutil.rmtree(folder)


def test_with_certificates_the_address_with_tls_is_asked(cli: Cli, tmp_path: Path) -> None:
    config = file_with(
        tmp_path / "s.toml",
        '[http]\nlisten = "127.0.0.1:1"\n[http.tls]\nlisten = "127.0.0.1:2"\ncertificate = "c"\nkey = "k"\n',
    )
    export = ("spark", "patterns", "export", "--config", config)
    assert "cannot connect to http://127.0.0.1:1: " in cli(*export).err
    ca = Authority(tmp_path).ca
    assert "cannot connect to https://127.0.0.1:2: " in cli(*export, "--ca", ca).err
