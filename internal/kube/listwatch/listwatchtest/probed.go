package listwatchtest

import (
	"context"
	"sync"
	"testing"

	"isthmus.dev/isthmus/internal/kube/clients"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// Probed is a cluster that is probed until the test ends, and was probed once.
func Probed(t testing.TB, client clients.Interface, o listwatch.ClusterOptions) *listwatch.Cluster {
	t.Helper()
	cluster := listwatch.NewCluster(client, o)
	ctx, cancel := context.WithCancel(context.Background())
	probed, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(ended)
		cluster.Run(ctx, func(string, error) { once.Do(func() { close(probed) }) })
	}()
	t.Cleanup(func() { cancel(); <-ended })
	<-probed
	return cluster
}
