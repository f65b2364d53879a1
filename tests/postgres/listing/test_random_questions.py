"""Random questions over the protocol, each compared with RE2 applied to every name, and the hash."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import re2

from broker_core.errors import InvalidPattern
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode, NamespaceName
from broker_core.names.partitions import partitioned_local_name
from broker_core.names.system_topics import is_system_topic
from broker_core.patterns import compile_pattern
from broker_core.patterns.topics_pattern import strip_scheme
from broker_core_postgres.listing import listing_sql as statements
from broker_core_postgres.listing import pages
from broker_core_postgres.plugin import PostgresPlugin
from tests.postgres.listing.lister_setup import QUIET, Row, fill
from tests.support.postgres_server import Database
from tests.support.pulsar_serving import serving
from tests.support.raw_client import RawClient, Refused
from tests.support.regexes import _Grammar

NAMESPACES = ["acme/orders", "acme/o", "b-c/d_e"]
REGIONS, TEAMS = ["eu", "us", "ap", "%", "' OR 1=1 --"], ["a", "b", ""]
WORDS = [
    *(
        "orders",
        "order_s",
        "device-001",
        "device-002",
        "audit.log",
        "100%",
        "a_b",
        "é",
        "ü-x",
        "😀",
        "\ue000z",
    ),
    *(
        "it's",
        '"quoted"',
        "back\\slash",
        "semi;colon",
        "new\nline",
        "$1",
        "--",
        "/*x".replace("/", ""),
        "%_%",
    ),
    *("__change_events", "x__transaction_pending_ack", "-partition-", "ſ", "K", "k", "ab", "abc", "abd"),
]


def drawn_rows(rng: random.Random, count: int) -> list[Row]:
    found: dict[tuple[str, str], Mapping[str, str]] = {}
    for _ in range(count):
        local = "-".join(rng.choices(WORDS, k=rng.randint(1, 3)))
        domain = rng.choice(["persistent", "persistent", "non-persistent"])
        properties = {
            key: rng.choice(values)
            for key, values in (("region", REGIONS), ("team", TEAMS), ("owner", ["x", "y"]))
            if rng.random() < 0.7
        }
        names = [local]
        if rng.random() < 0.3:
            names = [f"{local}-partition-{index}" for index in rng.sample([0, 1, 2, 10, 2147483647], 2)]
        elif rng.random() < 0.1:
            names = [f"{local}-partition-{rng.choice(['007', '-1', '2147483648', ''])}"]
        for name in names:
            found[domain, name] = properties
    return [(domain, local, properties) for (domain, local), properties in found.items()]


@dataclass(frozen=True)
class QuestionKey:
    namespace: str
    mode: Mode
    pattern: str | None
    properties: Mapping[str, str]


def drawn_question(rng: random.Random, rows: Mapping[str, list[Row]]) -> QuestionKey:
    namespace = rng.choice(NAMESPACES)
    local = partitioned_local_name(rng.choice(rows[namespace])[1])
    escaped = re2.escape(local)
    begin, end = sorted((rng.randint(0, len(local)), rng.randint(0, len(local))))
    part = re2.escape(local[begin:end])
    other = re2.escape(rng.choice(rows[namespace])[1])
    grammar, _ = _Grammar(rng).alternatives(depth=2)
    pattern = rng.choice(
        [
            None,
            f"{namespace}/{escaped}",
            f"{namespace}/{re2.escape(local[:end])}.*",
            f"{namespace}/.*{part}.*",
            f".*{part}",
            f"{namespace}/(?:{escaped}|{other}.*)",
            f"({namespace}|x/y)/{re2.escape(local[:end])}.*",
            f"{namespace}/{grammar}",
            f".*{grammar}.*",
            f"{namespace}/[a-o].*",
            f"(?i){namespace}/{escaped}",
            f"{namespace}/.*",
            ".*",
            f"{namespace}/{escaped}.{{0,3}}",
            f"other/ns/{escaped}",
            f"{namespace}/{part}[^x]*{part}?",
        ]
    )
    if pattern is not None and rng.random() < 0.3:
        pattern = f"persistent://{pattern}"
    properties = {
        key: rng.choice(values)
        for key, values in (("region", REGIONS), ("team", TEAMS), ("ignored", ["1"]))
        if rng.random() < 0.35
    }
    return QuestionKey(namespace, rng.choice(list(Mode)), pattern, properties)


@dataclass(frozen=True)
class ListedNames:
    """A name that may be listed, and the text that patterns match."""

    domain: str
    name: str
    matched: str
    properties: Mapping[str, str]


def listed(namespace: str, rows: list[Row]) -> list[ListedNames]:
    """All names of a namespace that a broker lists."""
    return [
        ListedNames(
            domain,
            f"{domain}://{namespace}/{local}",
            f"{namespace}/{partitioned_local_name(local)}",
            properties,
        )
        for domain, local, properties in rows
        if not is_system_topic(domain, NamespaceName.parse(namespace), local)
    ]


def expected(question: QuestionKey, rows: list[ListedNames]) -> tuple[bool, list[str]] | None:
    """Whether the answer is filtered, and its names; ``None`` for a refused pattern.

    Brokers take ``.*`` for all names.
    """
    engine, supported = None, False
    if question.pattern is not None:
        try:
            supported = compile_pattern(question.pattern).supported
        except InvalidPattern:
            return None
        if supported and strip_scheme(question.pattern) != ".*":
            options = re2.Options()
            options.log_errors = False
            engine = re2.compile(strip_scheme(question.pattern), options)
    wanted = {key: value for key, value in question.properties.items() if key in ("region", "team")}
    names = [
        row.name
        for row in rows
        if question.mode.lists(row.domain)
        and all(row.properties.get(key) == value for key, value in wanted.items())
        and (engine is None or engine.fullmatch(row.matched) is not None)
    ]
    return supported, names


async def ask(client: RawClient, question: QuestionKey, hash_: str | None = None) -> Any:
    return await client.ask(
        question.namespace,
        question.mode.value,
        pattern=question.pattern,
        properties=question.properties,
        topics_hash=hash_,
    )


@pytest.mark.parametrize(
    ("trigrams", "page", "questions"),
    [
        ("auto", statements.PAGE_NAMES, 100),
        ("off", 16, 60),
        pytest.param("auto", statements.PAGE_NAMES, 2000, marks=pytest.mark.long),
        pytest.param("off", 16, 500, marks=pytest.mark.long),
    ],
    ids=["usual", "pages", "many", "many-pages"],
)
async def test_random_questions(
    database: Database, trigrams: str, page: int, questions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "PAGE_NAMES", page)
    monkeypatch.setattr(pages, "PAGE_NAMES", page)
    rng = random.Random(f"questions {trigrams}")
    rows = {namespace: drawn_rows(rng, 200) for namespace in NAMESPACES}
    for namespace in NAMESPACES:
        await fill(database, namespace, rows[namespace])
    database.sql("ANALYZE")
    shown = {namespace: listed(namespace, rows[namespace]) for namespace in NAMESPACES}
    table = {
        "dsn": database.dsn,
        "property_keys": ["region", "team"],
        "trigrams": trigrams,
        "deadline": "25s",
    }
    differences: list[Any] = []
    sizes: set[int] = set()
    async with (
        serving(
            plugins={"postgres": PostgresPlugin()},
            tables={"postgres": table},
            options=QUIET,
        ) as s,
        await s.client() as client,
    ):
        for _ in range(questions):
            question = drawn_question(rng, rows)
            wanted = expected(question, shown[question.namespace])
            try:
                answer = await ask(client, question)
            except Refused as refused:
                if wanted is not None:
                    differences.append((question, str(refused)))
                continue
            assert wanted is not None, question
            filtered, names = wanted
            got = (answer.filtered, sorted(answer.topics), answer.topics_hash)
            if got != (filtered, sorted(names), topics_hash(names)):
                differences.append((question, got, sorted(names)))
            sizes.add(len(names))
            if rng.random() < 0.8:
                continue
            again = await ask(client, question, answer.topics_hash)
            if again.changed or again.topics or again.topics_hash != answer.topics_hash:
                differences.append((question, "unchanged", again))
    assert differences == []
    assert len(sizes) > 20, "the questions are too much alike"
