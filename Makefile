# make demo   sets everything up in .venv and runs the main job
# make test   sets everything up and runs the tests
# make test-launchers  asks the real programs (LlamaFactory, DeepSpeed, Slurm, vLLM ...) whether they take our files
# make test-faces  the app in tmux, pages in Chromium, MCP's own clients, assistants, the image (installs what that takes)
# make lint   ruff and pyright
# make bench  accuracy against measured runs, and speed
# make fuzz   20,000 odd inputs over all tools, files and sentences, 200 kills while files are written, and the tests with
#             all that their sweeps draw, of which `make test` takes a part (hours)
# make sbom   what is installed, as CycloneDX, and its licences, into dist
# make docs  the documentation as a site, a page for every command and tool, links checked, into build/docs/site
# make screenshots  the README's pictures, from the real app
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
QUESTION := Can I fully fine-tune Llama-3.1-8B on 8 H100s with 4k sequences and 1B tokens? How long, what does it cost? Write the LlamaFactory, DeepSpeed and Slurm files.

.PHONY: docs fuzz sbom demo test test-launchers test-faces lint bench screenshots format lock clean

demo: $(VENV)/.ready
	$(BIN)/shardwise ask --yes --model offline "$(QUESTION)"

test: $(VENV)/.ready-dev
	$(BIN)/pytest -n 3 --dist worksteal

fuzz: $(VENV)/.ready-dev
	SHARDWISE_THOROUGH=1 $(BIN)/pytest tests/test_fuzz.py
	SHARDWISE_THOROUGH=1 $(BIN)/pytest -n 3 --dist worksteal --ignore tests/test_fuzz.py

# The programs that list are no part of what is listed.
sbom: $(VENV)/.ready
	$(PYTHON) -m venv $(VENV)/sbom
	$(VENV)/sbom/bin/pip install --quiet --disable-pip-version-check "cyclonedx-bom>=7,<8" "pip-licenses>=5,<6"
	mkdir -p dist
	$(VENV)/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o dist/sbom.json $(BIN)/python
	$(VENV)/sbom/bin/pip-licenses --python $(BIN)/python --format markdown --with-urls --output-file dist/licences.md

test-launchers: $(VENV)/.ready-dev
	$(BIN)/pytest -n 3 --dist loadfile checks --ignore checks/faces

test-faces: $(VENV)/.ready-dev
	$(BIN)/pytest checks/faces

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/accuracy.py memory
	$(BIN)/python benchmarks/accuracy.py training
	$(BIN)/python benchmarks/accuracy.py inference

docs: $(VENV)/.ready
	PYTHONPATH=. $(BIN)/python docs/site.py
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/pip install --quiet --disable-pip-version-check --no-deps -r docs/requirements.txt
	$(VENV)/docs/bin/mkdocs build --strict --quiet --config-file build/docs/mkdocs.yml

screenshots: $(VENV)/.ready
	$(BIN)/python docs/screenshots.py

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Shardwise needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	touch $@

# Pins every dependency with hashes for all platforms; needs uv.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --extra serve --extra web --extra pdf pyproject.toml -o requirements.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --extra serve --extra web --extra pdf --extra openai --extra team --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --extra serve --extra team -c requirements.lock pyproject.toml -o requirements-team.lock

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .hypothesis
