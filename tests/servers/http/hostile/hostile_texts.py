"""Texts that hostile requests have in their paths, parameters and bodies."""

from __future__ import annotations

from typing import Final

__all__ = ["LISTING", "METHODS", "NAMESPACE", "ODD_TEXTS", "PATHS", "PATTERNS"]

NAMESPACE: Final = "/v1/namespaces/public/default"
LISTING: Final = f"{NAMESPACE}/topics"
METHODS: Final = (
    "GET",
    "HEAD",
    "PUT",
    "POST",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PRI",
    "get",
    "X" * 40,
)
PATHS: Final = (
    *(
        "/v1/namespaces",
        NAMESPACE,
        LISTING,
        f"{LISTING}/orders",
        f"{NAMESPACE}/changes",
        "/v1/openapi.json",
    ),
    *(
        "/metrics",
        "/questions",
        "/plugins",
        "/-/ready",
        "/admin/v2/namespaces/public",
        "/admin/v2/namespaces/public/default",
    ),
    "/admin/v2/persistent/public/default",
    "/admin/v2/persistent/public/default/orders/partitions",
    *(
        "/lookup/v2/topic/persistent/public/default/orders",
        "/admin/v2/namespaces/public/default/topics",
        "/",
        "//",
        "*",
    ),
)
ODD_TEXTS: Final = (
    *(
        "",
        " ",
        "\0",
        "%",
        "%00",
        "%zz",
        "%c3%28",
        "%ff%fe",
        "%ed%a0%80",
        "%f0%9f%98%80",
        "..",
        "%2e%2e",
        "%2F",
        "\\",
    ),
    *(
        "-partition-0",
        "a-partition-99999999999",
        "__change_events",
        "persistent://",
        "non-persistent://x/y/z",
        "a" * 5000,
    ),
    *(
        "%0d%0aX-Injected:%201",
        "'; DROP TABLE topics;--",
        "${jndi:ldap://x}",
        "<script>",
        "null",
        "-1",
        "1e999",
        "NaN",
    ),
    "9" * 30,
    "%E2%80%AE",
    "%F4%90%80%80",
    "tenant%20",
    ";a=b",
    "?",
    "#",
    "&&=&",
    "=",
    "+",
    "{x}",
)
PATTERNS: Final = (
    *(
        "(a+)+$",
        "(.*)*x",
        "((a{1,30}){1,30}){1,30}",
        "a{1000}{1000}",
        "(?:a?){500}a{500}",
        "(?=x)",
        "(?<!x)y",
        r"\1",
        r"\C*",
    ),
    *(
        "[",
        "(",
        ")",
        "*",
        "(?P<n>",
        "(?i)(?s)(?m).*",
        r"\pN\p{Greek}",
        r"[\x00-\x{10FFFF}]{200}",
        r"\x{110000}",
        "(?:" * 2000,
    ),
    *(
        "|".join(map(str, range(3000))),
        "." * 10_000,
        "(" * 1000 + ")" * 1000,
        r"\Q" + "x" * 100,
        "[^\\d\\D]",
        "^$^$^$",
        r"\z\A\b\B",
    ),
    *(
        "persistent://public/default/" + ".*" * 300,
        "(?:.*,){30}",
        "x{0,1000}" * 20,
        "\\",
        "[[:alpha:]]+",
        "(?-u)\\xff",
        "é{3,}",
    ),
)
