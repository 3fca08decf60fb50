# Two commands do everything: `make demo` and `make test`. Each sets up a virtual environment first.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help install demo test lint types format bench bench-quick clean

help:
	@echo "make demo     set up, train on the built-in data, evaluate, answer five sample texts"
	@echo "make test     set up and run the tests"
	@echo "make lint     ruff; make types: pyrefly; make format: rewrite the layout"
	@echo "make bench-quick  accuracy and ratios on the built-in data against the committed ones (minutes)"
	@echo "make bench    the benchmarks, results into benchmarks/results (hours); decaf.py and inception.py there take a study by name"

install: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install
	$(BIN)/deepxc demo

test: install
	$(BIN)/pytest -n auto

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: install
	$(BIN)/pyrefly check

bench: install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps libpecos==1.2.8
	for script in $(filter-out %report.py %contestants.py %workloads.py %/decaf.py %/inception.py %/quick.py,$(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script --write || exit 1; done

bench-quick: install
	$(BIN)/python benchmarks/quick.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis demo-model
