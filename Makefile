# Every target sets up what it needs in .venv; the machine needs only make and Python 3.11 or newer.
#   make demo PYTHON=python3.13      another interpreter (after `make clean`, if .venv holds an older one)

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Tests run in so many processes side by side, each of which needs up to 2 GB.
WORKERS ?= 2
# They start hundreds of others, and each would have to compile the package anew if what it compiles were not kept.
unexport PYTHONDONTWRITEBYTECODE

# torch is a peer in the benchmarks if it can be had without gigabytes of CUDA libraries, which the plain package brings
# along on Linux. A CPU build is asked for by its local version; where pip finds none, torch's column stays empty.
# `make bench TORCH=torch` takes the plain package.
TORCH ?= torch==2.13.0+cpu

.PHONY: help demo test libraries doctest lint types format native bench accuracy docs clean
.NOTPARALLEL:

help:
	@echo "make demo     train a small network on handwritten digits, print its accuracy, write demo.png"
	@echo "make test     run the tests and the examples in the docstrings (ARGS='-k grad' selects some; WORKERS=8)"
	@echo "make libraries  run the tests of libraries with more of them: Diffrax, NumPyro, Haiku, ..."
	@echo "make doctest  run the examples in the docstrings only"
	@echo "make lint     mypy and ruff"
	@echo "make types    mypy"
	@echo "make format   let ruff sort imports and format the files"
	@echo "make native   build the native kernels again, in place (installing does it the first time)"
	@echo "make bench    measure purax beside jax, torch, numpy and autograd (ARGS=... is handed on)"
	@echo "make accuracy measure the error of every elementwise function, write docs/accuracy.md"
	@echo "make docs     build the documentation into site/"
	@echo "make clean    remove .venv and everything that was built"

demo: $(VENV)/.with-demo
	@$(BIN)/python examples/demo_digits.py $(ARGS)

test: $(VENV)/.with-dev,libraries
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --doctest-modules purax tests $(ARGS)

libraries: $(VENV)/.with-dev,libraries,more-libraries
	@ALL_EXAMPLES=1 $(BIN)/python -m pytest -n $(WORKERS) tests/libraries $(ARGS)

doctest: $(VENV)/.with-dev
	@$(BIN)/python -m pytest -q --doctest-modules purax $(ARGS)

lint: types
	@$(BIN)/python -m ruff check .

# NumPy's annotations are written for the Pythons that it supports, so that the one which is there is asked about.
types: $(VENV)/.with-dev
	@$(BIN)/python -m mypy --python-version $$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

format: $(VENV)/.with-dev
	@$(BIN)/python -m ruff check --quiet --fix --select I .
	@$(BIN)/python -m ruff format .

native: $(VENV)/.with-dev
	@$(BIN)/python setup.py --quiet build_ext --inplace

bench: $(VENV)/.with-bench $(VENV)/.tried-torch
	@$(BIN)/python -m bench $(ARGS)

accuracy: $(VENV)/.with-dev
	@$(BIN)/python tools/accuracy.py $(ARGS)

docs: $(VENV)/.with-docs
	@$(BIN)/python -m mkdocs --quiet build --strict
	@echo "documentation: site/index.html"

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
