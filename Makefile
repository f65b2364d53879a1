# Each target makes its own prerequisites. `make` alone lists the targets.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.made-from-lock
TEST_STAMP := .venv/.ready-to-test
# Without compiled files each program that the tests start compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup wheels run check unit test interop differential fuzz bench bench-explorer bench-growth bench-kafka bench-postgres bench-spark bench-watch docs lint types format proto kafka-tables lock statements ways mutants clean-setup

help:
	@echo "make run      serve a demo catalogue on loopback"
	@echo "make check    lint, types and unit tests, in a minute and a half: before each commit"
	@echo "make test     all tests but those of make interop;  make unit: those that start no program"
	@echo "make interop  tests against a real broker and its official clients (JDK, Maven, Go, npm), and long ones"
	@echo "make fuzz     Kafka's messages against libFuzzer, for a minute"
	@echo "make differential  random requests to this tree and to another one; ARGS=\"--against FOLDER --seed 2\""
	@echo "make bench    the tables of speeds (BENCH_PEER=1: with the real broker);  make bench-postgres: one of them"
	@echo "make bench-explorer  figures of the page in Chromium over a million topics, held to milliseconds: on an idle machine"
	@echo "make bench-growth  time and memory from ten thousand to ten million topics; ARGS=\"--sizes 10000,1000000\""
	@echo "make bench-watch  updates of topic list watchers; ARGS=\"--watchers 10000\""
	@echo "make bench-kafka  listings of Kafka clients; ARGS=\"--peer 127.0.0.1:9092\" for a real broker beside it"
	@echo "make bench-spark  time and memory of a batch of 5 million topics and 1,020 patterns, and speed of serving"
	@echo "make docs     the documentation, into docs/_build/html"
	@echo "make lint     style, types, import arrows, spelling;  make format mends what can be"
	@echo "make statements  how large the tree is; ARGS=FOLDER for another one"
	@echo "make ways     modules that some requests enter, and calls up the layers; ARGS=--names shows them"
	@echo "make mutants  faults that no test finds; ARGS=\"--count 20 broker_core/names/topic_name.py\""
	@echo "make wheels   wheels and source distributions of all four, into dist/"
	@echo "make setup    .venv with everything of the lock;  make lock, make proto and make kafka-tables regenerate"

setup: $(STAMP)

# Keyed on the lock and on pyproject.toml: a change of either updates the environment in place.
$(STAMP): requirements/dev.txt requirements/uv.txt pyproject.toml scripts/setup.sh scripts/common.sh plugins/explorer/pyproject.toml plugins/postgres/pyproject.toml plugins/spark/pyproject.toml
	@PYTHON="$(PYTHON)" scripts/setup.sh
	@touch $@

# A PostgreSQL server, a JRE and PySpark: large, so `make run` does not install them.
$(TEST_STAMP): $(STAMP) requirements/batch.txt scripts/setup-test.sh
	@scripts/setup-test.sh
	@touch $@

# With the build backend of the lock, so that pip fetches nothing.
wheels: $(STAMP)
	@rm -rf dist
	@for project in . plugins/explorer plugins/postgres plugins/spark; do \
		(cd $$project && "$(CURDIR)/$(BIN)/python" -m hatchling build -d "$(CURDIR)/dist") || exit 1; \
	done

run: $(STAMP)
	@$(BIN)/broker-core demo

# Side by side: mypy without its cache takes half a minute of one processor.
check: $(TEST_STAMP)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint unit

# Four processes, since some tests wait; with a fifth of the random examples of `make test`, and without those that are
# tried in each version of each message.
unit: $(STAMP)
	$(BIN)/pytest --unit -m "not interop and not long and not many" --processes 4 -q $(ARGS)

# Five processes: tests wait for servers, and four of them used 1.3 of two cores; with many more a slow machine keeps
# bounds of time badly. Files are taken in the order of tests/conftest.py, long ones first.
# `make test ARGS="-k permits --processes 0"` passes options on.
test: $(TEST_STAMP)
	$(BIN)/pytest -m "not interop and not long" --processes 5 $(ARGS)

# Three processes, since scenes wait for their brokers. Scenes are a run of their own: some need a PySpark of their own,
# and the others import ours.
interop: $(TEST_STAMP)
	@scripts/setup-interop.sh
	KAFKA_CLUSTER="3 300 60" $(BIN)/pytest -m interop -rs --durations=15 --processes 3 tests/interop $(ARGS)
	SPARK_CHAIN_TURNS=25 KAFKA_EXAMPLES=100 KAFKA_PAGES=100 KAFKA_GATEWAY_PAGES=25 KAFKA_WINDOW=100 \
	  SCHEMATHESIS_EXAMPLES=200 $(BIN)/pytest -m "long or many" -rs --durations=15 --processes 3 \
	  $$(grep -rlE --include='test_*.py' 'mark\.(long|many)\b' tests)

