# `make` on a machine with Python 3.11 or newer, gcc and make sets everything up and works.

VENV ?= .venv
export UV_COMPILE_BYTECODE = 1
# Without compiled sources each process compiles all of them for itself, in 8 processor seconds, and
# `make atlas` starts some ten. Containers often set the variable.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
STAMP := $(VENV)/.installed
CHECKS := $(VENV)/.installed-checks
RESULTS ?= attlas-results
OUT ?= atlas.html
AUDIT ?= audit.html
NEWEST ?= .cache/newest
# The newest versions of some packages need a newer Python than the lock is for.
NEWEST_PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 $(PYTHON); do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
UV_NEWEST = VIRTUAL_ENV=$(NEWEST)/venv $(NEWEST)/venv/bin/uv pip
TESTS ?=
SECONDS ?= 60
SEED ?=
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: atlas test test-thorough test-torch test-newest fuzz check lint docs bench clean lock publish publish-strengths help

help:
	@echo "make atlas   run the claims and the quick experiments, write $(OUT) and the pages beside it"
	@echo "make test    run the tests and the examples of the documentation"
	@echo "make test-thorough  the tests that take seconds each; make test leaves them out"
	@echo "make test-torch  the tests that need torch and transformers (installs them)"
	@echo "make fuzz    read spoilt files for SECONDS=60 of the processor, at a new SEED each day"
	@echo "make test-newest  the tests with the newest versions of all dependencies; reports, blocks nothing"
	@echo "make check   lint, types, layers, then all tests"
	@echo "make docs    build the site in docs/_build/html: documentation, atlas and explorer under one bar"
	@echo "make bench   time attlas beside its peers (installs torch, transformers, cvxpy, five other solvers and cma), write docs/benchmarks.md"
	@echo "make clean   remove what make built; results stay"

# Where there is no page yet, a first one, marked as such, shows the published records and what is
# there, without figures, while the rest runs.
# The report is written whatever came out; a failed cell or an unexpected verdict then fails make.
# The audit, which leaves a core idle for much of its time, runs beside the claims.
atlas: $(STAMP)
	@status=0; set -x; \
	test -e $(OUT) || $(BIN)/attlas --results $(RESULTS) report --first --out $(OUT) || status=$$?; \
	$(BIN)/attlas --results $(RESULTS) run all --scale quick || status=$$?; \
	$(BIN)/attlas --results $(RESULTS) audit --level data --out $(AUDIT) & audit=$$!; \
	$(BIN)/attlas --results $(RESULTS) check --challenge 1 --effort 0.05 || status=$$?; \
	wait $$audit || status=$$?; \
	$(BIN)/attlas --results $(RESULTS) report --out $(OUT) || status=$$?; \
	exit $$status

test: $(STAMP)
	$(PYTEST)

# What is marked as thorough: most parts of the claims at other seeds, and tests of seconds each.
test-thorough: $(STAMP)
	$(PYTEST) -m thorough

# Readers of files that others write, on inputs that nobody has tried; what goes wrong is named, and
# stays in tests/fuzz for `make test`.
fuzz: $(STAMP)
	$(BIN)/python tests/fuzz_readers.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# The models of every architecture beside transformers, and the bridge to PyTorch.
test-torch: $(STAMP)
	$(BIN)/python -m pip install -q torch==2.13.0
	$(BIN)/python -m pip install -q 'transformers>=5.20' 'accelerate>=1.10' 'safetensors>=0.6' 'peft>=0.19'
	$(PYTEST) -m "" tests/transformers_bridge tests/torch_bridge tests/capture tests/audit/captured

