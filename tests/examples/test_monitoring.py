"""The dashboard and the alert rules: each query is evaluated over scrapes of real servers under traffic."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml  # type: ignore[import-untyped]

from broker_core.quantities import parse_duration
from tests.support.distributions import ROOT
from tests.support.monitored import scraped_under_traffic
from tests.support.monitoring_queries import dashboard_queries, rules
from tests.support.promql import Scrape, evaluated, matching, selectors, without_threshold

EXAMPLE = ROOT / "examples" / "monitoring"

#: What every target has, whatever a server says.
OF_PROMETHEUS = {"job", "instance"}


@dataclass(frozen=True, slots=True)
class Scrapes:
    before: Scrape
    now: Scrape

    def values(self, metric: str, label: str) -> set[str]:
        return {pairs[label] for _, pairs, _ in self.now.by_metric.get(metric, ()) if label in pairs}


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> Scrapes:
    before, now, _ = asyncio.run(scraped_under_traffic(tmp_path_factory.mktemp("monitored")))
    return Scrapes(before, now)


def named_queries() -> Iterator[Any]:
    for title, query in dashboard_queries():
        yield pytest.param(query, id=f"panel {title}")
    for rule in rules():
        yield pytest.param(rule["expr"], id=rule["alert"])


@pytest.mark.parametrize("query", list(named_queries()))
def test_a_query_finds_what_servers_say(query: str, scrapes: Scrapes) -> None:
    expression = promql_parser.parse(query)
    for selector in selectors(expression):
        for matcher in selector.matchers.matchers:
            values = scrapes.values(selector.name, matcher.name)
            assert values, f"{selector.name} has no label {matcher.name}"
            if matcher.name in OF_PROMETHEUS:
                continue
            for value in re.split(r"\|", matcher.value):
                assert any(re.fullmatch(value, each) for each in values), f"{matcher.name}={value}: {values}"
        assert matching(scrapes.now, selector), f"nothing is {selector.prettify()}"
    found = evaluated(without_threshold(expression), scrapes.before, scrapes.now)
    assert isinstance(found, float) or found, query
    evaluated(expression, scrapes.before, scrapes.now)  # the comparison too


def test_labels_that_are_shown_are_those_of_the_query() -> None:
    board = json.loads((EXAMPLE / "dashboard.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            grouped = set(re.findall(r"\w+", (re.findall(r"by \(([^)]*)\)", target["expr"]) or [""])[0]))
            assert shown <= grouped, target["expr"]


def test_the_dashboard_is_whole() -> None:
    board = json.loads((EXAMPLE / "dashboard.json").read_text(encoding="utf-8"))
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {variable["name"] for variable in board["templating"]["list"]} == {"datasource", "job", "instance"}
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert panel["description"], panel["title"]
            assert panel["targets"], panel["title"]
            assert panel["datasource"]["uid"] == "${datasource}"


def test_each_rule_says_what_it_means() -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
        if "for" in rule:
            assert parse_duration(rule["for"]) > 0


def test_rules_fire_when_they_should(scrapes: Scrapes) -> None:
    """The traffic has refusals, failing plugins and lies."""
    fired = {
        rule["alert"]
        for rule in rules()
        if evaluated(promql_parser.parse(rule["expr"]), scrapes.before, scrapes.now)
    }
    assert {"BrokerCoreListingsFail", "BrokerCorePluginFails", "BrokerCorePluginLies"} <= fired
    assert "BrokerCoreCertificateExpires" not in fired
    assert "BrokerCoreDown" not in fired


def test_the_readme_names_both_files_and_its_configuration_is_one() -> None:
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for file in EXAMPLE.iterdir():
        assert file.name == "README.md" or f"`{file.name}`" in readme
    (configuration,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert yaml.safe_load(configuration)["scrape_configs"][0]["job_name"] == "broker-core"
    assert Path(EXAMPLE / yaml.safe_load(configuration)["rule_files"][0]).exists()
