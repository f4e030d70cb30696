# Two commands for a fresh machine with python3 (3.11 or later, with venv) and make:
#   make demo    fit, select and predict on real and on large synthetic data
#   make test    the test suite
# With a GPU: make test-gpu. For developers, see CONTRIBUTING.md: make check, test-full, coverage,
# docs, attack, lowest, prerelease, cupy, torch, wheel, same-bits, image, locks.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check

# The extra that matches the CUDA of the driver: cuda13 or cuda12.
CUDA ?= cuda13

.PHONY: demo test test-full test-gpu coverage attack check docs lowest prerelease cupy torch torch-for-cpu \
	wheel same-bits image locks clean

# One venv for all; a stamp per set of extras, made anew when the dependencies change.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) install --quiet --editable '.[$*]'
	@touch $@

demo: $(VENV)/.installed-cli
	$(BIN)/python -m gpucenters demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n auto

# The full grids alone: each problem in each container, where `make test` rotates through them.
test-full: $(VENV)/.installed-test
	$(BIN)/python -m pytest -q -n auto -m full

# With CUDA required: where it cannot be used this fails, and says why.
test-gpu: $(VENV)/.installed-test,$(CUDA)
	GPUCENTERS_REQUIRE_CUDA=1 $(BIN)/python -m pytest -q

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n auto --cov --cov-report=term

# Programs that try to break the library: make attack ATTACK='l2 --seed 7 --problems 20000'
ATTACK ?=
attack: $(VENV)/.installed-test
	$(BIN)/python -m tests.attack $(ATTACK)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/numpydoc lint $$(git ls-files 'gpucenters/*.py')

# The guide and the reference, as docs/_build/html/index.html. Warnings are errors, as are links
# within them that lead nowhere. Needs no network. In a venv of its own: what its extra lacks is
# missing there, whatever the other targets have installed.
docs: .venv-docs/.installed
	.venv-docs/bin/python -m sphinx --builder html --fail-on-warning --keep-going docs docs/_build/html

.venv-docs/.installed: pyproject.toml
	$(PYTHON) -m venv --clear .venv-docs
	.venv-docs/bin/python $(PIP) install --quiet --editable '.[docs]'
	@touch $@

# The suite once more on the lowest versions that pyproject.toml promises.
lowest:
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python $(PIP) install --quiet --editable '.[test]' -c tests/lowest.txt
	.venv-lowest/bin/python -m pytest -q -n auto

# The core of the suite on the newest pre-releases, where the registry has them for this Python.
prerelease:
	$(PYTHON) -m venv --clear .venv-prerelease
	.venv-prerelease/bin/python $(PIP) install --quiet --pre --upgrade '.[test]' numpy scipy scikit-learn
	.venv-prerelease/bin/python -c "import numpy, scipy, sklearn; \
		print('numpy', numpy.__version__, 'scipy', scipy.__version__, 'scikit-learn', sklearn.__version__)"
	.venv-prerelease/bin/python -m pytest -q -n auto tests/test_exhaustive.py tests/test_threads.py \
		tests/test_statistics.py tests/test_sklearn.py

# What the real CuPy can show without a GPU: the names we use, the kernels compiled, the errors.
cupy:
	$(PYTHON) -m venv --clear .venv-cupy
	.venv-cupy/bin/python $(PIP) install --quiet --editable '.[test]' cupy-$(CUDA:=x) $(NVRTC_$(CUDA))
	GPUCENTERS_REQUIRE_CUPY=1 .venv-cupy/bin/python -m pytest -q tests/test_real_cupy.py \
		tests/fake_cupy/test_fake_names.py

NVRTC_cuda13 := nvidia-cuda-nvrtc
NVRTC_cuda12 := nvidia-cuda-nvrtc-cu12

# Libraries that are too large for the other commands: PyTorch takes part in the suite as one more
# array library, on the CPU; JAX, Dask and others are refused by name. TORCH=torch takes the newest.
# Where the registry's wheel for Linux is a build for CUDA, this installs several GB: torch-for-cpu
# says whether it is one for the CPU.
TORCH ?= torch==2.13.0
torch-for-cpu:
	report=$$($(PYTHON) $(PIP) install --dry-run --quiet --ignore-installed --report - $(TORCH)) \
		&& ! echo "$$report" | grep -q '"nvidia'

torch:
	$(PYTHON) -m venv --clear .venv-torch
	.venv-torch/bin/python $(PIP) install --quiet --editable '.[test]' $(TORCH) \
		jax 'dask[dataframe]' sparse anndata
	.venv-torch/bin/python -m pytest -q -n auto tests/test_inputs.py tests/test_input_types.py
	.venv-torch/bin/python -m pytest -q -n auto -k torch tests

# The wheel, alone in a clean venv without extras: a first fit from it, and then the demo.
wheel: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist .
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python $(PIP) install --quiet dist/*.whl
	cd dist && ../.venv-wheel/bin/python ../tests/first_fit.py
	.venv-wheel/bin/python $(PIP) install --quiet "$$(echo dist/*.whl)[cli]"
	cd dist && ../.venv-wheel/bin/gpucenters demo --device cpu

# The image, and what it must do. DEVICE=cuda13 or cuda12 brings CuPy, and RUN_FLAGS='--gpus all'
# lends it the GPUs; DOCKER=podman takes another engine.
DOCKER ?= docker
DEVICE ?= cpu
IMAGE := gpucenters:$(DEVICE)
image:
	$(DOCKER) build -f docker/Dockerfile --build-arg DEVICE=$(DEVICE) -t $(IMAGE) \
		--label org.opencontainers.image.version=$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml) \
		--label org.opencontainers.image.revision=$$(git rev-parse HEAD) $(BUILD_FLAGS) .
	DOCKER="$(DOCKER)" docker/smoke $(IMAGE) $(RUN_FLAGS)

# Versions and hashes of all that is in the image: the newest that pyproject.toml admits.
LOCK := .venv-locks/bin/uv pip compile --quiet --upgrade --generate-hashes --no-annotate \
	--python-version 3.13 --python-platform linux --custom-compile-command 'make locks'
LOCKS := docker/requirements
locks:
	$(PYTHON) -m venv --clear .venv-locks
	.venv-locks/bin/python $(PIP) install --quiet uv
	$(LOCK) --extra cli --extra plot --extra tables --extra anndata -o $(LOCKS)/cpu.txt pyproject.toml
	for cuda in cuda12 cuda13; do sed -n "s/^$$cuda = \[\"\(.*\)\"\]/\1/p" pyproject.toml \
		| $(LOCK) -c $(LOCKS)/cpu.txt --no-emit-package numpy -o $(LOCKS)/$$cuda.txt - || exit; done
	sed -n 's/^requires = \["\(.*\)"\]/\1/p' pyproject.toml | $(LOCK) -o $(LOCKS)/build.txt -

# Whether this tree gives the bits of another commit: make same-bits BASE=main
BASE ?= HEAD
same-bits: $(VENV)/.installed-test
	rm -rf .same-bits && git worktree prune && git worktree add --quiet --detach .same-bits $(BASE)
	$(BIN)/python tests/compare_bits.py .same-bits . ; status=$$? ; \
		git worktree remove --force .same-bits ; exit $$status

clean:
	rm -rf .venv .venv-docs .venv-lowest .venv-prerelease .venv-wheel .venv-cupy .venv-torch .venv-locks dist \
		docs/_build docs/reference/generated .coverage*
