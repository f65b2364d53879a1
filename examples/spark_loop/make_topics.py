"""Print topics of a made-up company as JSON lines, for `broker-core topics import public/default -`."""

from __future__ import annotations

import json
import sys

REGIONS = ("eu", "us", "ap")
KINDS = ("orders", "payments", "shipments", "audit")
TEAMS = ("red", "blue", "green")


def main(count: int) -> None:
    for number in range(count):
        kind, region = KINDS[number % 4], REGIONS[number % 3]
        topic = {"name": f"{kind}-{region}-{number:06}", "properties": {"team": TEAMS[number % 5 % 3]}}
        print(json.dumps(topic))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
