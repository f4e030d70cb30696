# Two commands for a fresh machine with python3 (3.11 or later, with venv) and make:
#   make demo    fit, select and predict on real and on large synthetic data
#   make test    the whole test suite
# With a GPU: make test-gpu. For developers: make check (lint, types, floors), make lowest, make
# wheel, make cupy.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check

# The extra that matches the CUDA of the driver: cuda13 or cuda12.
CUDA ?= cuda13

.PHONY: demo test test-gpu check lowest cupy wheel clean

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

# With CUDA required: where it cannot be used this fails, and says why.
test-gpu: $(VENV)/.installed-test,$(CUDA)
	GPUCENTERS_REQUIRE_CUDA=1 $(BIN)/python -m pytest -q

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

# What the real CuPy can show without a GPU: the names we use, the kernels compiled, the errors.
cupy:
	$(PYTHON) -m venv --clear .venv-cupy
	.venv-cupy/bin/python $(PIP) install --quiet --editable '.[test]' cupy-$(CUDA:=x) $(NVRTC_$(CUDA))
	GPUCENTERS_REQUIRE_CUPY=1 .venv-cupy/bin/python -m pytest -q tests/test_real_cupy.py \
		tests/fake_cupy/test_fake_names.py

NVRTC_cuda13 := nvidia-cuda-nvrtc
NVRTC_cuda12 := nvidia-cuda-nvrtc-cu12

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
	rm -rf .venv .venv-lowest .venv-wheel .venv-cupy dist
