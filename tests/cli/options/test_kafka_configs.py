from __future__ import annotations

import pytest

from broker_core.cli.options.kafka_configs import config_resources, shown_resource
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.client.kafka import ConfigResource


def test_topics_or_a_node() -> None:
    assert config_resources(["a", "b", "a"], None) == [ConfigResource.topic("a"), ConfigResource.topic("b")]
    assert config_resources(None, 0) == [ConfigResource.broker(0)]


@pytest.mark.parametrize(("names", "node"), [(None, None), (["a"], 1)])
def test_one_of_the_two(names: list[str] | None, node: int | None) -> None:
    with pytest.raises(UnusableQuestion, match="one of the two"):
        config_resources(names, node)


def test_what_is_shown() -> None:
    assert (shown_resource(ConfigResource.topic("a")), shown_resource(ConfigResource.broker(1))) == (
        "a",
        "node 1",
    )
