# Two commands do all the set-up: `make demo` and `make test`. They need git, make, Python >= 3.10 with venv, and a
# package registry; everything they install goes into .venv and the user's cache folder.

PYTHON ?= python3
BIN := .venv/bin
S2S := $(BIN)/speech-to-speech

.PHONY: demo test check docs acceptance bench clean

demo: .venv/installed-local
	$(S2S) demo

test: .venv/installed-test
	HF_HUB_OFFLINE=1 $(S2S) download
	HF_HUB_OFFLINE=1 $(S2S) download tiny.en smollm2
	$(MAKE) check docs
	HF_HUB_OFFLINE=1 $(BIN)/python -m slipcover --source src/speech_to_speech --skip-covered -m pytest -q

check: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy

docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

acceptance: test
	HF_HUB_OFFLINE=1 $(S2S) download kokoro
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -q -m acceptance

bench: .venv/installed-local
	$(S2S) bench turn

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed; choose one with PYTHON=…")'
	$(PYTHON) -m venv .venv

.venv/installed-local: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[local]'
	touch $@

.venv/installed-docs: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

.venv/installed-test: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench,docs,kokoro,local,test]'
	touch $@ .venv/installed-docs .venv/installed-local

clean:
	rm -rf .venv build dist site src/*.egg-info
