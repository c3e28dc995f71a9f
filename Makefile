# The doors of the house. Everything runs in a private .venv, made once from the lock files.
PYTHON ?= python3
UV ?= uv
BIN := .venv/bin
PIP := PIP_USER=0 $(BIN)/python -m pip --disable-pip-version-check --quiet --no-input
# Flags of the test run, for instance: make test PYTEST="tests/store -x"
PYTEST ?=
# Names or areas of mutants, for instance: make mutants MUTANTS=crash
MUTANTS ?=
LOCK := $(UV) pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-header --quiet --upgrade

.PHONY: demo test soak mutants fuzz check lint format docs bench bench-attribution bench-panel bench-substrates peers real-llm viewer panel lock clean

demo: .venv/ready   ## a minute's tour: record, replay, fork
	@$(BIN)/python examples/demo.py

test: .venv/ready   ## the whole suite
	@$(BIN)/python -m pytest -q -r fEs -n auto --dist worksteal $(PYTEST)

soak: .venv/ready   ## the long forms of the tests that have one: an hour, or WORLDLINE_SOAK_SECONDS
	@WORLDLINE_SOAK=1 $(BIN)/python -m pytest -q -r fEs -n auto --dist worksteal $(PYTEST)

mutants: .venv/ready ## plant a fault for every promise and see its tests fail
	@$(BIN)/python -m tests.mutants $(MUTANTS)

fuzz: .venv-fuzz/ready ## bytes of all kinds on everything that parses: 5 minutes, or FUZZ_SECONDS (FUZZ="rows sse")
	@.venv-fuzz/bin/python -m tests.fuzz $(FUZZ)

check: lint panel test    ## everything that has to hold before a change lands

lint: .venv/ready   ## what `check` holds beside the tests
	@$(BIN)/python -m checks

format: .venv/ready ## format the code in place
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .

docs: .venv/ready   ## regenerate the generated pages
	@$(BIN)/python -m checks.cli_reference

bench: .venv-bench/ready ## the figures of the documentation, measured here (BENCH=--quick, --only NAME, --write ...)
	@.venv-bench/bin/python -m benchmarks $(BENCH)

bench-attribution: .venv/ready ## planted faults of known truth: how often they are found (BENCH="--full --write")
	@$(if $(wildcard .venv-peers/ready),.venv-peers/bin,$(BIN))/python -m benchmarks.attribution $(BENCH)

peers: .venv-peers/ready ## the packages that bench-attribution compares with, once (PYTHON=python3.12 or newer)

real-llm: .venv-llm/ready ## a small real model on this processor: record it, fork it, find a planted fault (370 MB, once)
	@.venv-llm/bin/python examples/real_llm.py

bench-panel: .venv/ready ## the panel against its budgets, in Chromium (BENCH=--quick, --write)
	@$(BIN)/python -m benchmarks.panel $(BENCH)

bench-substrates: .venv/ready ## snapshots and forks of 20,000 files and of 100 MB of memory (BENCH=--quick, --write)
	@$(BIN)/python -m benchmarks.substrates $(BENCH)

viewer: viewer/node_modules/ready ## build the panel's page anew (needs node)
	@npm --prefix viewer run --silent build

panel: viewer/node_modules/ready  ## check the panel: types, tests, and that the committed page is what its sources make
	@npm --prefix viewer run --silent formatted
	@npm --prefix viewer run --silent types
	@npm --prefix viewer run --silent test
	@npm --prefix viewer run --silent check

lock:               ## resolve the lock files anew (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock: uv not found: install it, or say UV=/path/to/uv" >&2; exit 1; }
	@$(LOCK) --all-extras --group dev --output-file requirements/dev.txt
	@$(LOCK) --constraints requirements/dev.txt --output-file requirements/core.txt
	@$(LOCK) --constraints requirements/dev.txt --group bench --output-file requirements/bench.txt
	@$(LOCK) --constraints requirements/dev.txt --group fuzz --output-file requirements/fuzz.txt
	@$(LOCK) --constraints requirements/dev.txt --group llm --output-file requirements/llm.txt
	@$(subst 3.11,3.12,$(LOCK)) --group peers --output-file requirements/peers.txt

clean:              ## remove what these targets made
	@rm -rf viewer/node_modules .venv .venv-bench .venv-fuzz .venv-llm .venv-peers .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
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
	@$(BIN)/python -m compileall -q -j 0 .venv/lib
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# What the product is measured against, and the fuzzer, have environments of their own: none of it comes near the tests.
.venv-%/ready: pyproject.toml requirements/%.txt
	@echo "installing into .venv-$* (once)"
	@$(PYTHON) -m venv --clear .venv-$*
	@PIP_USER=0 .venv-$*/bin/python -m pip --disable-pip-version-check --quiet --no-input install --no-compile \
		--require-hashes -r requirements/$*.txt
	@PIP_USER=0 .venv-$*/bin/python -m pip --disable-pip-version-check --quiet --no-input install --no-deps \
		--no-build-isolation --editable .
	@.venv-$*/bin/python -m checks.licences requirements/$*.txt
	@touch $@

.venv-peers/ready: | python-3.12
.PHONY: python-3.12
python-3.12:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || \
		{ echo "make: tracefork needs Python 3.12: say PYTHON=/path/to/python3.12" >&2; exit 1; }

viewer/node_modules/ready: viewer/package-lock.json
	@command -v npm >/dev/null || { echo "make: npm not found: install node 20.19 or newer" >&2; exit 1; }
	@echo "installing into viewer/node_modules (once)"
	@npm --prefix viewer ci --loglevel error --no-audit --no-fund --fetch-retries=6 >/dev/null
	@touch $@
