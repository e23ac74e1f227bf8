# Targets of the GraphQL rooms, for the Makefile to include.

.PHONY: graph-generate graph-audit graph-browser graph-bundle

graph-generate: ## Make graph/generated and graph/model from schema.graphql.
	go generate ./graph

graph-audit: ## Run the GraphQL-over-HTTP audit suite and the clients of both kinds of streams (needs node).
	cd graph/transport/audit && npm ci --no-fund --no-audit --loglevel=error
	go test -tags audit ./graph/transport/audit

graph-browser: ## Open GraphiQL in Chromium (needs the program chromium).
	go test -tags browser -run Chromium ./graph/graphiql

graph-bundle: ## Build the committed GraphiQL assets again (needs node).
	cd graph/graphiql/bundle && npm ci --no-fund --no-audit --loglevel=error && node build.mjs