# An environment of its own with the newest versions that pyproject.toml admits today. What differs
# from the lock and what fails is reported, also in $(NEWEST)/report.txt; it blocks nothing, also
# where the newest versions cannot be resolved or installed.
test-newest:
	@test -n "$(NEWEST_PYTHON)" || { echo "no Python 3.11 or newer found: install one or say NEWEST_PYTHON=..." >&2; exit 2; }
	@mkdir -p $(NEWEST)
	@set -x; { test -x $(NEWEST)/venv/bin/python || $(NEWEST_PYTHON) -m venv $(NEWEST)/venv; } \
	&& $(NEWEST)/venv/bin/python -m pip install -q --require-hashes -r requirements/installer.txt \
	&& $(UV_NEWEST) compile pyproject.toml --extra all --group test --upgrade --no-annotate \
		--no-header --no-emit-index-url --no-emit-find-links -q -o $(NEWEST)/lock.txt \
	&& $(UV_NEWEST) install -q -r $(NEWEST)/lock.txt \
	&& $(UV_NEWEST) install -q --no-deps -e . \
	|| { set +x; echo "the newest versions could not be resolved or installed, see above: no test was run" \
		| tee $(NEWEST)/report.txt; exit 0; }; set +x; \
	for lock in requirements/lock.txt $(NEWEST)/lock.txt; do \
		sed -n 's/^\([A-Za-z0-9._-]*==[^ ;\\]*\).*/\1/p' $$lock | sort > $(NEWEST)/$$(echo $$lock | tr / _); done; \
	status=0; $(NEWEST)/venv/bin/python -m pytest -m "" -n 2 --dist worksteal -q $(TESTS) \
		> $(NEWEST)/tests.txt 2>&1 || status=$$?; \
	{ $(NEWEST)/venv/bin/python --version; echo "not in the lock:"; \
	comm -13 $(NEWEST)/requirements_lock.txt $(NEWEST)/$$(echo $(NEWEST)/lock.txt | tr / _); \
	grep -E '^(FAILED|ERROR)|(passed|failed|error).* in ' $(NEWEST)/tests.txt; \
	echo "the newest versions: the tests ended with $$status"; } | tee $(NEWEST)/report.txt

lint: $(CHECKS)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

check: lint test test-thorough

# API pages from docstrings, papers and errata from the claims, tutorials executed, and the atlas of
# $(RESULTS) and the published records beside them; warnings are errors.
docs: $(STAMP)
	$(BIN)/python -m pip install -q -e '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -j 2 -b html -d docs/_build/pages docs docs/_build/html
	$(BIN)/python -m pytest tests/test_documentation.py

bench: $(STAMP)
	$(BIN)/python -m pip install -q torch==2.13.0 'transformers>=5.20' 'cvxpy>=1.6' 'daqp>=0.7' 'cma>=4.0' 'osqp>=1.0' 'piqp>=0.6' 'proxsuite>=0.7' 'scs>=3.2'
	$(BIN)/python -m benchmarks; status=$$?; \
	$(BIN)/python -m benchmarks.page docs/benchmarks.md; exit $$status

# The lock holds the extra `all`, with hashes for every platform; uv installs it in seconds, pip
# where uv cannot.
$(STAMP): requirements/lock.txt requirements/installer.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer found: install one or say PYTHON=..." >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/installer.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --require-hashes -r requirements/lock.txt \
		|| $(BIN)/python -m pip install -q --require-hashes -r requirements/lock.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --no-deps -e . \
		|| $(BIN)/python -m pip install -q --no-deps -e .
	touch $@

# What only `make lint` needs: 315 MB beside 1.1 GB.
$(CHECKS): $(STAMP) requirements/check.txt
	$(BIN)/uv pip install -q -p $(BIN)/python --require-hashes -r requirements/check.txt \
		|| $(BIN)/python -m pip install -q --require-hashes -r requirements/check.txt
	touch $@

# The newest versions that pyproject.toml admits, with hashes, for Python 3.11 and newer.
COMPILE = $(BIN)/uv pip compile --universal --fork-strategy fewest --python-version 3.11 \
	--generate-hashes --no-header --upgrade --no-annotate --no-emit-index-url \
	--no-emit-find-links -q
lock: $(STAMP)
	$(COMPILE) pyproject.toml --extra all --group test -o requirements/lock.txt
	$(COMPILE) --group check -c requirements/lock.txt -o requirements/check.txt

# The records of paper scale that are in $(RESULTS), for everyone; commit records/ afterwards.
publish: $(STAMP)
	$(BIN)/python -c 'from attlas.experiments.published import publish; print(publish("$(RESULTS)"), "bytes")'

# How sharply each claim was tested, from the verdicts in $(RESULTS); README quotes the counts.
publish-strengths: $(STAMP)
	$(BIN)/python -c 'from attlas.experiments.strengths import publish_strengths; print(publish_strengths("$(RESULTS)"))'

clean:
	rm -rf $(VENV) .cache build dist .ruff_cache .pytest_cache atlas.html atlas
