# The commands of this project. All of them set up .venv in this folder first; they need only
# Python 3.11 or newer, make and git.

PYTHON ?= python3
PORT ?= 3000
PYTEST_ARGS ?=

BIN := .venv/bin
FLIGHTS := examples/flights
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo ui test check faults format bench docs-pictures clean chromium

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null \
	  || sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1: \2/p' $(MAKEFILE_LIST)

demo: .venv/.installed-demo ## Load the flights example through Dagster
	@$(BIN)/python $(FLIGHTS)/demo.py

ui: .venv/.installed-demo ## Open Dagster's UI on 127.0.0.1:PORT (3000); Ctrl-C ends it
	@$(BIN)/python $(FLIGHTS)/fetch.py
	@$(BIN)/python $(FLIGHTS)/ui.py --port $(PORT)

# The browser's driver keeps an event loop running, which Dagster's own tests can't share.
test: .venv/.installed-dev chromium ## Run every test
ifeq ($(PYTEST_ARGS),)
	$(BIN)/pytest -n 2 --ignore tests/ui
	$(BIN)/pytest tests/ui
else
	$(BIN)/pytest $(PYTEST_ARGS)
endif

# FAULTS=all lifts the sample; the page names the run only if every case has passed.
faults: .venv/.installed-dev ## Kill runs at every point, on every destination (an hour or more)
	FAULTS=all $(BIN)/pytest tests/faults -n 2 -q --timeout 3600 --junitxml .pytest_cache/faults.xml
	$(BIN)/python tests/faults/matrix.py .pytest_cache/faults.xml

check: .venv/.installed-dev ## Format, lint, types, import contracts, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/typos

format: .venv/.installed-dev ## Format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/.installed-dev ## Time loads beside hand-written scripts (BENCH="append scd2" for some)
	$(BIN)/python -m benchmarks.measure $(BENCH)

docs-pictures: .venv/.installed-dev chromium ## Take the pictures of docs/images again
	@$(BIN)/python $(FLIGHTS)/demo.py
	@$(BIN)/python docs/pictures.py

clean: ## Remove what the demo and the tests made; .venv stays
	rm -rf $(FLIGHTS)/lake $(FLIGHTS)/data $(FLIGHTS)/.dagster_home $(FLIGHTS)/.datacoolie .datacoolie
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf htmlcov .coverage .coverage.*

# Debian's python3 has no ensurepip without python3-venv; the pip that is there can step in.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "No '$(PYTHON)' found. Install Python 3.11 or newer, or run: make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; '$(PYTHON)' is $$($(PYTHON) -V). Run: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up .venv"
	@$(PYTHON) -m venv .venv >/dev/null 2>&1 \
	  || { $(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python $(BIN)/python install -q pip; } \
	  || { rm -rf .venv; echo "Could not make a virtual environment. On Debian: apt-get install python3-venv"; exit 1; }

.venv/.installed-demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing (a minute or two the first time)"
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[demo]'
	@touch $@

.venv/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing, with the tools for tests and checks (a few minutes the first time)"
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[demo,dev]'
	@touch .venv/.installed-demo $@

# The UI tests and the pictures need a browser; tests/ui says so where it is missing.
chromium:
	@if command -v chromium >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing chromium"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	elif [ "$$CI" = true ]; then echo "CI needs chromium for the UI tests: apt-get install chromium"; exit 1; \
	else echo "No chromium here, so the UI tests are skipped. To run them: apt-get install chromium"; fi
