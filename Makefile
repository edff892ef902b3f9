# make help lists the targets. Everything they build or download lands in bin/ or in Go's and golangci-lint's caches.

WITHPG := go run ./internal/pgserver/withpg --
BENCHTIME ?= 1s
FUZZTIME ?= 30s
STORM ?= 60s
SOAK ?= 5m

# What the race detector is not asked about: fleets (see RACING), packages without a goroutine, the plan of a statement over
# 100,000 rows, and the scenarios of explain, whose loop is that of the policies' stories.
UNRACED := /(internal/fleet|configs|internal/importer)$$
UNRACED_TESTS := ^(TestTheListReadsAnIndex|TestExplainScenarios)$$
# Fleets whose daemons have the race detector. Everything of a fleet runs in processes of its own, so the package's other
# tests would see nothing with it that they do not see without.
RACING := ^(TestRetry|TestReplace|TestLimit|TestChains|TestReloads|TestDrain)
# The first counts the server's processes, and a pooler has its own number of them. The others take long, and ask nothing of a
# pooler that the rest does not ask, or are about SQLite, as the subtests of that name.
UNPOOLED := ^(TestPostgresIsLinearizable|TestKilledAtEvery|TestSoak|TestTenHours|TestThreeDays|TestPolicy|TestExplainScenarios)|./^sqlite

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/cronlatch, static
	CGO_ENABLED=0 go build -trimpath -o bin/cronlatch ./cmd/cronlatch

.PHONY: run
run: build ## start a daemon with two example jobs on an embedded SQLite database
	@[ -e cronlatch.yaml ] || bin/cronlatch init
	bin/cronlatch serve --config cronlatch.yaml --database-url sqlite:cronlatch.db

.PHONY: test
test: ## run all tests beside a private PostgreSQL server, installed first where it is missing
	scripts/test-deps
	$(WITHPG) go test -shuffle=on -timeout 40m ./...

.PHONY: race
race: ## run the tests with the race detector, and a few fleets whose daemons have it
	scripts/test-deps race
	$(WITHPG) go test -race -shuffle=on -timeout 30m -skip '$(UNRACED_TESTS)' $$(go list ./... | grep -vE '$(UNRACED)')
	CRONLATCH_FLEET_RACE=1 $(WITHPG) go test -shuffle=on -run '$(RACING)' -timeout 30m ./internal/fleet

.PHONY: test-pooler
test-pooler: ## run the tests that use PostgreSQL through PgBouncer in transaction mode
	scripts/test-deps
	go run ./internal/pgserver/withpg -bouncer -- go test -count=1 -shuffle=on -skip '$(UNPOOLED)' -timeout 40m $$(scripts/postgres-packages)

.PHONY: test-time-zones
test-time-zones: ## run the tests that deal with the database's times in four time zones
	scripts/test-deps
	scripts/test-time-zones

.PHONY: storm
storm: ## let 100 clients fight for one lock, and for 200, directly and through PgBouncer (STORM=60s each)
	scripts/test-deps
	CRONLATCH_STORM=$(STORM) go test -count=1 -v -run '^TestPostgresStorm$$' -timeout 60m ./locking

.PHONY: bench
bench: ## run the benchmarks (BENCHTIME=1s)
	scripts/test-deps
	$(WITHPG) go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m ./...

.PHONY: fuzz
fuzz: ## fuzz everything that parses, one target after another (FUZZTIME=30s)
	scripts/test-deps
	$(WITHPG) scripts/fuzz $(FUZZTIME)

.PHONY: check-blackhole-100
check-blackhole-100: ## cut 100 lock holders off from the database: each must stop before a rival may start
	scripts/test-deps
	CRONLATCH_FLEET_BLACKHOLES=100 $(WITHPG) go test -count=1 -v -run '^TestBlackHoledHolders$$' -timeout 30m ./internal/fleet

.PHONY: check-reloads
check-reloads: ## reload two daemons every half a second for a minute: no occurrence is lost or doubled
	scripts/test-deps
	CRONLATCH_FLEET_RELOADS=1m $(WITHPG) go test -count=1 -v -run '^TestReloadsLoseNothing$$' -timeout 30m ./internal/fleet

.PHONY: soak
soak: ## kill one of three replicas after the other under five runs a second, and see each occurrence run (SOAK=5m)
	scripts/test-deps
	CRONLATCH_FLEET_SOAK=$(SOAK) $(WITHPG) go test -count=1 -v -run '^TestSoak$$' -timeout 60m ./internal/fleet

.PHONY: check-statements
check-statements: ## kill a daemon at the first three executions of each statement of the scheduler, and at each of what people ask for, messages and retention
	scripts/test-deps
	CRONLATCH_FLEET_STATEMENTS=3 $(WITHPG) go test -count=1 -v -run '^TestKilledAtEvery(Statement|Deed)$$' -timeout 60m ./internal/fleet

.PHONY: check-calendar
check-calendar: ## compare 60 windows in every zone with a naive scan of the calendar
	CRONLATCH_CALENDAR_WINDOWS=60 go test -count=1 -v -run NaiveScan -timeout 30m ./jobs

.PHONY: test-alerts
test-alerts: ## test deploy/alerts.yaml against samples, with the engine of Prometheus
	cd deploy/alertstest && go test -count=1 ./... # the rules are outside of the module: a cached result does not see them change

.PHONY: lint
lint: ## run golangci-lint and see each import rule fire
	scripts/lint

.PHONY: ci
ci: ## run what CI runs
	bash .ci/run

.PHONY: clean
clean: ## remove what the other targets made in this folder, and the data of make run
	rm -rf bin reports cronlatch.db cronlatch.db-wal cronlatch.db-shm cronlatch.token
	find . -name '*.test' -o -name '*.prof' | xargs rm -f