# Whether another checkout with its .venv answers byte for byte as this one: `make differential ARGS="--against ../before"`.
differential: $(STAMP)
	$(BIN)/python -m tests.differential $(ARGS)

# Kafka's messages by libFuzzer; what it finds is kept in `.fuzz/`. `make fuzz ARGS="-max_total_time=3600"` goes on longer.
fuzz: $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/fuzz.txt
	@mkdir -p .fuzz/corpus
	$(BIN)/python -m tests.fuzz.kafka_messages -max_total_time=60 -max_len=1000 -rss_limit_mb=2000 -artifact_prefix=.fuzz/ $(ARGS) .fuzz/corpus

bench: $(TEST_STAMP)
	$(BIN)/python -m tests.benchmarks $(ARGS)
	$(BIN)/python -m tests.benchmarks.start
	$(BIN)/python -m tests.benchmarks.small_listings
	$(BIN)/python -m tests.benchmarks.postgres
	$(BIN)/python -m tests.benchmarks.growth
	$(BIN)/python -m tests.benchmarks.hostile
	$(BIN)/python -m tests.benchmarks.own_code
	$(BIN)/python -m tests.benchmarks.watchers
	$(BIN)/python -m tests.benchmarks.quotas
	$(BIN)/python -m tests.benchmarks.http_namespaces

# Watchers of topics: `make bench-watch ARGS="--watchers 10000 --patterns 40"`.
bench-watch: $(TEST_STAMP)
	$(BIN)/python -m tests.benchmarks.watchers $(ARGS)

# Its bounds are for two cores that do nothing else; `make interop` holds the same figures to those of other work in the
# same browser.
bench-explorer: $(TEST_STAMP)
	FIGURES=1 $(BIN)/pytest -q -s -n 0 tests/explorer/test_million.py tests/explorer/test_live_hour.py $(ARGS)

# Only the part with PostgreSQL: `make bench-postgres ARGS="--sizes 10000,5000000 --plot growth.svg"`.
bench-postgres: $(TEST_STAMP)
	$(BIN)/python -m tests.benchmarks.postgres $(ARGS)

# `--against FOLDER` measures another source tree in turns with this one; `--clean` removes the catalogues that were made.
bench-growth: $(TEST_STAMP)
	$(BIN)/python -m tests.benchmarks.growth $(ARGS)

# With an empty real broker beside it: `make bench-kafka ARGS="--peer 127.0.0.1:9092"`. The second takes some minutes;
# `.venv/bin/python -m tests.benchmarks.kafka.neighbours --scenes many` runs a part of it.
bench-kafka: $(STAMP)
	$(BIN)/python -m tests.benchmarks.kafka $(ARGS)
	$(BIN)/python -m tests.benchmarks.kafka.neighbours

bench-spark: $(TEST_STAMP)
	$(BIN)/python -m tests.benchmarks.spark $(ARGS)

docs: $(STAMP)
	$(BIN)/sphinx-build -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

lint: $(STAMP) types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/codespell

types: $(TEST_STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

proto: $(STAMP)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I . --python_out=. --mypy_out=. \
		broker_core/wire/pulsar/messages/pulsar_api.proto

kafka-tables: $(STAMP)
	$(BIN)/python scripts/kafka_tables.py

# Without imports, docstrings and generated files; `make statements ARGS="--by-package . ../other"`.
statements:
	@$(PYTHON) scripts/statements.py $(ARGS)

ways: $(STAMP)
	@$(BIN)/python -m scripts.ways $(ARGS)

# In a copy of the tree: `make mutants ARGS="--seed 2 broker_core/names/topic_name.py --tests tests/names"`.
mutants: $(STAMP)
	@$(BIN)/python scripts/mutants.py $(ARGS)

# No address of an index, no path of a machine: the lock must read the same wherever it was made.
LOCKING = env -u UV_FIND_LINKS -u PIP_FIND_LINKS $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

lock: .venv/bin/uv
	$(LOCKING) --group dev pyproject.toml -o requirements/dev.txt
	$(LOCKING) --group batch --constraint requirements/dev.txt -o requirements/batch.txt
	$(LOCKING) --group fuzz --constraint requirements/dev.txt -o requirements/fuzz.txt
	$(LOCKING) --group build --constraint requirements/dev.txt -o requirements/build.txt
	$(LOCKING) --group plugins --constraint requirements/dev.txt pyproject.toml -o requirements/run.txt
	grep -A 100 '^uv==' requirements/dev.txt | awk 'NR == 1 || /^ /{print; next} {exit}' > requirements/uv.txt

.venv/bin/uv: $(STAMP)
