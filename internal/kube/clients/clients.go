// Package clients has clients for the APIs of Kubernetes that the hub asks. The clientset of
// client-go has those of all APIs, in some hundred packages: whatever imports it links them all.
package clients

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/discovery"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryv1 "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
)

// Interface has the clients of one API server. The clientset of client-go and its fake have them, too.
type Interface interface {
	Discovery() discovery.DiscoveryInterfaces
	AuthenticationV1() authenticationv1.AuthenticationV1Interface
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
	CoreV1() corev1.CoreV1Interface
	DiscoveryV1() discoveryv1.DiscoveryV1Interface
}

type set struct {
	discovery      *discovery.DiscoveryClient
	authentication *authenticationv1.AuthenticationV1Client
	authorization  *authorizationv1.AuthorizationV1Client
	core           *corev1.CoreV1Client
	slices         *discoveryv1.DiscoveryV1Client
}

// New makes the clients. They share connections, and the rate limiter of the configuration.
func New(config *rest.Config) (Interface, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making clients of an API server: %w", err)
	}
	return With(config, client)
}

// With makes clients that send their requests with the given one.
func With(config *rest.Config, client *http.Client) (Interface, error) {
	var s set
	var errs [5]error
	s.discovery, errs[0] = discovery.NewDiscoveryClientForConfigAndClient(config, client)
	s.authentication, errs[1] = authenticationv1.NewForConfigAndClient(config, client)
	s.authorization, errs[2] = authorizationv1.NewForConfigAndClient(config, client)
	s.core, errs[3] = corev1.NewForConfigAndClient(config, client)
	s.slices, errs[4] = discoveryv1.NewForConfigAndClient(config, client)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making clients of an API server: %w", err)
	}
	return &s, nil
}

func (s *set) Discovery() discovery.DiscoveryInterfaces                     { return s.discovery }
func (s *set) AuthenticationV1() authenticationv1.AuthenticationV1Interface { return s.authentication }
func (s *set) AuthorizationV1() authorizationv1.AuthorizationV1Interface    { return s.authorization }
func (s *set) CoreV1() corev1.CoreV1Interface                               { return s.core }
func (s *set) DiscoveryV1() discoveryv1.DiscoveryV1Interface                { return s.slices }
