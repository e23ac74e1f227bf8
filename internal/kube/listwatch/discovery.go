package listwatch

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"isthmus.dev/isthmus/internal/kube/clients"
)

// Served returns the resources that the server has in a version of a group, such as
// "apps/v1"; none if it does not have the version. Call it within Cluster.Read.
func Served(ctx context.Context, client clients.Interface, version string) ([]metav1.APIResource, error) {
	list, err := discovery.ToServerResourcesInterfaceWithContext(client.Discovery()).ServerResourcesForGroupVersionWithContext(ctx, version)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, AccessError{Verb: "get", Resource: "/apis/" + version, Err: err}
	}
	if list == nil {
		return nil, nil
	}
	return list.APIResources, nil
}
