"""Changes of a namespace at a steady rate, as an operator's program makes them: create, delete, set properties in turn.

Arguments (a JSON object): ``catalog``, ``namespace``, ``topics`` (local names that are there), ``per_second``. It says
`ready`, goes on until its standard input ends, and prints how many changes it made in how many seconds.
"""

from __future__ import annotations

import json
import select
import sys
import time
from typing import Any

from broker_core import NamespaceName, TopicName
from broker_core.catalog import SqliteCatalog


def change_often(arguments: dict[str, Any]) -> dict[str, float]:
    """Until the end of the standard input."""
    namespace = NamespaceName.parse(arguments["namespace"])
    topics, pause = arguments["topics"], 1 / arguments["per_second"]
    changes = 0
    with SqliteCatalog(arguments["catalog"]) as catalog:
        print("ready", flush=True)
        begun = time.perf_counter()
        while True:
            wait = begun + changes * pause - time.perf_counter()
            if select.select([sys.stdin], [], [], max(wait, 0))[0]:
                return {"changes": changes, "seconds": time.perf_counter() - begun}
            near = topics[changes // 3 % len(topics)]
            new = TopicName("persistent", namespace, f"{near}-{changes // 3}")
            if changes % 3 == 0:
                catalog.create(new)
            elif changes % 3 == 1:
                catalog.set_properties(TopicName("persistent", namespace, near), {"region": f"r{changes}"})
            else:
                catalog.delete(new)
            changes += 1


if __name__ == "__main__":
    print(json.dumps(change_often(json.loads(sys.argv[1]))))
