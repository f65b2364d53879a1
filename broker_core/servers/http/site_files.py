"""The files of plugins' sites: read once at the start, and served to browsers with the headers of their pages.

Every file is there at two addresses: below the prefix of its site, where a browser asks each time whether it has
changed, and below ``@HASH`` of all files of the site, where it never does. ``index.html`` is only served at the prefix,
and leads to the others: ``@files/`` in it stands for ``@HASH/``, and ``@root/`` for the way to the root of the server,
so that pages work behind a proxy with a path prefix that this server does not know.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import hdrs, web

from broker_core.plugins import PluginLoadError, PluginSite
from broker_core.servers.http.api.cross_origin import WebPages
from broker_core.servers.http.api.etag import EntityTags
from broker_core.servers.http.api.negotiation import takes_gzip
from broker_core.servers.http.api.screens import ScreenObject

__all__ = ["PAGE_HEADERS", "SiteFiles", "check_files", "read_sites"]

_MOST_FILES: Final = 500
_MOST_BYTES: Final = 8 * 1024 * 1024
_INDEX: Final = "index.html"
#: Parts of paths that are served as they stand in a folder.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
#: Types that are small already.
_COMPRESSED: Final = (".png", ".webp", ".woff2")
_LEAST_GZIP: Final = 512
#: The restrictions of browsers for answers of a plugin's site, its files as well as its routes.
PAGE_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}
_REVALIDATED: Final = "no-cache"
_FOR_EVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it is sent: its bytes, also in gzip if that is smaller, and its type."""

    content: bytes
    packed: bytes | None
    content_type: str
    etag: str

    @classmethod
    def of(cls, content: bytes, suffix: str) -> _File:
        packed = None
        if suffix not in _COMPRESSED and len(content) >= _LEAST_GZIP:
            packed = gzip.compress(content, 9, mtime=0)
        if packed is not None and len(packed) >= len(content):
            packed = None
        return cls(content, packed, _TYPES[suffix], _hash(content))


