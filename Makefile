# Compaction Lab. `make help` lists what there is; `make lab` runs the main job in a fresh clone.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Public recordings and tables that some tests read, when they lie beside the checkout; without them those tests skip.
COMPACTION_LAB_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(COMPACTION_LAB_DATA),)
export COMPACTION_LAB_DATA
endif

.DEFAULT_GOAL := help
.PHONY: help lab install test test-llm check format notebooks bench oracles reports studies clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: $(VENV)/.installed ## the main job: the laptop catalog comparison, its table and its figures
	@$(BIN)/compaction-lab run experiment=laptop_catalog
	@$(BIN)/compaction-lab report laptop_catalog

install: $(VENV)/.installed-dev ## the virtual environment with everything that tests and checks need

test: $(VENV)/.installed-dev ## all tests, and the examples in docstrings
	@$(BIN)/python -m pytest $(ARGS)

test-llm: $(VENV)/.installed-dev ## tests with a real model: the endpoint in COMPACTION_LAB_LLM_BASE_URL and _MODEL, else a small one set up in .llm/
	@$(BIN)/python -m pytest tests/llm -m llm $(ARGS)

check: $(VENV)/.installed-dev ## format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(VENV)/.installed-dev ## put the code into the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

notebooks: $(VENV)/.installed-dev ## run every notebook from its paired text
	@$(BIN)/jupytext --quiet --to ipynb notebooks/*.py
	@$(BIN)/python -m pytest --nbmake --overwrite notebooks/*.ipynb

bench: $(VENV)/.installed-dev ## where the time goes, and our time beside Agent Framework's (half an hour; ARGS=--quick: a minute or two)
	@$(BIN)/python benchmarks/bench_replay.py
	@$(BIN)/python benchmarks/bench_agent_framework.py $(ARGS)
ifeq ($(findstring --quick,$(ARGS)),)
	@$(BIN)/python benchmarks/bench_long_session.py
	@$(BIN)/python benchmarks/bench_sweep.py
endif

oracles: $(VENV)/.installed-dev ## fuzz against the frameworks themselves, each in its own environment under .oracles/
	@$(BIN)/python oracles/run.py all --setup

REPORTS := laptop_catalog

reports: $(VENV)/.installed ## everything under reports/ made again, but for the published studies, which need their data
	@for name in $(REPORTS); do \
	  rm -rf reports/$$name && $(BIN)/compaction-lab run experiment=$$name --quiet && \
	  $(BIN)/compaction-lab report $$name --out reports/$$name --format png,svg,pdf || exit 1; \
	done

DATA ?= $(COMPACTION_LAB_DATA)/published

studies: $(VENV)/.installed ## reports/studies made again from the public data in DATA=DIR; what is absent is named
	@$(BIN)/compaction-lab run experiment=laptop_catalog --quiet
	@$(BIN)/compaction-lab study all --data $(DATA)

clean: ## remove the virtual environment and caches; runs stay
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Stamps: an environment is installed again only when pyproject.toml changed.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "Installing Compaction Lab into $(VENV) (once; a minute or two) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "Installing Compaction Lab with its tests and checks into $(VENV) (once; a minute or two) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,dev]"
	@touch $@ $(VENV)/.installed

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "make: no '$(PYTHON)' found. Install Python 3.11 or later, or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: '$(PYTHON)' is $$($(PYTHON) --version 2>&1); Compaction Lab needs Python 3.11 or later. Name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
