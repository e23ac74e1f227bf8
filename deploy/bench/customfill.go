package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"isthmus.dev/isthmus/deploy/testbed"
)

// custom is the n-th object, as server-side apply takes it.
func custom(n int, prefix string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"v%d","labels":{"app":"web"}},
		"spec":{"hosts":["web-%[1]d.shop.svc.cluster.local"],"http":[{"match":[{"uri":{"prefix":%[2]q}}],"timeout":"5s","retries":{"attempts":2,"perTryTimeout":"1s"},
		"route":[{"destination":{"host":"a.shop.svc.cluster.local"},"weight":90},{"destination":{"host":"b.shop.svc.cluster.local"},"weight":10}]}]}}`, n, prefix)
}

// post sends a request.
func post(k *testbed.Kube, method, path, body string) error {
	answer := k.Do(method, path, []byte(body))
	if answer.Err != nil {
		return answer.Err
	}
	if answer.Status >= 300 {
		return fmt.Errorf("%s %s: %d %.200s", method, path, answer.Status, answer.Body)
	}
	return nil
}

func fillCustom(s *stage, k *testbed.Kube) error {
	definition, err := definitionOf("virtualservices.networking.istio.io")
	if err != nil {
		return err
	}
	k.Apply(string(definition))
	testbed.WaitFor(s, time.Minute, "the API server to serve the kind", func() error { return post(k, "GET", customPath(manyCustom), "") })
	var group errgroup.Group
	group.SetLimit(8)
	for _, count := range []int{fewCustom, manyCustom} {
		k.Apply(fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, customNamespace(count)))
		for i := range count {
			group.Go(func() error { return post(k, "POST", customPath(count), custom(i, "/v1")) })
		}
	}
	return group.Wait()
}

// definitionOf is one of the CustomResourceDefinitions that the hub knows.
func definitionOf(name string) (json.RawMessage, error) {
	packed, err := os.Open("federation/config/schema/crds/istio.json.gz")
	if err != nil {
		return nil, fmt.Errorf("reading the definitions: %w", err)
	}
	defer func() { _ = packed.Close() }()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("reading the definitions: %w", err)
	}
	var all []json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&all); err != nil {
		return nil, fmt.Errorf("reading the definitions: %w", err)
	}
	for _, text := range all {
		var named struct{ Metadata struct{ Name string } }
		if json.Unmarshal(text, &named) == nil && named.Metadata.Name == name {
			return text, nil
		}
	}
	return nil, fmt.Errorf("there is no definition %s", name)
}
