from __future__ import annotations

from broker_core.cli.help_examples import examples


def test_each_example_is_a_paragraph_and_no_markup() -> None:
    assert examples("# as json", "broker-core list a/b --pattern 'a/b/[x]+'") == (
        "[bold]Examples[/bold]\n\n[dim]# as json[/dim]\n\nbroker-core list a/b --pattern 'a/b/\\[x]+'"
    )
