from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from broker_core.cli.printed_output import print_json, print_lines, print_table, printable


def test_lines_are_utf8_and_as_they_are_outside_of_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    print_lines(["größe", "😀", "tab\tname"])
    print_lines([])
    assert capfd.readouterr().out == "größe\n😀\ntab\tname\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_whoever_has_read_enough_is_no_error_to_talk_about(unbuffered: str) -> None:
    program = (
        "import sys\n"
        "from broker_core.cli.exit_codes import exit_code_of\n"
        "from broker_core.cli.printed_output import print_lines\n"
        "sys.exit(exit_code_of(lambda: print_lines('x' * 50 for _ in range(400_000)), debug=False))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"x" * 50 + b"\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_the_locale_has_no_say() -> None:
    program = (
        "from broker_core.cli.printed_output import print_json, print_lines\n"
        "print_lines(['gr\\xf6\\xdfe']); print_json(['\\xf6'])"
    )
    environment = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONPATH": ":".join(sys.path),
    }
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment, check=True)
    assert said.stdout.decode() == 'größe\n["ö"]\n'


def test_control_characters_are_shown_not_obeyed() -> None:
    assert printable("a\x1b[31mb\x07") == "a\\x1b[31mb\\x07"
    assert printable("größe 😀") == "größe 😀"


def test_json_is_one_document(capfd: pytest.CaptureFixture[str]) -> None:
    print_json({"a": ["ö", None, 1.5]})
    said = capfd.readouterr().out
    assert json.loads(said) == {"a": ["ö", None, 1.5]}
    assert said.count("\n") == 1


def test_a_table_has_all_cells_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    print_table(
        ["name", "count"], [["[bold]x[/bold]", 1], [None, "y\x1b"]], title="Things", caption="2 of them"
    )
    said = capfd.readouterr().out
    assert said.splitlines() == [
        "Things",
        "",
        " name             count",
        f" {'─' * 22}",
        " [bold]x[/bold]   1",
        "                  y\\x1b",
        "",
        "2 of them",
    ]


def test_cells_are_aligned_whatever_they_have(capfd: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300
    print_table(["", ""], [["größe", 1], ["two\n日本", long], [True, False]])
    print_table(["a", "b"], [])
    said = capfd.readouterr().out.splitlines()
    assert said == [
        "",
        " größe   1",
        f" two     {long}",
        " 日本",
        " yes     no",
        "",
        "",
        " a   b",
        " ─────",
        "",
    ]


def test_a_terminal_folds_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    print_table(["topic", "id"], [["0123456789abcdef日本", "short"]])
    assert terminal.getvalue().splitlines()[3:-1] == [" 0123456789abcde   short", " f日本"]


def test_a_table_of_many_rows_has_no_object_of_rich_for_each() -> None:
    """Rich took eight seconds for a hundred thousand rows, and its tables are not even loaded."""
    program = (
        "import sys\n"
        "from broker_core.cli.printed_output import print_table\n"
        "print_table(['topic'], ([f'topic-{number}'] for number in range(1000)))\n"
        "sys.exit('rich' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert said.stdout.decode().splitlines()[-2].strip() == "topic-999"
