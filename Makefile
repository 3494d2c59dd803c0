# make app    set up and open the app on the sample data
# make test   set up, lint, check types and run all tests
# Nothing else is needed: both make .venv with the versions of constraints.txt.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Bytecode that may be kept makes each of the many processes of the tests start faster.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: app test check lock clean

app: $(READY)
	$(BIN)/pararecover app --sample

test: check
	$(BIN)/pytest -rs -n 2 --dist loadscope --no-loadscope-reorder

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -n 2

# Versions that are known to work together; run it after a change of dependencies.
lock: $(READY)
	$(BIN)/pip install -q pip-tools
	$(BIN)/pip-compile -q --extra auth --extra test --strip-extras --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --upgrade \
	  --output-file constraints.txt pyproject.toml

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name it: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --no-compile -c constraints.txt -e '.[test]'
	touch $(READY)

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis static
