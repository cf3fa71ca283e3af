# Both targets set up everything they need in .venv on a machine that has Python 3.11 or newer, and make.

# An empty value is none: every process of the tests would compile the bot anew.
export PYTHONDONTWRITEBYTECODE :=

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Backends are large, so they are apart from what the tests need: 0.5 GB.
SUITE_VENV := .venv-suite
ARGS   ?=

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
# Installs in seconds what takes pip most of a minute, and looks at hashes as pip does. It knows nothing of pip's settings:
# where those name another registry, and wherever uv has no build, pip does it.
UV  := $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps

# Coverage is measured of what does no I/O: `[tool.coverage]` in pyproject.toml. Tracing makes tests almost twice as slow,
# so those are not traced that show something else (the whole bot, a database, a server), or repeat the same lines often.
TRACED_OF := $(patsubst %,tests/%.py,$(addprefix engine/test_,encoding jobs portable retry) \
               $(addprefix github/test_,check_runs limits limits_reported mentions pages sticky) \
               $(addprefix results/test_,compare identity manifest renames report report_annotations report_runs report_safe \
                                          report_summary))
UNTRACED  := $(addprefix tests/,app/doctor app/setup $(addprefix app/test_,gauges.py idle.py idle_requests.py \
                                          prefilter.py preload.py redelivery.py reload.py serve.py surface.py) \
               aws browser ci cli conversations core/test_http.py core/test_systemd.py core/untrusted deploy devices \
               effects handlers/dashboard handlers/operate lab sandbox signal timers web news/test_effects.py \
               news/test_render.py) $(wildcard tests/test_*.py) \
             $(sort $(wildcard $(addprefix tests/handlers/,test_*conversation.py */test_*conversation.py */test_effects.py)) \
                    $(addprefix tests/handlers/,device_tests/test_claims_at_scale.py device_tests/test_store.py mute \
                                                repository_file/test_many_files.py results/test_bucket_listings.py)) \
             $(filter-out $(TRACED_OF),$(wildcard $(addprefix tests/,engine/test_*.py github/test_*.py results/test_*.py))) \
             tests/results/formats
MARKED_ALONE = grep -F "pytest.mark.alone"
# Those of statements explain what others have collected, which only `make plans` lets them do.
ALONE     = $(filter-out $(if $(NIGHTJAR_STATEMENTS),,tests/test_plans.py),$(shell $(MARKED_ALONE) -rl --include="*.py" tests))
# The others run in one session, which collects them once and forks its processes (tests/forks.py). Those of robustness
# mostly wait, in three of them.
PYTEST   := scripts/in-memory $(BIN)/pytest -p tests.forks -m "not alone"
# Each night, CI runs all tests: tests/exhaustive.py says which ones these leave out.
EXHAUSTIVE ?= no
QUICK     = $(if $(filter no,$(EXHAUSTIVE)),--without-exhaustive)
TRACED    = $(patsubst %,--ignore=%,tests/robustness $(UNTRACED))
# Tests that failed run once again, alone: one that passes then is a fault of the test, which the log shows, but not of
# the change. Any other status than 1 says that not all tests ran.
AGAIN     = status=$$?; test $$status = 1 || exit $$status; $(PYTEST) $(QUICK) -o cache_dir=$(VENV)/$@ --last-failed

.PHONY: demo suite-demo suite-test test test-changed tools check types tests untraced traced alone mutants plans plans-of-all bench lock docs images fixtures clean

demo: $(VENV)/.ready
	@$(BIN)/python -m sandbox.demo $(ARGS)

# Not in CI: it installs ONNX Runtime and Apache TVM.
suite-demo: $(VENV)/.ready $(SUITE_VENV)/.ready
	@$(BIN)/python -m sandbox.demo.backend_suite $(ARGS)

# Not in CI either: the tests of the flows that need a backend.
suite-test: $(VENV)/.ready $(SUITE_VENV)/.ready
	NIGHTJAR_SUITE_PYTHON=$(abspath $(SUITE_VENV))/bin/python $(BIN)/pytest -n 0 $(ARGS) tests/lab/suite/flows

test: $(VENV)/.ready
	$(MAKE) --no-print-directory -j2 tools check
	$(MAKE) --no-print-directory -j3 types untraced traced
	$(MAKE) --no-print-directory alone

# The tests that guard a change against a branch, and why: scripts/guards.py. They don't replace `make test`.
BASE ?= main
test-changed: $(VENV)/.ready
	@tests=$$($(BIN)/python -m scripts.guards $(BASE)) || exit 1; test -n "$$tests" || exit 0; \
	  alone=$$($(MARKED_ALONE) -l $$tests); \
	  $(PYTEST) --forks 3 $(ARGS) $$tests && { test -z "$$alone" || scripts/in-memory $(BIN)/pytest -m alone $(ARGS) $$alone; }

