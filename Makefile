# Everything a newcomer or a CI machine needs. `make` alone lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# The environment is ready when this file is newer than what it was made from.
READY := $(VENV)/.ready
SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt --group dev
	touch $@

$(VENV)/.built: $(READY) $(SOURCES) pyproject.toml
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation --editable .
	touch $@

.PHONY: setup
setup: $(VENV)/.built ## Make the environment and build the package into it

.PHONY: run
run: setup ## Set up and run the main job on a built-in corpus
	$(BIN)/lachesis run multi-agent --model llama-4-maverick --memory 2/6 --slo tight \
		--policy hbm-first --policy lachesis-deterministic

.PHONY: test
test: test-rust test-python test-docs ## Set up and pass all tests

.PHONY: test-rust
test-rust: ## Test the core crate
	cargo test --workspace --release --quiet

.PHONY: test-python
test-python: setup ## Test the package
	$(BIN)/python -m pytest tests

.PHONY: test-docs
test-docs: setup ## Run the examples in docstrings and documents
	$(BIN)/python -m pytest --doctest-modules --doctest-glob='*.md' -p no:cacheprovider \
		python/lachesis README.md docs

.PHONY: lint
lint: setup ## Formats, lints, types, stubs and layers
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --release -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest lachesis._engine --ignore-disjoint-bases
	$(BIN)/lint-imports

.PHONY: check
check: lint test ## Everything that must pass before a change lands

.PHONY: format
format: setup ## Format all code
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: bench
bench: setup ## Run the benchmarks
	cargo bench --workspace
	$(BIN)/python -m pytest benches --benchmark-only --benchmark-columns=min,median,rounds

.PHONY: bench-report
bench-report: setup ## Measure and print the tables of docs/benchmarks.md
	cargo bench -p lachesis-core --bench kv
	cargo build --release -p lachesis-core --example plain_replay
	$(BIN)/python benches/report.py

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(VENV) target out dist
	find python tests benches -name __pycache__ -prune -exec rm -rf {} +
