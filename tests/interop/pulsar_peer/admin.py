"""The calls of a broker's admin REST interface that scenes need."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

__all__ = ["Admin", "rest_path"]

_PARTITIONED = "application/vnd.partitioned-topic-metadata+json"


class Admin:
    """A broker's ``/admin/v2``. Topics are full names (``persistent://tenant/namespace/local``)."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def create_namespace(self, namespace: str) -> None:
        """Create ``tenant/namespace``; one that exists already is an error (409)."""
        self._call("PUT", f"namespaces/{namespace}")

    def grant(self, namespace: str, role: str, *actions: str) -> None:
        """Give a role rights in a namespace, ``"consume"`` or ``"produce"``, instead of those that it had."""
        self._call("POST", f"namespaces/{namespace}/permissions/{role}", list(actions))

    def create_topic(self, topic: str, partitions: int = 0) -> None:
        """Create a topic; ``partitions=0`` makes a plain one."""
        if partitions:
            body = {"partitions": partitions, "properties": {}}
            self._call("PUT", f"{rest_path(topic)}/partitions", body, _PARTITIONED)
        else:
            self._call("PUT", rest_path(topic))

    def delete_topic(self, topic: str, *, partitioned: bool = False) -> None:
        """Delete a plain topic, or one with partitions, also one with consumers."""
        self._call("DELETE", f"{rest_path(topic)}{'/partitions' if partitioned else ''}?force=true")

    def topics(self, namespace: str) -> set[str]:
        """All persistent topics as REST lists them, partitions included, system topics not."""
        return set(self._call("GET", f"persistent/{namespace}"))

    def partitioned_topics(self, namespace: str) -> set[str]:
        """The base names of the partitioned topics."""
        return set(self._call("GET", f"persistent/{namespace}/partitioned"))

    def subscriptions(self, topic: str) -> set[str]:
        """The names of the subscriptions of a plain topic or of one partition."""
        return set(self._call("GET", f"{rest_path(topic)}/subscriptions"))

    def backlog(self, topic: str, subscription: str) -> int:
        """How many messages a subscription has not acknowledged yet."""
        stats = self._call("GET", f"{rest_path(topic)}/stats?getPreciseBacklog=true")
        return int(stats["subscriptions"][subscription]["msgBacklog"])

    def consumers(self, topic: str, subscription: str) -> int:
        """How many consumers are connected to a subscription."""
        stats = self._call("GET", f"{rest_path(topic)}/stats")
        return len(stats["subscriptions"].get(subscription, {}).get("consumers", ()))

    def permits(self, topic: str) -> dict[str, int]:
        """How many messages the consumers of each subscription wait for."""
        stats = self._call("GET", f"{rest_path(topic)}/stats")
        return {
            name: sum(each["availablePermits"] for each in subscription["consumers"])
            for name, subscription in stats["subscriptions"].items()
        }

    def ready(self) -> bool:
        """Whether the broker serves: its tenant ``public`` is there (made when it is not)."""
        try:
            if "standalone" not in self._call("GET", "clusters"):
                return False
            if "public" not in self._call("GET", "tenants"):
                self._call("PUT", "tenants/public", {"allowedClusters": ["standalone"]})
            self._call("GET", "namespaces/public")
        except (
            urllib.error.URLError,
            ConnectionError,
            TimeoutError,
        ):  # not listening, or 5xx while it starts
            return False
        return True

    def _call(self, method: str, path: str, body: object = None, content: str = "application/json") -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content, **self._headers}
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as response:
            answer = response.read()
        return json.loads(answer) if answer else None


def rest_path(topic: str) -> str:
    """The path of a topic below `/admin/v2`."""
    domain, _, rest = topic.partition("://")
    tenant, namespace, local = rest.split("/", 2)
    return f"{domain}/{tenant}/{namespace}/{urllib.parse.quote(local, safe='')}"
