# The one description of what is installed, tested and run; .ci/run calls `make test`.
.DELETE_ON_ERROR:
.PHONY: help setup lab lab-down test full lint unit py39 sanity fuzz integration molecule faults fresh bench sim runner-demo

PYTHON ?= python3
VENV := .venv

help: ## these lines
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

setup: ## what make lab and make test need: Debian packages (listed first), .venv
	@$(PYTHON) tools/bootstrap.py

lab: setup ## start the lab, run site.yml on it, show what came out
	@PYTHONPATH=. $(VENV)/bin/python tools/lab_demo.py

runner-demo: setup ## site.yml and the gate on the running lab through ansible-runner, as CI would
	@$(VENV)/bin/python tools/runner_demo.py

lab-down: ## remove the lab's hosts; the caches stay
	@./lab/lab down

test: setup ## lint, unit tests (also under Python 3.9), sanity, molecule, then the lab: what CI runs
	@$(VENV)/bin/python tests/tiers.py test

full: setup ## everything: slow tests, all sanity tests, long fuzz runs, all molecule scenarios, all faults (hours)
	@$(VENV)/bin/python tests/tiers.py full

lint unit py39 sanity fuzz integration molecule faults: setup ## one tier
	@$(VENV)/bin/python tests/tiers.py $@

fresh: setup ## make test and make lab in a clean Debian 12 (an hour)
	@$(PYTHON) tools/fresh.py

bench: setup ## speed and memory of the log parser (100 MB); the audit of 4,096 hosts
	@PYTHONPATH=. $(VENV)/bin/python benchmarks/bench_nccl_parse.py
	@PYTHONPATH=. $(VENV)/bin/python benchmarks/bench_audit.py

sim: setup ## error rates of the planner on simulated clusters (minutes to an hour; tests/sim/RESULTS.md)
	@$(VENV)/bin/python -m tests.sim.table
