# `make demo` and `make test` are all a newcomer types; each sets up what it needs and can be run again.
PYTHON ?= python3
BIN := .venv/bin

# Real data lies beside the checkout on some machines; elsewhere it is downloaded when asked for.
ifndef AHOP_DATA
ifneq ($(wildcard ../shared/data),)
export AHOP_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: setup demo test lint clean

setup: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/ahop retrieval --quick --models m-hop,a-hop,b-hop --difficulty 0.4
	$(BIN)/ahop retrieval --quick --models m-hop,a-hop,b-hop --data digits --difficulty 0.4 --picture demo/digits.png

test: setup
	$(BIN)/pytest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv demo build dist
