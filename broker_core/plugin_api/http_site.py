"""The site of a plugin (``broker_core_http_routes``): files, routes and screens that the HTTP server serves for it.

No type of the HTTP library appears here: the core owns headers, compression, rights and the time of an answer.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from broker_core.access import Asker

__all__ = ["PLACEHOLDER", "HttpRequest", "HttpRoute", "HttpScreen", "HttpSite"]

PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9_~][A-Za-z0-9._~-]*)+")
_PATH: Final = re.compile(r"(/([A-Za-z0-9_~][A-Za-z0-9._~-]*|\{[a-z][a-z0-9_]*\}))+")
#: A media type as in RFC 9110: a type, a subtype, and parameters that are tokens or quoted strings, in ASCII.
_TOKEN: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_CONTENT_TYPE: Final = re.compile(
    rf"{_TOKEN}/{_TOKEN}([ \t]*;[ \t]*{_TOKEN}=({_TOKEN}|\"[ !#-\[\]-~]*\"))*", re.ASCII
)
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_SCREEN: Final = re.compile(r"[a-z][a-z0-9-]{0,63}")
_OF_SERVER: Final = ("nothing", "credentials", "monitor", "admin", "super")
#: Further rights that a route may need, in the namespace of its path.
_OF_NAMESPACE: Final = ("list", "admin")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to a route: ``path`` has its ``{parts}``, ``query`` the last value of each parameter.

    ``body`` is the JSON of the body, as plain values; ``None`` of a request that has none.
    """

    asker: Asker
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


#: Answers a route with plain values, which are sent as JSON, or with bytes. Sync or async.
Handler: TypeAlias = Callable[[HttpRequest], Any | Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """A method of a path below the prefix of a site; ``argument`` is the name by which its handler gets the request."""

    method: str
    path: str
    handler: Handler
    argument: str
    needs: str
    content_type: str

    @property
    def has_namespace(self) -> bool:
        """Whether its path names a namespace, which its right is asked about."""
        return "{tenant}/{namespace}" in self.path


@dataclass(frozen=True, slots=True)
class HttpScreen:
    """A screen of the explorer: ``module`` is an ES module among the files of the site."""

    name: str
    title: str
    module: str
    needs: str


class HttpSite:
    """The site that a plugin serves over HTTP below ``prefix`` (``/``, or ``/name``): files of a folder, routes,
    screens.

    ``files`` is a folder of the plugin's package, which is read when the server starts; ``index.html`` in it is what is
    at the prefix itself. With ``changes``, pages of this server may change something by the routes of the site, in the
    browser of a client that has the right to; with that of the site at ``/``, also topics by ``/v1``. Raises
    :exc:`ValueError` and :exc:`TypeError` for what is none.
    """

    def __init__(self, prefix: str, files: Path | str | None = None, *, changes: bool = False) -> None:
        if not isinstance(prefix, str) or not (prefix == "/" or _PREFIX.fullmatch(prefix)):
            raise ValueError(
                f"prefix must be / or such as /name, without a slash at the end, not {prefix!r:.100}"
            )
        self.prefix = prefix
        self.files = None if files is None else Path(files)
        self.changes = bool(changes)
        self.routes: list[HttpRoute] = []
        self.screens: list[HttpScreen] = []

    def at(self, path: str) -> str:
        """The path of the server that a path below the prefix (``/name``) has."""
        return path if self.prefix == "/" else self.prefix + path

    def route(
        self,
        method: str,
        path: str,
        handler: Handler,
        *,
        needs: str = "monitor",
        content_type: str = "application/json",
    ) -> None:
        """Let ``handler`` answer a method of a path below the prefix: ``/status``, ``/of/{tenant}/{namespace}``.

        ``needs`` is ``"nothing"``, ``"credentials"``, ``"monitor"`` or ``"admin"`` (both in all namespaces),
        ``"super"``, and of a path with ``{tenant}/{namespace}`` ``"list"`` or ``"admin"`` there. What is not ``GET``
        is a change: its body is JSON, it is in the audit log, and pages may ask it only if this site has ``changes``.
        What the handler returns is sent as JSON, or as it is if it is ``bytes``, under ``content_type``.
        """
        if method not in _METHODS:
            raise ValueError(f"the method of a route is one of {', '.join(_METHODS)}, not {method!r:.100}")
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise ValueError(f"the path of a route is such as /status or /of/{{part}}, not {path!r:.100}")
        if len(set(parts := PLACEHOLDER.findall(path))) != len(parts):
            raise ValueError(f"{path} has one placeholder twice")
        form = PLACEHOLDER.sub("{}", path)
        if any(each.method == method and PLACEHOLDER.sub("{}", each.path) == form for each in self.routes):
            raise ValueError(f"there are two routes for {method} {path}")
        if not callable(handler):
            raise TypeError(f"the handler of {path} must be a function, not {type(handler).__name__}")
        arguments = list(inspect.signature(handler).parameters)
        if len(arguments) != 1:
            raise TypeError(f"the handler of {path} must take one argument, the request")
        if not isinstance(content_type, str) or not _CONTENT_TYPE.fullmatch(content_type):
            raise ValueError(
                f"the content_type of {path} must be such as text/plain; charset=utf-8, not {content_type!r:.100}"
            )
        route = HttpRoute(method, path, handler, arguments[0], needs, content_type)
        known = (*_OF_SERVER, *_OF_NAMESPACE[:1]) if route.has_namespace else _OF_SERVER
        if needs not in known:
            raise ValueError(f"{path} needs one of {', '.join(known)}, not {needs!r:.100}")
        self.routes.append(route)

    def screen(self, name: str, title: str, module: str, *, needs: str = "monitor") -> None:
        """Add a screen to the explorer: ``module`` is an ES module of this site, ``name`` is in addresses.

        ``needs`` is the right without which the explorer does not offer it: one of those of routes for all namespaces.
        """
        if not isinstance(name, str) or not _SCREEN.fullmatch(name):
            raise ValueError(f"the name of a screen has small letters, digits and -, not {name!r:.100}")
        if not title or not isinstance(title, str) or len(title) > 100:
            raise ValueError(f"the title of a screen has 1 to 100 characters, not {title!r:.200}")
        if needs not in _OF_SERVER:
            raise ValueError(f"a screen needs one of {', '.join(_OF_SERVER)}, not {needs!r:.100}")
        if any(each.name == name for each in self.screens):
            raise ValueError(f"there are two screens {name!r}")
        if self.files is None:
            raise ValueError(f"the screen {name!r} has a module, and the site no files")
        self.screens.append(HttpScreen(name, title, module, needs))
