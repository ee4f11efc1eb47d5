# Two commands for a newcomer: `make demo` and `make test`. Both set up .venv first, if needed.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup demo bench test check fast coverage slow docs study results validate validate-quick gallery constraints notebooks test-lowest dist test-dist clean

help: ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

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
	@$(BIN)/python -m benchmarks --output docs/bench

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

slow: setup ## the tests that kill processes, train real encoders, start clusters or build wheels
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[ray]"
	@$(BIN)/pytest -m slow tests

LOWEST := .venv-lowest/bin
test-lowest: .venv-lowest/ready ## the fast tests with the lowest version of every requirement
	@OMP_NUM_THREADS=1 $(LOWEST)/pytest -n 2

.venv-lowest/ready: pyproject.toml constraints-lowest.txt
	@test -x $(LOWEST)/python || $(PYTHON) -m venv .venv-lowest
	@$(LOWEST)/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e ".[dev]"
	@touch $@

notebooks: setup ## run the notebooks of the site and save their outputs
	@$(BIN)/python scripts/docs/notebooks.py

docs: setup ## build the documentation site into docs/_build; warnings are errors
	@$(BIN)/sphinx-build -q -E -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

DATA ?= data
STUDY ?= runs-study
study: setup ## train and measure what docs/results.md reports; needs data/ and models/, takes hours
	@code=0; for grid in grids/study/*.toml; do \
	  nice -n 19 $(BIN)/faithmeter --import grids/study/once.py grid $$grid --data-dir $(DATA) -o $(STUDY) --workers 2 || code=1; \
	done; exit $$code

results: setup ## rebuild docs/results.md and its figures from the files in results/
	@$(BIN)/python scripts/results/page.py
	@PYTHONPATH=. $(BIN)/python scripts/results/figures.py docs

validate: setup ## check metrics and verdicts on models whose truth is known; needs ../shared, takes hours
	@$(BIN)/python -m validation.controls
	@$(BIN)/python -m validation.naopc
	@$(BIN)/python -m validation.ruler

validate-quick: setup ## the same tables from the committed outputs of the models, in minutes
	@$(BIN)/python -m validation.ruler --quick
	@$(BIN)/python -m validation.controls.page
	@$(BIN)/pytest -q tests/validation

GALLERY ?= runs runs-smoke $(STUDY)
gallery: setup ## write a site with the reports on the demo, the smoke grid and the study, as far as they were run
	@$(BIN)/faithmeter report $(wildcard $(GALLERY)) --gallery site

COMPILE = $(BIN)/uv pip compile pyproject.toml --python-version 3.11 --no-header --no-annotate --quiet
constraints: setup ## write the files of versions: constraints.txt keeps those that are there, constraints-lowest.txt is made anew
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(COMPILE) --all-extras --output-file constraints.txt
	@rm -f constraints-lowest.txt
	@echo "datasets<4.1" > .venv/hint.txt # uv would otherwise take the newest fsspec, and with it a newer datasets
	@$(COMPILE) --extra dev --resolution lowest-direct --constraint .venv/hint.txt --output-file constraints-lowest.txt
	@sed -i -E '/^(nvidia|cuda|triton)/d; s/^(torch==[0-9.]+)\+.*/\1/' constraints.txt constraints-lowest.txt

dist: setup ## build wheel and sdist into dist/
	@rm -rf dist
	@$(BIN)/python -m build --quiet

test-dist: dist ## build both, and run the tests of the sdist on the wheel, in a clean environment
	@FAITHMETER_DIST=$(CURDIR)/dist $(BIN)/pytest -m slow tests/slow/test_wheel.py

clean: ## remove what was made, except .venv and runs/
	rm -rf dist docs/_build .coverage* .hypothesis .pytest_cache .mypy_cache .ruff_cache
