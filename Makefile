.PHONY: demo

# Builds raingauge without the engines of a cluster, which the demo does not need, and counts real public events; the page
# is at http://127.0.0.1:8080 until it is interrupted.
demo:
	cargo build --profile demo --locked --no-default-features
	"$${CARGO_TARGET_DIR:-target}/demo/raingauge" demo

.PHONY: cluster cluster-down

# A whole cluster on loopback, with the real servers; CLUSTER is its folder. See scripts/cluster --help and docs/operations/README.md.
cluster:
	scripts/cluster up $(CLUSTER)

cluster-down:
	scripts/cluster down $(CLUSTER)

.PHONY: docs

# The documentation as a site, in target/docs/book; mdBook is installed where it is missing.
docs:
	scripts/docs

.PHONY: test test-embedded test-browser lint bench

# Every test, those of the adapters on real servers too: one node of Cassandra, ElasticMQ, Kafka, MariaDB, Redis and a Redis cluster,
# which scripts/services installs where they are missing (as root, on Debian), starts, and stops again; and the portal in
# a real browser, which scripts/browser installs.
# Everything is compiled first, so that no server waits for a compiler.
test:
	scripts/test --build
	scripts/services run temp --cassandra 1 --elasticmq --kafka --kafka-steady --mariadb --redis --redis-cluster -- scripts/test --browser

# The tests that need nothing but this clone; those of adapters on real servers say that they were skipped.
test-embedded:
	scripts/test

# The portal in a real browser; pictures of its pages lie in target/screenshots afterwards.
test-browser:
	scripts/browser

# Formatting, lints, arrows between crates, documents beside the code, and the links and commands of the pages.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	scripts/check-structure
	scripts/check-docs
	scripts/check-dependencies

# Range counts and the way of an event inside the process, then raingauge beside eight other systems (docs/evidence/benchmarks.md; scripts/peers installs them).
# Installs those servers where they are missing, and wants two cores for itself for about ten minutes.
bench:
	cargo bench --locked -p raingauge-embedded --bench range_count
	cargo bench --locked -p raingauge-writer --bench intake
	scripts/bench
