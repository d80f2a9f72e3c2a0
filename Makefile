# Two commands set everything up on a machine with Python 3.11 or newer: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test slow smoke learning faults fuzz lint docs bench-setup bench clean

demo: $(VENV)/.run
	$(BIN)/idrl demo

# The fast tier. Every test is in one tier: this, slow, learning or faults (tests/tiers.py). Workers
# begin with a share of neighbours each, which compile alike, and take over what others have left.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal --tier test

# What takes longer: pages in a browser, Ray, bsuite, all compositions, mistakes made on purpose.
slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal --tier slow

# A plain install in an empty environment: an agent on a task of every family, and every command.
smoke:
	$(PYTHON) tests/smoke.py

# Trains every agent as it is declared on a task that it is known to learn, and prints a table.
learning: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist load --maxschedchunk 1 --tier learning tests/learning

# Kills, damages and fuzzes real runs, and prints a table of what survived.
faults: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile --tier faults --cases 800 tests/faults

# Forges every field of every file of a run, a study and a model; `make faults` makes 500 of these.
fuzz: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --forged 5000 tests/faults/test_forged.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# What idrl is compared with, each in an environment of its own under .peers/ (gigabytes; PyTorch).
bench-setup: $(VENV)/.dev
	$(BIN)/python -m benchmarks.peers.install

# Speed beside those peers, to results/speed/; a library that is not installed is shown as a dash.
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.peers

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "idrl needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.run

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) build docs/_build .pytest_cache .mypy_cache .ruff_cache