# Most of this waits for the network, so it is done beside what needs none of them.
tools: $(VENV)/.ready
	@scripts/postgres-for-tests
	@scripts/chromium-for-tests
	@scripts/deploy-tools-for-tests
	@scripts/gtest-for-tests

check: $(VENV)/.ready
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry bot handlers
	cd lab && $(abspath $(BIN))/deptry .
	$(BIN)/hadolint Dockerfile lab/Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
	$(BIN)/check-jsonschema --check-metaschema deploy/chart/values.schema.json
	$(BIN)/zizmor --offline --quiet .github action.yml
	$(BIN)/python scripts/docs.py --check

types: $(VENV)/.ready
	$(BIN)/mypy

# Each process of the tests leaves what it has run in this folder, and the last explain it: `tests/test_plans.py`. Not in
# CI: PostgreSQL's plan depends on a statement's values, and those that are explained are the first that any test gave.
plans plans-of-all: export NIGHTJAR_STATEMENTS := $(CURDIR)/$(VENV)/statements
tests: $(VENV)/.ready
	$(MAKE) --no-print-directory -j2 untraced traced
	$(MAKE) --no-print-directory alone

untraced: $(VENV)/.ready
	$(PYTEST) $(QUICK) -o cache_dir=$(VENV)/$@ --forks 6 $(ARGS) tests/robustness $(UNTRACED) || { $(AGAIN) tests/robustness $(UNTRACED); }

traced: $(VENV)/.ready
	$(PYTEST) $(QUICK) -o cache_dir=$(VENV)/$@ $(ARGS) --cov --cov-report= tests $(TRACED) || { $(AGAIN) tests $(TRACED); }

alone: $(VENV)/.ready
	$(if $(ALONE),scripts/in-memory $(BIN)/pytest -m alone $(ALONE))
	$(BIN)/coverage report

# Not in CI: days. Breaks the pure modules in thousands of ways and counts how many changes no test detects.
# mutmut is not among the packages for developing: what it needs differs between Pythons; this is locked for 3.11.
mutants: $(VENV)/.ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-mutants.txt
	$(BIN)/python -m scripts.mutants $(ARGS)

# Explains the statements of all tests.
plans-of-all: $(VENV)/.ready
	@rm -rf $(NIGHTJAR_STATEMENTS)
	$(MAKE) --no-print-directory tests

# Explains the statements of the tests that run most of them.
plans: $(VENV)/.ready
	@rm -rf $(NIGHTJAR_STATEMENTS)
	$(PYTEST) -n 4 $(ARGS) tests/engine tests/results tests/handlers/dashboard tests/handlers/operate $(addprefix tests/handlers/,device_tests regressions results) \
	  $(addprefix tests/conversations/test_,lab_calls.py lab_webhook.py nightly.py patterns.py)
	$(BIN)/pytest -n 0 tests/test_plans.py

bench: $(VENV)/.ready
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.ready
	$(BIN)/python scripts/docs.py

# Not in CI: it needs Chromium and a font with emoji. The screenshots of the README; regenerate them when the bot's texts change.
images: $(VENV)/.ready
	$(BIN)/python -m sandbox.demo.images

# Fixtures of what is durable and new: `tests/durable.py`.
fixtures: $(VENV)/.ready
	$(BIN)/python -m tests.durable

lock: $(VENV)/.ready
	scripts/lock

$(VENV)/.ready: requirements.txt requirements-dev.txt pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Nightjar needs Python 3.11 or newer; name one with: make PYTHON=python3.11"; exit 1; }
	@echo "Setting up $(VENV), once"
	@$(PYTHON) -m venv $(VENV)
	@sed -n -e '/^uv==/,/^    # via/p' requirements-dev.txt >$(VENV)/uv.txt
	@$(PIP) --no-compile --require-hashes -r $(VENV)/uv.txt && $(UV) --require-hashes -r requirements-dev.txt || \
	  { echo "uv cannot install here, so pip does"; $(PIP) --no-compile --require-hashes -r requirements-dev.txt; }
	@$(UV) --no-build-isolation --editable ./lab --editable . || \
	  PYTHONWARNINGS=ignore $(PIP) --no-build-isolation --editable lab --editable .
	@touch $@

$(SUITE_VENV)/.ready: requirements-suite.txt lab/pyproject.toml
	@echo "Setting up $(SUITE_VENV), once: 0.5 GB, a minute or two"
	@$(PYTHON) -m venv $(SUITE_VENV)
	@$(SUITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-suite.txt
	@PYTHONWARNINGS=ignore $(SUITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation --editable lab
	@touch $@

clean:
	rm -rf $(VENV) $(SUITE_VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
