"""The table ``[plugins.spark]``: valid and refused settings."""

from __future__ import annotations

import pytest

from broker_core.plugins.load.plugin_options import UnusableTable, read_table
from broker_core_spark.settings import SparkSettings
from tests.support.narrowed import of_type


def test_a_store_is_all_that_is_needed() -> None:
    options = read_table({"store": "s3://bucket/listings"}, SparkSettings)
    assert options.settings == SparkSettings(store="s3://bucket/listings")
    # A failed answer passes to the next lister. Answers are verified as those of any plugin.
    assert options.on_failure == "next"
    assert options.verify_filtered == "always"


def test_quantities_are_written_as_everywhere() -> None:
    table = {"store": "x", "refresh": "500ms", "answers": "1MB", "deadline": "2s", "on_failure": "error"}
    options = read_table(table, SparkSettings)
    assert isinstance(options.settings, SparkSettings)
    assert (options.settings.refresh, options.settings.answers) == (0.5, 1024 * 1024)
    assert (options.deadline, options.on_failure, options.settings.on_failure) == (2.0, "error", "error")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "store: field required"),
        ({"store": ""}, "store: "),
        ({"store": "x", "stor": "y"}, "stor: unknown key, did you mean 'store'?"),
        ({"store": "x", "overlay_limit": -1}, "overlay_limit: "),
        ({"store": "x", "refresh": "soon"}, "refresh: 'soon' is not a duration"),
        ({"store": "x", "refresh": 0}, "refresh: "),
    ],
    ids=["none", "empty", "misspelt", "negative", "soon", "never"],
)
def test_what_cannot_be_meant_is_refused(table: dict[str, object], message: str) -> None:
    with pytest.raises(UnusableTable, match=message.replace("?", r"\?")):
        read_table(table, SparkSettings)


def test_options_of_a_bucket_are_texts_numbers_or_truths() -> None:
    options = read_table(
        {"store": "x", "store_options": {"a": "b", "allow_http": True, "n": 7}}, SparkSettings
    )
    assert of_type(options.settings, SparkSettings).store_options == {
        "a": "b",
        "allow_http": "true",
        "n": "7",
    }
    with pytest.raises(UnusableTable, match="store_options"):
        read_table({"store": "x", "store_options": {"a": [1]}}, SparkSettings)
