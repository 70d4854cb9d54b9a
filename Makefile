# Two commands do everything on a fresh machine: `make demo` and `make test`. The first use creates the environment .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ECOSYSTEM := .venv-ecosystem
CLUSTER := .venv-cluster
NATIVE := $(wildcard hatch_build.py src/ssvi/kernels/native/cpp/*.cpp src/ssvi/kernels/native/cpp/*.h)

.PHONY: demo test test-slow test-ecosystem test-cluster lint bench sanitize fuzz fuzz-models chaos audit outlines clean

demo: $(VENV)/.demo
	$(BIN)/ssvi demo

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -m "not slow and not ecosystem and not cluster" -n auto --dist loadfile

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

# Networks of transformers and timm, in an environment of their own: these packages are large, and are pinned.
test-ecosystem: $(ECOSYSTEM)/.test
	$(ECOSYSTEM)/bin/python -m pytest -m ecosystem tests/ecosystem

# A Ray cluster of two nodes on this machine, whose workers, nodes and drivers are killed. Some minutes; Linux.
test-cluster: $(CLUSTER)/.test
	$(CLUSTER)/bin/python -m pytest -m cluster tests/cluster

# Run it on an idle machine: it measures ratios, and writes docs/performance.md.
bench: $(VENV)/.test
	$(BIN)/ssvi bench --write docs/performance.md

# What completion knows of the commands: after a change of their flags.
outlines: $(VENV)/.test
	$(BIN)/python -c "from ssvi.cli import COMMANDS, completion, load_command; \
	completion.OUTLINES.write_text(completion.outlines(map(load_command, COMMANDS)))"

# The native kernels under the address and undefined-behaviour sanitizers, over the same test cases.
sanitize: $(VENV)/.test
	$(BIN)/python tests/sanitize.py

# A thousand random recipes, data files and damaged run folders; a hundred kills (not each of 150 hits) and every write on a full disk.
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz.py --cases 1000

chaos: $(VENV)/.test
	$(BIN)/python tests/chaos.py --kills 150

# 10,000 damaged or hostile model files: each is a valid network or one clear line. Some minutes; Linux.
fuzz-models: $(VENV)/.test
	$(BIN)/python tests/fuzz_models.py

# Known vulnerabilities of what is installed, and unsafe code of our own. The first needs the network, and fails without it.
audit: $(VENV)/.test
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[audit]"
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src hatch_build.py
	$(BIN)/python tests/audit.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Installed again when what to install, or the native source that an install compiles, has changed.
$(VENV)/.demo: pyproject.toml constraints.txt $(NATIVE) | $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt $(NATIVE) | $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[test]"
	touch $@ $(VENV)/.demo

$(ECOSYSTEM)/.test: pyproject.toml constraints.txt $(NATIVE)
	$(PYTHON) -m venv $(ECOSYSTEM)
	$(ECOSYSTEM)/bin/pip install --quiet --constraint constraints.txt --editable ".[ecosystem]"
	# a torchvision that does not fit this torch would break transformers too; the networks of timm do not need it
	$(ECOSYSTEM)/bin/python -c "import torchvision" || $(ECOSYSTEM)/bin/pip uninstall --yes torchvision
	touch $@

$(CLUSTER)/.test: pyproject.toml constraints.txt $(NATIVE)
	$(PYTHON) -m venv $(CLUSTER)
	$(CLUSTER)/bin/pip install --quiet --constraint constraints.txt --editable ".[cluster]"
	touch $@

$(VENV):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

clean:
	rm -rf $(VENV) $(ECOSYSTEM) $(CLUSTER) out .mypy_cache .ruff_cache .pytest_cache .hypothesis
