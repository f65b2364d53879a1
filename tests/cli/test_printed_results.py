from __future__ import annotations

import pytest
import typer

from broker_core.cli.printed_results import print_results, succeeded
from broker_core.client import ClientError
from broker_core.client.kafka import Results, TopicExistsException

ROWS: dict[str, int | ClientError] = {"a": 1, "b": TopicExistsException("there"), "c": 3}


def test_what_succeeded_is_printed_and_the_rest_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as raised:
        print_results(Results(ROWS), lambda item: f"did {item}", lambda item: f"topic {item}")
    assert raised.value.exit_code == 1
    out, err = capsys.readouterr()
    assert out == "did a\ndid c\n"
    assert err == "broker-core: topic b: TOPIC_ALREADY_EXISTS: there\n"


def test_an_empty_name_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    nothing: Results[str, int] = Results({"": TopicExistsException("there")})
    with pytest.raises(typer.Exit), succeeded(nothing) as values:
        assert values == {}
    assert capsys.readouterr().err == "broker-core: '': TOPIC_ALREADY_EXISTS: there\n"


def test_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    with succeeded({"a": 1}) as values:
        assert values == {"a": 1}
    print_results({"a": 1}, str)
    assert capsys.readouterr().out == "a\n"
