# Every target sets itself up on a machine that has only Python 3.11+ with pip.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
UV_VERSION := 0.13.8
UV := $(shell command -v uv 2>/dev/null || echo .make/uv/bin/uv)
RUN := $(UV) run --frozen --quiet --all-extras
# Bytecode is made once, here: machines that forbid it (PYTHONDONTWRITEBYTECODE) would compile each
# library anew in every process. What no command imports is left out: it would double the time.
OWN := pipelines data features models export
NOT_COMPILED := /(tests?|testing|sympy|statsmodels|databricks|debugpy|IPython|fontTools|torch/(_inductor|distributed)|ray/(data|serve|dashboard|llm))/
export MLFLOW_DISABLE_TELEMETRY := true
export DO_NOT_TRACK := true
export RAY_USAGE_STATS_ENABLED := 0

CAMPAIGNS ?= smartsbd-paper smartsbd-table6 smartsbd-random
JOBS ?= 12
SECONDS ?= 600
SEEDS ?= 10
CORE_MB := 600

.PHONY: help automl core-size setup tools repro test lint fuzz bench ui lab-data clean fidelity papers bars decisions

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.make/uv/bin/uv:
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --target .make/uv 'uv==$(UV_VERSION)'

.make/setup: pyproject.toml uv.lock | $(filter .make/uv/bin/uv,$(UV))
	$(UV) sync --frozen --quiet --all-extras
	@.venv/bin/python -m compileall -qq -j 0 -x '$(NOT_COMPILED)' .venv/lib $(OWN) || true # some files are templates
	@mkdir -p .make && touch $@

setup: .make/setup ## make .venv with everything that uv.lock pins

core-size: | $(filter .make/uv/bin/uv,$(UV)) ## install the core alone, without extras, and say what it takes on disk
	@rm -rf .make/core
	@UV_PROJECT_ENVIRONMENT=.make/core $(UV) sync --frozen --quiet --no-dev --no-editable
	@rm -rf build/lib build/bdist.*
	@size=$$(du -sm .make/core | cut -f1); \
	.make/core/bin/python -m compileall -qq .make/core/lib || true; \
	echo "the core takes $$size MB of at most $(CORE_MB), $$(du -sm .make/core | cut -f1) MB with its bytecode"; \
	test $$size -le $(CORE_MB)

tools: ## what the kernel tests need of the system: compilers, BPF, tracefs (root, Debian; else says what to run)
	@$(PYTHON) -m data.lab.tools

repro: .make/setup ## raw kernel logs in, verified classifier and report out
	@$(RUN) python -m pipelines.registry.register --check
	@$(RUN) python -m pipelines.repro
	@$(RUN) cczoo report --verdicts
	@$(RUN) cczoo report --where
	@$(RUN) cczoo zoo reproduced

test: .make/setup ## all tests
	$(RUN) pytest -n 2 --dist loadgroup tests

lint: .make/setup ## ruff, mypy --strict, import-linter
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) lint-imports

fuzz: .make/setup ## fuzz what reads files from others, SECONDS (600) each
	@test -d .fuzz/site/atheris || $(UV) pip install --quiet --target .fuzz/site --no-deps atheris==3.0.0
	$(RUN) python tests/fuzz/fuzz.py --seconds $(SECONDS)

automl: .make/setup ## auto-sklearn in an environment of its own, .automl (compiles; AUTOML_PYTHON names the interpreter)
	@$(RUN) python -m models.sbd.automl.build --uv "$(UV)"

bench: .make/setup ## every benchmark beside its peers, one after the other (QUICK=1: some minutes)
	@UV="$(abspath $(shell command -v $(UV) 2>/dev/null || echo $(UV)))" $(RUN) python benchmarks/run.py $(if $(QUICK),--quick)

fidelity: .make/setup ## docs/fidelity*.md: the simulator beside ns-3 (where it is installed) and the kernel (after make repro)
	$(RUN) python -m benchmarks.ns3.compare
	$(RUN) python -m pipelines.studies.fidelity.command --events data/interim/events --features data/processed/sbd.parquet --out docs/fidelity-linux.md

papers: .make/setup ## docs/papers.md: what the papers report, simulated, with the zoo's agents; resumes
	$(RUN) python -m pipelines.studies.papers.command --seeds $(SEEDS) --out docs/papers.md

bars: .make/setup ## docs/bars.md: the zoo's agents against their bars, out of range, for fairness; resumes
	$(RUN) python -m pipelines.studies.bars.command --seeds $(SEEDS) --out docs/bars.md

decisions: .make/setup ## data/processed/decisions: all classical controls' decisions, to learn from; hours, resumes (SHARE=0.1: a sample)
	$(RUN) $(if $(SHARE),python -m pipelines.decisions.generate --share $(SHARE) --out data/processed/decisions-sample,dvc repro pipelines/decisions/dvc.yaml)

ui: .make/setup ## open the MLflow interface on the tracked runs
	$(RUN) mlflow ui --backend-store-uri sqlite:///mlruns/mlflow.db --port $${PORT:-5001}

lab-data: .make/setup ## collect the campaigns of data/raw again (root; resumes; hours)
	@set -e; for c in $(CAMPAIGNS); do \
	  $(RUN) cczoo lab collect data/scenarios/$$c.yaml --out data/raw/$$c --jobs $(JOBS); done

clean: ## remove what repro and test have made (not data/raw, not mlruns)
	rm -rf data/interim data/processed models/trained reports .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
