# The real programs that the tests run: kube-apiserver, etcd, Consul and Envoy.
# The root Makefile includes this file.

.PHONY: tools
tools: ## Install the real programs that the tests run (about 9 minutes the first time).
	@go run ./deploy/testbed/install
