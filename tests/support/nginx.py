"""A real nginx before a server, configured as the page about the explorer says."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.certificates import Authority
from tests.support.eventually import eventually_sync
from tests.support.ports import free_port

__all__ = ["nginx_before"]

_PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "explorer.md"
#: What nginx needs beside the server of the page: to run in ``folder`` alone, and to end with the test.
_AROUND: Final = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""


@contextmanager
def nginx_before(program: Path, target: str, folder: Path) -> Iterator[str]:
    """The page's root behind an nginx with TLS and the prefix of the page, before ``target`` (HOST:PORT).

    Of the page's ``server`` only the port, the files of the certificate and the target are others.
    """
    issued = Authority(folder).issue("topics.example.com")
    port = free_port()
    server = re.findall(r"```nginx\n(.*?)```", _PAGE.read_text(), re.DOTALL)[0]
    for said, here in (
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/ssl/topics.example.com.pem", str(issued.certificate)),
        ("/etc/ssl/topics.example.com.key", str(issued.key)),
        ("http://127.0.0.1:8080/", f"http://{target}/"),
    ):
        assert said in server, f"the page says nothing of {said!r} any more"
        server = server.replace(said, here)
    settings = folder / "nginx.conf"
    # Processes of root's nginx run as nobody else, so that they may read the test's folder.
    user = "user root;" if os.geteuid() == 0 else ""
    settings.write_text(_AROUND.format(folder=folder, server=server, user=user))
    process = subprocess.Popen(
        [program, "-p", folder, "-e", folder / "log", "-c", settings], stderr=subprocess.PIPE, text=True
    )
    try:
        eventually_sync(
            lambda: process.poll() is not None or (folder / "pid").exists(), 60, what="nginx listens"
        )
        assert process.poll() is None, process.communicate()[1]
        yield f"https://127.0.0.1:{port}/broker/"
    finally:
        process.terminate()
        process.communicate(timeout=60)
