package main

import (
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"isthmus.dev/isthmus/deploy/testbed"
)

// fillCluster makes nodes, and services of three pods each.
func fillCluster(k *testbed.Kube) {
	for n := range 20 {
		k.Apply(fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n%d","labels":{"topology.kubernetes.io/region":"r1","topology.kubernetes.io/zone":"z%d"}}}`, n, n%3))
	}
	k.Apply(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	var group errgroup.Group
	group.SetLimit(8)
	for i := range attachServices {
		group.Go(func() error {
			for _, o := range objectsOf(i) {
				if answer := k.Do("POST", o.path, []byte(o.body)); answer.Err != nil || answer.Status >= 300 {
					return fmt.Errorf("making %s: %d, %w", o.path, answer.Status, answer.Err)
				}
			}
			return nil
		})
	}
	_ = group.Wait() // what is missing shows in what is read
}

type posted struct{ path, body string }

func objectsOf(i int) []posted {
	name, endpoints := fmt.Sprintf("s%04d", i), make([]string, 0, 3)
	all := []posted{{"/api/v1/namespaces/shop/services", fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":%[1]q,"labels":{"app":%[1]q}},"spec":{"selector":{"app":%[1]q},"ports":[{"name":"http","port":80,"targetPort":8080},{"name":"grpc","port":90,"targetPort":9090}]}}`, name)}}
	for p := range 3 {
		pod, ip, node := fmt.Sprintf("%s-%d", name, p), fmt.Sprintf("10.%d.%d.%d", 128+p, i>>8, i&255), fmt.Sprintf("n%d", (i+p)%20)
		all = append(all, posted{"/api/v1/namespaces/shop/pods", fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":%q,"pod-template-hash":"7d9f8c6b5"},"annotations":{"prometheus.io/scrape":"true","checksum/config":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},
			"spec":{"nodeName":%q,"serviceAccountName":"default","containers":[{"name":"app","image":"registry.example/shop/app:1.2.3","ports":[{"containerPort":8080,"name":"http"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}},"env":[{"name":"MODE","value":"production"},{"name":"PEERS","value":"cart,web,pay"}],"readinessProbe":{"httpGet":{"path":"/healthz","port":8080}}},{"name":"proxy","image":"registry.example/mesh/proxy:1.40.0","args":["proxy","sidecar","--domain","shop.svc.cluster.local"]}]}}`, pod, name, node)})
		endpoints = append(endpoints, fmt.Sprintf(
			`{"addresses":[%q],"conditions":{"ready":true,"serving":true},"nodeName":%q,"zone":"z%d","targetRef":{"kind":"Pod","namespace":"shop","name":%q}}`, ip, node, (i+p)%3, pod))
	}
	return append(all, posted{"/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", fmt.Sprintf(
		`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"%[1]s-x","labels":{"kubernetes.io/service-name":%[1]q}},"addressType":"IPv4","ports":[{"name":"http","port":8080},{"name":"grpc","port":9090}],"endpoints":[%[2]s]}`,
		name, strings.Join(endpoints, ","))})
}
