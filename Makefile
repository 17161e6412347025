# Every target creates .venv and installs what it needs; nothing else has to be on the machine but Python and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := .ci/constraints.txt
# Three workers on two cores: most tests wait for others half of their time.
WORKERS ?= 3

# Images of containers often set this. Then each of the hundreds of processes that tests start compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check up bench sim soak docs site clean

help:
	@echo "make demo    three brokers, a pipeline on Spark, kills on both sides, an audit, a verdict"
	@echo "make test    the whole suite"
	@echo "make check   formatting, lint, types, layers, tidiness"
	@echo "make up      start a broker on port 9092 and stay"
	@echo "make bench   Strandline beside Apache Kafka, into docs/benchmarks"
	@echo "make sim     random simulated clusters under faults, for SIM_SECONDS"
	@echo "make soak    the long versions of the random tests"
	@echo "make site    build the documentation as a site, into build/site"
	@echo "make docs    regenerate docs/reference and the types of the blocking clients"

$(VENV)/.core: pyproject.toml $(CONSTRAINTS)
	@test -d $(VENV) || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing strandline"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e .
	@touch $@

$(VENV)/.demo: $(VENV)/.core
	@echo "installing Spark, a JDK and a client for the demo into $(VENV): about 660 MB to download, 1.2 GB on the disk"
	@.ci/pip_install $(BIN)/pip -c $(CONSTRAINTS) -e '.[spark]' confluent-kafka
	@touch $@

# Records are checked by compiled code where there is a compiler for it, and in Python otherwise.
$(VENV)/.kernel: $(VENV)/.core $(wildcard native/*.toml native/Cargo.lock native/src/*.rs)
	@if command -v cargo > /dev/null; then \
		echo "building the kernel"; \
		$(BIN)/pip install --quiet --disable-pip-version-check ./native \
			|| echo "the kernel could not be built: records are checked in Python"; \
	else echo "there is no Rust compiler: records are checked in Python"; fi
	@touch $@

$(VENV)/.dev: $(VENV)/.core $(VENV)/.kernel
	@echo "installing the test and check tools"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[dev]'
	@touch $@

demo: $(VENV)/.demo
	@$(BIN)/python examples/demo.py

up: $(VENV)/.core
	@$(BIN)/strandline up

check: $(VENV)/.dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q tests/tidy

test: $(VENV)/.dev
	@$(BIN)/python -m tests.oracle.fetch
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup tests --ignore tests/tidy

# make sim SIM_SECONDS=3600 searches for an hour; SIM_FIRST=1000 begins with other seeds.
SIM_SECONDS ?= 120
SIM_FIRST ?= 0
SIM_MUTANT_SECONDS ?= 10
sim: $(VENV)/.dev
	@$(BIN)/strandline sim run --seeds 1000000 --first $(SIM_FIRST) --seconds $(SIM_SECONDS) --workers $(WORKERS)
	@echo "switched-off safety rules that the same search finds:"
	@$(BIN)/python -m tests.sim.search_mutants --seconds $(SIM_MUTANT_SECONDS)
	@$(BIN)/python -m tests.sim.search_mutants --clients --seconds $(SIM_MUTANT_SECONDS)

soak: $(VENV)/.dev
	@$(BIN)/python -m tests.oracle.fetch --soak
	@STRANDLINE_SOAK=1 $(BIN)/python -m pytest -q tests/properties tests/sim tests/lab tests/security tests/mirror \
		tests/compat/test_acl_matrix.py tests/compat/test_lag_of_other_tools.py \
		tests/compat/test_faults.py tests/compat/test_fault_guide.py \
		tests/compat/test_alerts_of_disks_and_leaders.py tests/registry/test_clusters.py \
		tests/system/cluster/test_orderly_restarts.py tests/system/cluster/test_cut_links.py \
		tests/system/long_run tests/system/torture \
		tests/spark/test_exactly_once_kills.py tests/spark/test_audit_soak.py tests/spark/test_demo.py \
		tests/spark/test_pipeline_lakes.py tests/spark/test_worker_killed.py tests/spark/test_session.py \
		tests/spark/test_every_version.py tests/spark/test_other_versions.py tests/spark/test_secured.py \
		tests/spark/test_exactly_once_example.py tests/spark/test_first_pipeline.py

bench: $(VENV)/.dev
	@$(BIN)/python -m tests.oracle.fetch
	@$(BIN)/python -m bench.run $(BENCH_OPTIONS)

docs: $(VENV)/.dev
	@$(BIN)/python -m strandline.cli.main docs --write docs/reference
	@$(BIN)/python -m strandline.cli.main lab pages --write docs/reference
	@$(BIN)/python -m tests.tidy.client_keywords
	@$(BIN)/python -m tests.tidy.blocking_calls
	@$(BIN)/python -m tests.tidy.api_index
	@$(BIN)/python -m tests.tidy.adr_index

$(VENV)/.docs: $(VENV)/.core
	@echo "installing what builds the site"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[docs]'
	@touch $@

# Links and anchors that lead nowhere end the build.
site: $(VENV)/.docs
	@$(BIN)/python docs/site/build.py

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
