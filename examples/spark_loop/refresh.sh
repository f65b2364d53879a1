#!/bin/sh
# One turn of the loop: learn what the broker is asked, precompute the answers, publish them, clean up.
# Settings come from the file that the broker has too. Safe to run at any time and again after any failure.
set -eu
config=${1:?usage: refresh.sh broker-core.toml CATALOGUE STORE [options of the build ...]}
catalogue=${2:?usage: refresh.sh broker-core.toml CATALOGUE STORE [options of the build ...]}
store=${3:?usage: refresh.sh broker-core.toml CATALOGUE STORE [options of the build ...]}
shift 3
patterns=${PATTERNS:-patterns.jsonl}

broker-core spark patterns export --config "$config" --output "$patterns"
# A broker that has just started knows few questions, or none. The build keeps those of earlier builds, has those of
# plugins.spark.always, and publishes nothing that lost too much: then its exit code, and the one of this script, is 3.
broker-core spark build --config "$config" --catalogue "$catalogue" --patterns "$patterns" --out "$store" \
    --incremental "$@"
broker-core spark gc --config "$config" --store "$store" --keep 3
