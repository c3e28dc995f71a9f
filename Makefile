# The doors of the house. Everything runs in a private .venv, made once from the lock files.
PYTHON ?= python3
UV ?= uv
BIN := .venv/bin
PIP := PIP_USER=0 $(BIN)/python -m pip --disable-pip-version-check --quiet --no-input
# Flags of the test run, for instance: make test PYTEST="tests/store -x"
PYTEST ?=
LOCK := $(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-header --quiet --upgrade

.PHONY: demo test soak check lint format docs bench lock clean

demo: .venv/ready   ## a minute's tour: record, replay, fork
	@$(BIN)/python examples/demo.py

test: .venv/ready   ## the whole suite
	@$(BIN)/python -m pytest -q -r fEs -n auto $(PYTEST)

soak: .venv/ready   ## what needs a real gigabyte of disk
	@WORLDLINE_SOAK=1 $(BIN)/python -m pytest -q tests/store/test_bundle_large.py

check: lint test    ## everything that has to hold before a change lands

lint: .venv/ready   ## what `check` holds beside the tests
	@$(BIN)/python -m checks

format: .venv/ready ## format the code in place
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .

docs: .venv/ready   ## regenerate the generated pages
	@$(BIN)/python -m checks.cli_reference

bench: .venv/ready  ## the figures of the documentation, measured here
	@$(BIN)/python -m benchmarks

lock:               ## resolve the lock files anew (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock: uv not found: install it, or say UV=/path/to/uv" >&2; exit 1; }
	@$(LOCK) --all-extras --group dev --output-file requirements/dev.txt
	@$(LOCK) --constraints requirements/dev.txt --output-file requirements/core.txt

clean:              ## remove what these targets made
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --require-hashes: only the bytes that were locked. The project itself is linked in (editable), built by the locked back end.
.venv/ready: pyproject.toml requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: Python 3.11 or newer is needed, $(PYTHON) is older or missing: say PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "make: $(PYTHON) comes without venv and pip: install them (on Debian and Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	@echo "installing into .venv (once)"
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) install --no-compile --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
