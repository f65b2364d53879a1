"""Ask a broker what many consumers ask all day: a few patterns very often, many of them now and then.

python traffic.py pulsar://127.0.0.1:6650 --questions 2000
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys

from broker_core.client import ClientError, LookupSession

NAMESPACE = "public/default"
PATTERNS = [
    *(
        f"persistent://{NAMESPACE}/{kind}-{region}-.*"
        for kind in ("orders", "payments")
        for region in ("eu", "us")
    ),
    *(f"{NAMESPACE}/(shipments|audit)-{region}-.*" for region in ("eu", "us", "ap")),
    *(f"{NAMESPACE}/.*-00{number}[0-9]*" for number in range(10)),
    *(f"{NAMESPACE}/.*-(eu|us)-.*{number}" for number in range(10)),
]
#: The questions: patterns, some of them with a property of the consumer's team.
QUESTIONS: list[tuple[str, dict[str, str]]] = [(pattern, {}) for pattern in PATTERNS] + [
    (pattern, {"team": "red"}) for pattern in PATTERNS
]


async def ask(service_url: str, count: int, seed: int) -> int:
    """Ask so many questions, the first of the list most often; the number of topics in all answers."""
    choose = random.Random(seed)
    weights = [1 / rank for rank in range(1, len(QUESTIONS) + 1)]
    topics = 0
    async with LookupSession(service_url) as client:
        for pattern, properties in choose.choices(QUESTIONS, weights, k=count):
            topics += len(await client.get_topics(NAMESPACE, pattern=pattern, properties=properties))
    return topics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("service_url")
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        topics = asyncio.run(ask(given.service_url, given.questions, given.seed))
    except (ClientError, OSError) as error:
        sys.exit(f"traffic.py: {given.service_url}: {error}")
    print(f"{given.questions} questions, {topics} topics in the answers")


if __name__ == "__main__":
    main()
