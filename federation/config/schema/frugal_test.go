package schema

import "runtime"

// partner is a ServiceEntry of three endpoints.
func partner() map[string]any {
	endpoint := func(address, locality string) any {
		return map[string]any{"address": address, "labels": map[string]any{"version": "v1"}, "locality": locality}
	}
	return map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
		"metadata": map[string]any{"name": "partner", "namespace": "shop", "labels": map[string]any{"team": "shop"}},
		"spec": map[string]any{
			"hosts": []any{"api.partner.example.com"}, "location": "MESH_EXTERNAL", "resolution": "STATIC",
			"ports":     []any{map[string]any{"name": "https", "number": int64(443), "protocol": "TLS"}},
			"endpoints": []any{endpoint("203.0.113.1", "eu/a"), endpoint("203.0.113.2", "eu/b"), endpoint("203.0.113.3", "eu/c")},
		},
	}
}

// bytesPerRun is what a function allocates, on average.
func bytesPerRun(f func()) uint64 {
	const runs = 100
	f() // what is made once
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / runs
}
