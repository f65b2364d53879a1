"""A reverse proxy that serves another server below a path prefix, as the page about the explorer says for nginx."""

from __future__ import annotations

import http.client
import threading
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

__all__ = ["PrefixProxy"]


class PrefixProxy:
    """Passes requests below ``prefix`` on to ``target`` (HOST:PORT), with their Host; a context manager."""

    def __init__(self, prefix: str, target: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def _pass_on(self) -> None:
                if not self.path.startswith(f"{prefix}/"):
                    self.send_error(404)
                    return
                # A browser that needs an answer no more closes its connection.
                with (
                    suppress(ConnectionError),
                    closing(http.client.HTTPConnection(target, timeout=30)) as connection,
                ):
                    self._answer(connection)

            def _answer(self, connection: http.client.HTTPConnection) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                connection.request(
                    self.command, self.path.removeprefix(prefix), body, dict(self.headers.items())
                )
                answer = connection.getresponse()
                content = answer.read()
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass_on  # noqa: N815 - names of http.server

            def log_message(self, *_arguments: Any) -> None:
                """Nothing of a proxy is of interest."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="prefix-proxy")
        self.root = f"http://127.0.0.1:{self._server.server_port}{prefix}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
