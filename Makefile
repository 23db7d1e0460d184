# Every target sets up what it needs in .venv; the machine needs only make and Python 3.11 or newer.
#   make demo PYTHON=python3.13      another interpreter (after `make clean`, if .venv holds an older one)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Tests run in so many processes side by side, each of which needs up to 2 GB.
WORKERS ?= 2
# They start hundreds of others, and each would have to compile the package anew if what it compiles were not kept.
unexport PYTHONDONTWRITEBYTECODE

# What `make test` runs on if it is not the CPU, and which slices of the tests (tests/platforms.py).
PLATFORM ?=
SLICES ?=

# How long `make fuzz` looks for wrong programs, which random numbers it draws, and which of its generators run (all).
SECONDS ?= 60
SEED ?= 0
ONLY ?=

# torch is a peer in the benchmarks if it can be had without gigabytes of CUDA libraries, which the plain package brings
# along on Linux. A CPU build is asked for by its local version; where pip finds none, torch's column stays empty.
# `make bench TORCH=torch` takes the plain package.
TORCH ?= torch==2.13.0+cpu

.PHONY: browser explorer help demo test test-all fuzz libraries clusters doctest lint types stubs format native sanitize bench accuracy docs wheel clean
.NOTPARALLEL:

help:
	@echo "make demo     train a small network on handwritten digits, print its accuracy, write demo.png"
	@echo "make test     run the tests and the examples in the docstrings (ARGS='-k grad' selects some; WORKERS=8)"
	@echo "make test PLATFORM=cuda   run the tests that a GPU is tried by, in slices (SLICES='laws rules')"
	@echo "make test-all run all cases of all tests on every supported Python, with the oldest and the newest jaxlib"
	@echo "make fuzz     try random programs for SECONDS=60, drawn by SEED=0 (ONLY=random_programs,... picks generators; WORKERS=8)"
	@echo "make libraries  run the tests of libraries with more of them: Diffrax, NumPyro, Haiku, ..."
	@echo "make clusters  run groups of processes under Ray, Slurm and Open MPI, really started here"
	@echo "make doctest  run the examples in the docstrings only"
	@echo "make lint     mypy and ruff"
	@echo "make types    mypy over the package, pyright over the examples and the programs of the documents"
	@echo "make stubs    write what type checkers read of names that are made at run time"
	@echo "make format   let ruff sort imports and format the files"
	@echo "make native   build the native kernels again, in place (installing does it the first time)"
	@echo "make sanitize run tests on kernels and extensions that look for errors of memory and threads (ARGS=...)"
	@echo "make browser  try the page of the program explorer in Chromium"
	@echo "make explorer bundle the script of that page (needs node)"
	@echo "make bench    measure purax beside jax, torch, numpy and autograd (ARGS=... is handed on)"
	@echo "make accuracy measure the error of every elementwise function, write docs/accuracy.md"
	@echo "make docs     build the documentation into site/"
	@echo "make wheel    build a wheel in dist/ and try it in a clean environment (ARGS=--pure: of Python alone)"
	@echo "make clean    remove .venv and everything that was built"

demo: $(VENV)/.with-demo
	@$(BIN)/python examples/demo_digits.py $(ARGS)

# On another platform (PLATFORM=cuda), by slices of a few minutes each (SLICES='laws linear_algebra'; all by default).
test: $(VENV)/.with-dev,libraries
ifeq ($(PLATFORM),)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --doctest-modules purax tests $(ARGS)
else
	@$(BIN)/python tools/test_on_platform.py $(PLATFORM) --workers $(WORKERS) --slices '$(SLICES)' -- $(ARGS)
endif

# Every case of every test, on every Python and with the oldest and the newest engine that purax supports.
test-all:
	@$(PYTHON) tools/test_all.py $(ARGS)

fuzz: $(VENV)/.with-dev
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) --only '$(ONLY)' --workers $(WORKERS)

libraries: $(VENV)/.with-dev,libraries,more-libraries
	@ALL_EXAMPLES=1 $(BIN)/python -m pytest -n $(WORKERS) tests/libraries $(ARGS)

# Ray, Dask and joblib from the package index; Open MPI and Slurm where the machine has them (openmpi-bin, slurmctld, slurmd,
# munge). Not beside other tests: groups of processes start and die here.
clusters: $(VENV)/.with-dev,clusters
	@CLUSTERS=1 $(BIN)/python -m pytest tests/clusters $(ARGS)

doctest: $(VENV)/.with-dev
	@$(BIN)/python -m pytest -q --doctest-modules purax $(ARGS)

lint: types
	@$(BIN)/python -m ruff check .

# NumPy's annotations are written for the Pythons that it supports, so that the one which is there is asked about.
types: $(VENV)/.with-dev,types
	@$(BIN)/python -m mypy --python-version $$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	@$(BIN)/python tools/check_types.py

# What type checkers and editors read (tools/write_stubs.py).
stubs: $(VENV)/.with-dev
	@$(BIN)/python tools/write_stubs.py

format: $(VENV)/.with-dev
	@$(BIN)/python -m ruff check --quiet --fix --select I .
	@$(BIN)/python -m ruff format .

native: $(VENV)/.with-dev
	@$(BIN)/python setup.py --quiet build_ext --inplace

# In a folder of its own, so that the normal build stays.
sanitize: $(VENV)/.with-dev
	@ALL_CASES=1 $(BIN)/python tools/sanitize.py $(ARGS)

# The page of the explorer in a real browser; where there is no Chromium, the tests say so and are skipped.
browser: $(VENV)/.with-dev,browser
	@$(BIN)/python -m pytest -rs tests/explorer $(ARGS)

# The script of that page, which is committed: users need no node.
explorer:
	@cd tools/explorer && npm install --silent --no-package-lock --no-fund && node build.mjs

bench: $(VENV)/.with-bench $(VENV)/.tried-torch
	@$(BIN)/python -m bench $(ARGS)

accuracy: $(VENV)/.with-dev
	@$(BIN)/python tools/accuracy.py $(ARGS)

docs: $(VENV)/.with-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict --config-file mkdocs.zh.yml
	@$(BIN)/python -m tools.documentation.links site
	@echo "documentation: site/index.html"

wheel: $(VENV)/.with-release
	@$(BIN)/python tools/build_wheel.py $(ARGS)

clean:
	rm -rf $(VENV) build dist purax.egg-info purax/native/*.so purax/*/_*.so site demo.png bench/results/latest.* .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per extra: a target that was set up once starts at once, until pyproject.toml or setup.py changes.
$(VENV)/.with-%: pyproject.toml setup.py tools/setup_environment.py
	@$(PYTHON) tools/setup_environment.py $(VENV) -e '.[$*]'
	@touch $@

$(VENV)/.tried-torch: $(VENV)/.with-bench
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(PYTHON) tools/setup_environment.py $(VENV) --optional '$(TORCH)'
	@touch $@
