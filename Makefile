# Two commands for a newcomer: `make demo` and `make test`. Both set up .venv first, if needed.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup demo bench test check fast coverage slow study results wheel clean

help: ## show this
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/ready ## make .venv and install the package with the tested versions

.venv/ready: pyproject.toml constraints.txt
	@echo "setting up .venv (the first time takes a few minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: setup ## fine-tune the embedded model on generated stories, masked and plain, and compare
	@$(BIN)/faithmeter demo

bench: setup ## time faithmeter beside plain loops and other libraries: 20 minutes on two idle cores
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	@$(BIN)/faithmeter bench --output docs/bench

test: check fast ## ruff, mypy and the fast tests: what CI runs

check: setup
	@echo "ruff, mypy ..."
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

fast: setup
	@echo "tests, two at a time ..."
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

coverage: setup ## the fast tests with coverage, which takes half as long again
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --cov --cov-report=term:skip-covered --cov-fail-under=95

slow: setup ## the tests that kill processes, train real encoders or build wheels
	@$(BIN)/pytest -m slow tests

DATA ?= data
STUDY ?= runs-study
study: setup ## train and measure what docs/results.md reports; needs data/ and models/, takes hours
	@code=0; for grid in grids/study/*.toml; do \
	  nice -n 19 $(BIN)/faithmeter --import grids/study/once.py grid $$grid --data-dir $(DATA) -o $(STUDY) --workers 2 || code=1; \
	done; exit $$code

results: setup ## rebuild docs/results.md and its figures from the files in results/
	@$(BIN)/python scripts/results/page.py

wheel: setup ## build the wheel into dist/
	@$(BIN)/python -m build --wheel

clean: ## remove what was made, except .venv and runs/
	rm -rf dist .coverage* .hypothesis .pytest_cache .mypy_cache .ruff_cache
