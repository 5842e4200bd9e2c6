# Everything happens in a virtual environment inside the checkout; only Python >= 3.10 and make
# have to be there.
PYTHON ?= python3
CORES := $(shell getconf _NPROCESSORS_ONLN)
# One more than there are cores: many tests wait for programs or serial ports.
WORKERS ?= $(shell expr $(CORES) + 1)
FUZZ_SCALE ?= 1
FUZZ_SEED ?= 0
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# Python compiles the modules that are imported, far fewer than are installed.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --no-compile --progress-bar off --quiet
# uv takes a tenth of the time of pip, which stands in for it.
install = if [ -x $(BIN)/uv ]; then $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) && exit; \
	  echo 'uv could not install it, so pip does'; fi; $(PIP) $(1)
C_FILES := $(sort $(shell find firmware tinykernel/pieces benchmarks tests/programs -name '*.[ch]'))
BENCHMARKS := $(sort $(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-all test-newest test-oldest mutations fuzz check size format hooks bench marks site clean distclean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/runtime ## train on digits, export for a Cortex-M4, verify every score, report the memory
	$(BIN)/tinykernel demo

test: $(VENV)/$(if $(T),light,dev) ## run a few sharp tests of everything (T=tests/model/test_proof.py for some)
ifdef T
	$(BIN)/python -m pytest --quiet $(T) $(PYTEST_ARGS)
else
	@# Few of these wait, and a worker takes 20 s of a processor before its first test.
	$(BIN)/python -m pytest -n $(CORES) --dist worksteal -m quick $(PYTEST_ARGS)
endif

test-all: $(VENV)/dev ## run all tests (WORKERS=1 for one process)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

test-newest test-oldest: test-%: $(VENV)/dev
	.ci/beside $*

mutations: $(VENV)/dev ## change the code in thirty places, one at a time: do the tests notice?
	$(BIN)/python -m tests.mutations

fuzz: $(VENV)/dev ## damage files, run the C under sanitizers, random models (FUZZ_SCALE=0.01 for less)
	@$(PIP) 'atheris>=3' || echo 'no atheris for this Python: fuzzing without guidance by coverage'
	$(BIN)/python -m tests.fuzz --scale $(FUZZ_SCALE) --seed $(FUZZ_SEED) --workers $(WORKERS)

check: $(VENV)/dev ## lint, formatting and types of Python and C
	$(BIN)/ruff check .
	@# That text files have a named encoding is a preview of ruff; tests stay on one computer.
	$(BIN)/ruff check --preview --select PLW1514 tinykernel benchmarks examples firmware
	$(BIN)/ruff format --check .
	$(BIN)/mypy
ifneq ($(C_FILES),)
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)
	@if command -v cppcheck >/dev/null; then \
	  echo 'cppcheck firmware/boards; the tests analyse the runtime, with models around it'; \
	  cppcheck --quiet --language=c --std=c99 --enable=warning,style,performance,portability \
	    --inline-suppr --suppress=toomanyconfigs --suppress=missingIncludeSystem --suppress=unusedStructMember \
	    --error-exitcode=1 -I firmware $(filter firmware/boards/%,$(C_FILES)); \
	elif [ "$$TINYKERNEL_REQUIRE_TOOLS" = 1 ]; then \
	  echo "cppcheck is missing: apt-get install cppcheck" >&2; exit 1; \
	else \
	  echo "cppcheck is missing, so the C code was not analysed: apt-get install cppcheck"; \
	fi
endif

size: $(VENV)/light ## count code lines by folder, against the limits in pyproject.toml
	@$(BIN)/python .ci/size.py

format: $(VENV)/dev ## put Python and C into the project's format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
ifneq ($(C_FILES),)
	$(BIN)/clang-format -i $(C_FILES)
endif

hooks: $(VENV)/light ## let git commit check with ruff and clang-format what is staged
	ln -sf "$(CURDIR)/.ci/pre-commit" "$$(git rev-parse --git-path hooks)/pre-commit"

bench: $(VENV)/dev ## run every script in benchmarks/
	@set -e; for script in $(BENCHMARKS); do \
	  echo "$$script"; $(BIN)/python "$$script"; \
	done

marks: $(VENV)/dev ## train the tables that may not slide; fails where one fell (TINYKERNEL_DATA=DIR)
	$(BIN)/python benchmarks/marks.py

site: $(VENV)/docs ## build README, docs/ and the interface in Python as a site: build/site
	rm -rf build/site
	$(BIN)/python .ci/site.py build/pages
	$(BIN)/mkdocs build --quiet --strict

clean: ## remove caches and what building and testing left (keeps the virtual environment)
	rm -rf build dist demo demo.html .numba_cache .pycache .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name .git -prune -o -path ./$(VENV) -prune -o -name __pycache__ -type d \
	  -exec rm -rf {} +

distclean: clean ## as clean, and remove the virtual environment
	rm -rf $(VENV) .venv-newest .venv-oldest

# Each of these files stands for a state of the environment.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "$(PYTHON) is missing or older than 3.10: name another one, as in 'make PYTHON=python3.12'" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot create virtual environments: 'apt-get install python3-venv', or name another one, as in 'make PYTHON=python3.12'" >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# uv does not read the settings of pip: whoever has an index of their own stays with pip. So does
	@# who cannot get uv: it only installs faster.
	@$(BIN)/python -m pip config list | grep -q '\.index-url=' || $(PIP) uv || true
	@touch $@

$(VENV)/runtime: pyproject.toml $(VENV)/created
	@echo 'installing what tinykernel needs to run into $(VENV), about 1 GB'
	@$(call install,-e '.[boards]')
	@touch $@

$(VENV)/light: pyproject.toml $(VENV)/created
	@echo 'installing what most tests need into $(VENV), about 0.5 GB'
	@$(call install,-e '.[test]')
	@touch $@

$(VENV)/docs: pyproject.toml $(VENV)/runtime
	@$(call install,-e '.[docs]')
	@touch $@

# What the tests need holds what the demonstration needs.
$(VENV)/dev: pyproject.toml $(VENV)/created
	@echo 'installing what the tests need into $(VENV), about 1.5 GB'
	@$(call install,-e '.[dev]')
	@touch $(VENV)/runtime $(VENV)/light $@
