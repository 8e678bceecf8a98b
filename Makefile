# Everything is installed into .venv from hashed requirements. Of the rest of the machine, only the
# state directory changes, and as root /var/lib/concordance and the user `pgserver`.

PYTHON ?= python3
BIN := .venv/bin
# Processes that tests run in: a number, or one more than there are cores.
WORKERS ?= auto
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
# Libraries of this project must not look for anything outside this machine.
export DO_NOT_TRACK := 1
export ORT_DISABLE_TELEMETRY := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check audit licences manifests reference bench fuzz soak format lock clean

demo: .venv/runtime
	@$(BIN)/concordance demo

# A file's tests stay together and in order; files are dealt out in the order of their names, so
# that the long ones come first. Each worker has a Postgres of its own, hence a limit.
test: .venv/dev
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --dist loadfile --no-loadscope-reorder

check: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/unit/test_architecture.py tests/unit/test_importing.py

# Against a folder of advisories that CONCORDANCE_ADVISORIES names; without one, nothing is audited.
audit: .venv/dev
	@$(BIN)/python requirements/audit.py

licences: .venv/dev
	@$(BIN)/python requirements/licences.py

# The packages of workers and the tools that know the schemas have a folder of their own: none of
# them is needed elsewhere.
manifests: .venv/manifests
	@.venv/manifests-tools/bin/python -m pytest tests/manifests --noconftest -o python_files='manifest_*.py'

# Everything on one machine from nothing, and one question by every way in.
tour: .venv/dev
	@$(BIN)/python -m benchmarks.tour

bench: .venv/dev
	@$(BIN)/python -m benchmarks.pipeline

# Some minutes; the same seed makes the same again.
SEED ?= $(shell date +%s)
EXAMPLES ?= 2000
fuzz: .venv/dev
	@echo "SEED=$(SEED) EXAMPLES=$(EXAMPLES)"
	@FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/fuzz -o python_files='fuzz_*.py' -o timeout=1800 --hypothesis-seed=$(SEED)

# Random histories of several projects whose runs are killed; HISTORY=7 makes only that one again.
MINUTES ?= 30
soak: .venv/dev
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) --seed $(SEED) $(if $(HISTORY),--history $(HISTORY))

# The pages of docs/reference, from the code.
reference: .venv/dev
	@$(BIN)/python -c 'from docs.reference.generate import main; main()'

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: .venv/dev
	$(BIN)/uv pip compile pyproject.toml requirements/build.in $(LOCK) -o requirements/runtime.txt
	$(BIN)/uv pip compile pyproject.toml requirements/build.in --extra dev -c requirements/runtime.txt $(LOCK) -o requirements/dev.txt

	$(BIN)/uv pip compile requirements/workers.in -c requirements/runtime.txt $(LOCK) -o requirements/workers.txt
	$(BIN)/uv pip compile requirements/workers.in requirements/manifests.in -c requirements/workers.txt -c requirements/dev.txt $(LOCK) -o requirements/manifests.txt

LOCK := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet

# As root the database lies under /var/lib/concordance: `concordance doctor` names its folder.
clean:
	@[ ! -x $(BIN)/concordance ] || CONCORDANCE_HOME=$(CURDIR)/.demo/home $(BIN)/concordance down
	rm -rf .venv .demo .tour .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info

.venv/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Concordance needs Python 3.11 or newer; set PYTHON=/path/to/it" >&2; exit 1; }
	@echo "Making .venv …"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/runtime: .venv/pip requirements/runtime.txt pyproject.toml
	@echo "Installing what the program needs …"
	@$(INSTALL) --require-hashes --requirement requirements/runtime.txt
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev: .venv/runtime requirements/dev.txt
	@echo "Installing what tests and checks need …"
	@$(INSTALL) --require-hashes --requirement requirements/dev.txt
	@touch $@

.venv/manifests: .venv/pip requirements/manifests.txt
	@echo "Installing what looks at templates and manifests …"
	@$(BIN)/python -m venv .venv/manifests-tools
	@.venv/manifests-tools/bin/python -m pip install --quiet --no-input --require-hashes --requirement requirements/manifests.txt
	@touch $@
