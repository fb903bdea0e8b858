# Each target does all its own set-up on a fresh clone. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
RUST_SOURCES := Cargo.toml $(shell find rust/unlost-core rust/unlost-py -name '*.rs' -o -name Cargo.toml)
export PYTHONDONTWRITEBYTECODE ?= 1

.PHONY: help build demo test test-long test-thorough test-with check bench bench-peers study docs screenshots fuzz fuzz-keep audit dist clean

help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1: \2/p' $(MAKEFILE_LIST)

build: $(VENV)/.built ## Make .venv and .venv/bin/unlost

$(VENV)/.runtime: constraints.txt scripts/need
	scripts/need python
	$(PYTHON) -m venv $(VENV)
	$(PIP) maturin aiohappyeyeballs alembic brotli click httptools jinja2 olefile protego prometheus_client pypdfium2 pyrage python-calamine rich sqlalchemy starlette uvicorn uvloop yarl
	touch $@

$(VENV)/.built: $(VENV)/.runtime $(RUST_SOURCES) pyproject.toml
	scripts/need rust
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	touch $@

$(VENV)/.tools: $(VENV)/.runtime requirements-dev.txt
	$(PIP) --requirement requirements-dev.txt
	touch $@

# Tools of other licences are only ever run as processes from an environment of their own.
NEIGHBOUR_PYTHON ?= $(PYTHON)
NEIGHBOURS := $(patsubst tests/external/%.txt,.neighbours/%/.installed,$(wildcard tests/external/*.txt))

.neighbours/%/.installed: tests/external/%.txt
	PYTHON=$(NEIGHBOUR_PYTHON) scripts/need python
	PYTHON=$(NEIGHBOUR_PYTHON) scripts/need headers
	$(NEIGHBOUR_PYTHON) -m venv .neighbours/$*
	.neighbours/$*/bin/pip install --quiet --disable-pip-version-check --requirement tests/external/$*.txt
	touch $@

# Those that only the comparison needs: the tests do without them.
PEERS := $(patsubst bench/peers/%.txt,.neighbours/%/.installed,$(wildcard bench/peers/*.txt))

$(PEERS): .neighbours/%/.installed: bench/peers/%.txt
	PYTHON=$(NEIGHBOUR_PYTHON) scripts/need python
	$(NEIGHBOUR_PYTHON) -m venv .neighbours/$*
	.neighbours/$*/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

demo: $(VENV)/.built .neighbours/pywb/.installed ## The whole story on a lost site, with three pywb: recovered, compared, shown in a page
	scripts/demo

# With bytecode: tests start thousands of processes, and each would compile all that it imports.
test: bytecode $(VENV)/.tools $(NEIGHBOURS) ## The tests
	scripts/need tools
	scripts/need browsers
	scripts/need java
	$(BIN)/python -m pytest -m "not long" --numprocesses 2 --dist loadfile $(PYTEST)

test-long: bytecode $(VENV)/.tools $(NEIGHBOURS) ## All tests, with many more random examples
	scripts/need tools
	scripts/need browsers
	scripts/need java
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest $(PYTEST)

test-thorough: $(VENV)/.built $(VENV)/.tools $(NEIGHBOURS) ## The tests with random examples, with fifteen times as many, one a core
	scripts/need tools
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m hypothesis --numprocesses auto $(PYTEST)

# Neighbours stay with the usual one: not all of them run with every Python that we are tested with.
test-with: ## The tests with another Python, in an environment of its own: make test-with PYTHON=python3.13
	scripts/need python
	$(MAKE) test NEIGHBOUR_PYTHON=python3 VENV=.venv-$$($(PYTHON) -c 'import sys; print(*sys.version_info[:2], sep=".")')

# Detects fuzz targets that no longer compile.
check: $(VENV)/.built $(VENV)/.tools ## Formatting, lints, types, the core's own tests, whether fuzz targets compile
	scripts/need lints
	cargo fmt --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	cargo test --quiet --package unlost-core
	cargo check --quiet --manifest-path rust/fuzz/Cargo.toml --no-default-features --target-dir target/fuzz
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

# An installed package has its bytecode, and start-up is measured: without it, every start compiles all that it imports.
.PHONY: bytecode
bytecode: $(VENV)/.built
	$(BIN)/python -m compileall -q src

bench: bytecode $(VENV)/.tools $(NEIGHBOURS) ## Speeds as ratios to a baseline of the same run
	LC_ALL=C $(BIN)/python -m bench.uri
	LC_ALL=C $(BIN)/python -m bench.startup
	LC_ALL=C $(BIN)/python -m bench.formats
	LC_ALL=C $(BIN)/python -m bench.linkformat
	LC_ALL=C $(BIN)/python -m bench.timemaps
	LC_ALL=C $(BIN)/python -m bench.warc
	LC_ALL=C $(BIN)/python -m bench.synth
	LC_ALL=C $(BIN)/python -m bench.lookup
	LC_ALL=C $(BIN)/python -m bench.holdings
	LC_ALL=C $(BIN)/python -m bench.profile
	LC_ALL=C $(BIN)/python -m bench.stats
	LC_ALL=C $(BIN)/python -m bench.filter
	LC_ALL=C $(BIN)/python -m bench.budget
	LC_ALL=C $(BIN)/python -m bench.scale
	LC_ALL=C $(BIN)/python -m bench.ageing
	LC_ALL=C $(BIN)/python -m bench.evaluate
	LC_ALL=C $(BIN)/python -m bench.aggregate
	LC_ALL=C $(BIN)/python -m bench.upstream
	LC_ALL=C $(BIN)/python -m bench.large_timemap
	LC_ALL=C $(BIN)/python -m bench.service
	LC_ALL=C $(BIN)/python -m bench.recover
	LC_ALL=C $(BIN)/python -m bench.jobs
	LC_ALL=C $(BIN)/python -m bench.pages_text
	LC_ALL=C $(BIN)/python -m bench.rewriting
	LC_ALL=C $(BIN)/python -m bench.compare
	LC_ALL=C $(BIN)/python -m bench.verdicts
	LC_ALL=C $(BIN)/python -m bench.page_quality
	LC_ALL=C $(BIN)/python -m bench.refresh_speed
	LC_ALL=C $(BIN)/python -m bench.refresh
	LC_ALL=C $(BIN)/python -m bench.vault
	LC_ALL=C $(BIN)/python -m bench.soak

bench-peers: bytecode $(VENV)/.tools $(NEIGHBOURS) $(PEERS) ## The same work by other tools, side by side; writes docs/peers.md
	scripts/need tools
	LC_ALL=C $(BIN)/python -m bench.peers
	$(BIN)/python -m bench.peers.page > docs/peers.md.new
	mv docs/peers.md.new docs/peers.md

bench-%: bytecode $(VENV)/.tools $(NEIGHBOURS) ## One of them: bench-holdings
	LC_ALL=C $(BIN)/python -m bench.$*

# Each chapter is a module of study/; docs/study.md is written from what they leave in study/results/.
study: bytecode $(VENV)/.tools ## Repeat the papers' experiments, and write docs/study.md
	for chapter in $$($(BIN)/python -c 'from study import CHAPTERS; print(*CHAPTERS)'); do $(BIN)/python -m study.$$chapter; done
	$(BIN)/python -m study.page

study-%: bytecode $(VENV)/.tools ## One chapter of it: study-policies
	$(BIN)/python -m study.$*
	$(BIN)/python -m study.page

# Wheels install it to share/man, as its folder says.
MAN_PAGE := packaging/data/share/man/man1/unlost.1

docs: $(VENV)/.built $(VENV)/.tools ## Regenerate the generated pages
	$(BIN)/python scripts/cli_reference.py > docs/cli.md.new
	mv docs/cli.md.new docs/cli.md
	$(BIN)/python -m scripts.man_page > $(MAN_PAGE).new
	mv $(MAN_PAGE).new $(MAN_PAGE)
	$(BIN)/python scripts/api_reference.py > docs/api.md.new
	mv docs/api.md.new docs/api.md
	$(BIN)/python scripts/package_graph.py > docs/images/packages.svg.new
	mv docs/images/packages.svg.new docs/images/packages.svg
	$(BIN)/python -m scripts.http_reference > docs/http.md.new
	mv docs/http.md.new docs/http.md
	$(BIN)/python -m scripts.claims > docs/claims.md.new
	mv docs/claims.md.new docs/claims.md
	$(BIN)/python -m scripts.claims --readme > README.md.new
	mv README.md.new README.md
	$(BIN)/python -m scripts.diagrams docs/images
	$(BIN)/python -m scripts.terminal_recording > docs/images/recording.svg.new
	mv docs/images/recording.svg.new docs/images/recording.svg
	$(BIN)/python -m scripts.licences > docs/dependencies.md.new
	mv docs/dependencies.md.new docs/dependencies.md

screenshots: $(VENV)/.built $(VENV)/.tools ## Retake the screenshots in docs/images
	$(BIN)/python scripts/screenshots.py docs/images

fuzz: ## Run each fuzz target for FUZZ_SECONDS (default 60), one a core
	scripts/fuzz

fuzz-keep: ## Minimise the fuzz corpora into rust/fuzz/kept
	scripts/fuzz --keep

audit: ## Check pinned dependencies for known vulnerabilities; needs the network
	scripts/audit

dist: $(VENV)/.built ## Wheel and source archive, checked, and tried with every Python from 3.11 that is here
	scripts/dist

clean: ## Remove everything that was built
	rm -rf $(VENV) .venv-* .neighbours target rust/fuzz/target rust/fuzz/grown rust/fuzz/found dist
