# Two commands for a fresh machine with python3 (3.11 or later, with venv) and make:
#   make demo    fit, select and predict on real and on large synthetic data
#   make test    the whole test suite
# For developers: make check (lint, types, floors), make lowest, make wheel.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check

.PHONY: demo test check lowest wheel clean

# One venv for all; a stamp per set of extras, made anew when the dependencies change.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) install --quiet --editable '.[$*]'
	@touch $@

demo: $(VENV)/.installed-cli
	$(BIN)/python -m gpucenters demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The suite once more on the lowest versions that pyproject.toml promises.
lowest:
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python $(PIP) install --quiet --editable '.[test]' -c tests/lowest.txt
	.venv-lowest/bin/python -m pytest -q

# The wheel, alone in a clean venv without extras: a first fit from it, and then the demo.
wheel: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist .
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python $(PIP) install --quiet dist/*.whl
	cd dist && ../.venv-wheel/bin/python ../tests/first_fit.py
	.venv-wheel/bin/python $(PIP) install --quiet "$$(echo dist/*.whl)[cli]"
	cd dist && ../.venv-wheel/bin/gpucenters demo --device cpu

clean:
	rm -rf .venv .venv-lowest .venv-wheel dist