class SiteFiles:
    """The files of one site, read when it is made. Raises :exc:`~broker_core.plugins.PluginLoadError`."""

    def __init__(self, of_plugin: PluginSite, pages: WebPages) -> None:
        self.plugin = of_plugin.plugin
        self._site = of_plugin.site
        self.prefix = of_plugin.site.prefix
        self._pages = pages
        files = dict(self._read()) if self._site.files is not None else {}
        together = hashlib.sha256()
        for name, content in sorted(files.items()):
            together.update(f"{name}\0{len(content)}\0".encode() + content)
        #: The part of the permanent addresses of files.
        self.hash = together.hexdigest()[:16]
        index = files.pop(_INDEX, None)
        self._index = None if index is None else _File.of(self._addressed(index), ".html")
        self._files = {name: _File.of(content, Path(name).suffix) for name, content in files.items()}
        for screen in self._site.screens:
            if screen.module not in self._files:
                raise self._unusable(f"has a screen {screen.name!r}, and no file {screen.module!r}")
        for route in self._site.routes:
            if route.path.removeprefix("/") in self._files:
                raise self._unusable(f"has a route and a file at {self._site.at(route.path)}")

    def check_beside(self, other: SiteFiles) -> None:
        """Raise the error for a path of one site that is within the other one."""
        for path in self._paths_below(other.prefix):
            raise self._unusable(f"has {path}, and plugin {other.plugin!r} a site at {other.prefix}")
        for path in other._paths_below(self.prefix):
            raise self._unusable(f"has a site at {self.prefix}, and plugin {other.plugin!r} has {path}")

    def _paths_below(self, prefix: str) -> Iterator[str]:
        """The files and routes of the site that are within a longer prefix."""
        if len(prefix) > len(self.prefix):
            paths = (*(f"/{name}" for name in self._files), *(route.path for route in self._site.routes))
            yield from (path for path in map(self._site.at, paths) if _is_within(path, prefix))

    @property
    def screens(self) -> list[ScreenObject]:
        """The screens of the site; ``allowed`` depends on the client, and is false here."""
        below = self._site.at("/").removeprefix("/")
        return [
            ScreenObject(
                id=each.name,
                title=each.title,
                plugin=self.plugin,
                module=f"{below}@{self.hash}/{each.module}",
                needs=each.needs,
                allowed=False,
            )
            for each in self._site.screens
        ]

    def routes(self) -> Iterator[web.RouteDef]:
        """The route of each file, and the one of all below the hash."""
        if self._index is not None:
            yield web.get(self._site.at("/"), self._show_index)
            if self.prefix != "/":
                yield web.get(self.prefix, self._to_index)
        for name, file in self._files.items():
            yield web.get(self._site.at(f"/{name}"), self._handler(file))
        yield web.get(self._site.at(f"/@{self.hash}/{{name:.+}}"), self._show_for_ever)

    async def _show_index(self, request: web.Request) -> web.Response:
        assert self._index is not None
        return self._response(request, self._index, _REVALIDATED)

    async def _to_index(self, request: web.Request) -> web.Response:
        self._pages.check_host(request)
        last = self.prefix.rpartition("/")[2]
        return web.Response(status=308, headers={**PAGE_HEADERS, hdrs.LOCATION: f"{last}/"})

    def _handler(self, file: _File) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def show(request: web.Request) -> web.Response:
            return self._response(request, file, _REVALIDATED)

        return show

    async def _show_for_ever(self, request: web.Request) -> web.Response:
        file = self._files.get(request.match_info["name"])
        if file is None:
            raise web.HTTPNotFound
        return self._response(request, file, _FOR_EVER)

    def _response(self, request: web.Request, file: _File, cached: str) -> web.Response:
        self._pages.check_host(request)
        packed = file.packed if takes_gzip(request) else None
        etag = f'"{file.etag}{"" if packed is None else "-gzip"}"'
        headers = {**PAGE_HEADERS, hdrs.ETAG: etag, hdrs.CACHE_CONTROL: cached}
        if _has(request, etag):
            return web.Response(status=304, headers=headers)
        headers[hdrs.CONTENT_TYPE] = file.content_type
        if packed is not None:
            headers[hdrs.CONTENT_ENCODING] = "gzip"
        return web.Response(body=file.content if packed is None else packed, headers=headers)

    def _addressed(self, index: bytes) -> bytes:
        up = "../" * self.prefix.count("/") if self.prefix != "/" else "./"
        return index.replace(b"@files/", f"@{self.hash}/".encode()).replace(b"@root/", up.encode())

    def _read(self) -> Iterator[tuple[str, bytes]]:
        folder = self._site.files
        assert folder is not None
        if not folder.is_dir():
            raise self._unusable(f"has a site with the files of {folder.name!r}, which is no folder")
        size = 0
        for number, path in enumerate(sorted(self._paths(folder)), 1):
            name = path.relative_to(folder).as_posix()
            if not all(map(_NAME.fullmatch, name.split("/"))) or path.suffix not in _TYPES:
                raise self._unusable(
                    f"has a file {name!r:.200} in its site: names have letters, digits, '.', '_' and '-', and end with "
                    f"one of {', '.join(_TYPES)}"
                )
            try:
                content = path.read_bytes()
            except OSError as error:
                raise self._unusable(
                    f"has a file {name!r} in its site that cannot be read: {error.strerror}"
                ) from error
            size += len(content)
            if number > _MOST_FILES or size > _MOST_BYTES:
                raise self._unusable(
                    f"has a site of more than {_MOST_FILES} files, or {_MOST_BYTES // 1024**2} MiB"
                )
            yield name, content

    def _paths(self, folder: Path) -> Iterator[Path]:
        for path in folder.iterdir():
            if path.name.startswith(".") or path.name in {"__pycache__", "__init__.py"}:
                continue
            if path.is_dir():
                yield from self._paths(path)
            else:
                yield path

    def _unusable(self, problem: str) -> PluginLoadError:
        return PluginLoadError(self.plugin, None, problem)


def read_sites(of_plugins: Iterable[PluginSite], pages: WebPages) -> list[SiteFiles]:
    """The files of sites; raises :exc:`~broker_core.plugins.PluginLoadError` for two plugins at one path, too."""
    found: list[SiteFiles] = []
    for of_plugin in of_plugins:
        files = SiteFiles(of_plugin, pages)
        for other in found:
            files.check_beside(other)
        found.append(files)
    return found


def check_files(of_plugins: Iterable[PluginSite]) -> None:
    """Read the files of sites as the start does. Raises :exc:`~broker_core.plugins.PluginLoadError`."""
    read_sites(of_plugins, WebPages())


def _is_within(path: str, prefix: str) -> bool:
    """Whether a path, of which parts may be placeholders, may be at a prefix or below it."""
    parts, wanted = path.split("/"), prefix.split("/")
    return len(parts) >= len(wanted) and all(
        part == name or part.startswith("{") for part, name in zip(parts, wanted, strict=False)
    )


def _has(request: web.Request, etag: str) -> bool:
    """Whether a client has this already."""
    given = request.headers.get(hdrs.IF_NONE_MATCH)
    try:
        return given is not None and EntityTags(given).matches(etag, weakly=True)
    except ValueError:
        return False


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
