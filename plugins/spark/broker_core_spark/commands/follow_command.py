"""``broker-core spark follow``: give the changes of a table since the published generation to the brokers."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import examples, print_json, say
from broker_core.quantities import parse_duration
from broker_core_spark.commands.build_options import (
    ChangesOption,
    ConfOption,
    MasterOption,
    NamespaceOption,
    OutOption,
    WhereOption,
)
from broker_core_spark.commands.stop_signals import ended_by_signals
from broker_core_spark.commands.store_option import StoreOptions, chosen_options, parse_pairs

__all__ = ["EXAMPLES", "follow"]

EXAMPLES: Final = examples(
    "broker-core spark follow --catalogue table:lake.db.topics --out s3://listings/prod --every 30s",
)


def follow(
    *,
    catalogue: Annotated[
        str,
        typer.Option(
            "--catalogue",
            metavar="SOURCE",
            help="The table that the published generation is of: table:NAME, a .parquet file or folder.",
            show_default=False,
        ),
    ],
    out: OutOption,
    namespace: NamespaceOption = None,
    where: WhereOption = None,
    changes: ChangesOption = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="DURATION",
            help="Look again and again, with this time between two looks; by default once.",
            show_default=False,
        ),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    store_options: StoreOptions = None,
) -> None:
    """Look at the table of the published generation, and give its changes since to the brokers.

    A line of JSON is printed for each look. A table that cannot say what changed since is an error: build again. With
    --every, that ends the first look alone; later ones are tried again.
    """
    try:
        pause = None if every is None else parse_duration(every)
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint="--every") from None
    with ended_by_signals("spark follow"):
        from broker_core_spark.batch import check_catalogue, follow_table, spark_session
        from broker_core_spark.store import check_reached, open_store

        check_catalogue(catalogue, namespace=namespace, where=where, changes=changes)
        options = chosen_options(out, store_options)
        check_reached(open_store(out, options))
        looked = False
        with spark_session(
            master=master, conf=parse_pairs("--conf", conf), name="broker-core spark follow"
        ) as spark:
            while True:
                try:
                    look = follow_table(
                        spark,
                        catalogue=catalogue,
                        store=out,
                        namespace=namespace,
                        where=where,
                        changes=changes,
                        store_options=options,
                    )
                    print_json(
                        {
                            "generation": look.generation,
                            "look": look.number,
                            "changed": len(look.names),
                            "looked": look.looked.isoformat(),
                        }
                    )
                except BrokerCoreError as error:
                    if pause is None or not looked:
                        raise
                    say(f"spark follow: {error}")
                if pause is None:
                    return
                looked = True
                time.sleep(pause)
