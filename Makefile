# `make demo`, `make playground` and `make test` are all a newcomer types; each sets up what it needs and can be run again.
PYTHON ?= python3
PYTHON_OLDEST ?= python3.10
BIN := .venv/bin
# A process a core with a thread each is the fastest way through many small tests.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/pytest -n auto --maxprocesses 8 --dist loadfile
# Files are compiled when they are first imported: compiling all of them takes longer than the installation. What was
# compiled is kept, even where the environment forbids it: without, every process compiles every file again.
PIP_INSTALL = $(BIN)/pip install --no-compile --quiet --disable-pip-version-check
export PYTHONDONTWRITEBYTECODE :=

# Real data lies beside the checkout on some machines; elsewhere it is downloaded when asked for.
ifndef AHOP_DATA
ifneq ($(wildcard ../shared/data),)
export AHOP_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: setup demo test test-slow test-oldest test-mutants fuzz lint wheel docs linkcheck playground clean

setup: .venv/installed

.venv/installed: pyproject.toml paper/pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP_INSTALL) -c constraints.txt -e '.[dev]' -e paper
	touch $@

demo: setup
	$(BIN)/ahop-paper retrieval --quick --models m-hop,a-hop,b-hop --difficulty 0.4
	mkdir -p demo
	$(BIN)/ahop-paper retrieval --quick --models m-hop,a-hop,b-hop --data digits --difficulty 0.4 --picture demo/digits.png

# A page on this computer to see memories at work; Ctrl+C stops it.
playground: .venv/installed-for-playground
	$(BIN)/ahop playground

.venv/installed-for-playground: .venv/installed
	$(PIP_INSTALL) -c constraints.txt -e '.[dev,playground]' -e paper
	touch $@

test: setup
	$(PYTEST)

# What takes long, or needs a database, a cluster or a browser. Each law of the mathematics in it is tested in small by
# `make test` as well. What is skipped is said in the end, and why; with SLOW_MINUTES=40, whatever has not begun by then.
test-slow: .venv/installed-for-slow
	$(PYTEST) -m slow -rs $(if $(SLOW_MINUTES),--minutes $(SLOW_MINUTES))

.venv/installed-for-slow: .venv/installed
	$(PIP_INSTALL) -c constraints.txt -e '.[dev,slow]' -e paper
	touch $@

# The tests once more with the lowest versions that both pyproject.toml allow, on the oldest Python.
test-oldest: BIN := .venv-oldest/bin
test-oldest: .venv-oldest/installed
	$(PYTEST)

.venv-oldest/installed: pyproject.toml paper/pyproject.toml constraints-oldest.txt
	if $(PYTHON_OLDEST) -c ''; then $(PYTHON_OLDEST) -m venv .venv-oldest; \
	else echo '$(PYTHON_OLDEST) is not here: $(PYTHON) takes its place'; $(PYTHON) -m venv .venv-oldest; fi
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e '.[dev]' -e paper
	touch $@

# Mistakes that would let a figure be measured on what was learned from, one at a time: the tests must notice each.
test-mutants: setup
	$(BIN)/python -m tests.mutants.run

# Random calls of every kind against an oracle, hostile ones among them, until the time is over: MINUTES=60 SEED=2.
MINUTES ?= 10
SEED ?= 1
fuzz: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.run --minutes $(MINUTES) --seed $(SEED)

# The site, in build/site: every warning and every link that leads nowhere is an error. Its code runs in `make test`.
SPHINX = $(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --nitpicky --quiet docs

docs: .venv/installed-for-docs
	$(SPHINX) -b html build/site

# Asks the network whether links to other sites still lead somewhere.
linkcheck: .venv/installed-for-docs
	$(SPHINX) -b linkcheck build/links

.venv/installed-for-docs: .venv/installed
	$(PIP_INSTALL) -c constraints.txt -e '.[dev,docs]' -e paper
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What `pip install` takes, in dist/: the library, and the experiments beside it.
DIST ?= dist
wheel: setup
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(DIST) . ./paper

clean:
	rm -rf .venv .venv-oldest demo build dist
