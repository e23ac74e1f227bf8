# The real programs that the tests run: kube-apiserver, etcd, Consul, Envoy, istiod and Istio's
# agent.
# The root Makefile includes this file.

.PHONY: tools
tools: ## Install the real programs that the tests run (about 15 minutes the first time).
	@go run ./deploy/testbed/install
