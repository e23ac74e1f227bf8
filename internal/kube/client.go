package kube

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/flowcontrol"

	"isthmus.dev/isthmus/internal/kube/clients"
)

const (
	userAgent     = "isthmus"
	protobufTypes = "application/vnd.kubernetes.protobuf"
	defaultQPS    = 50
	defaultBurst  = 100
)

// ConnectOptions says how a cluster may be reached.
type ConnectOptions struct {
	Allow AddressPolicy // needed: without a policy nothing is dialled
	QPS   float32       // requests per second to this cluster; 0: 50
	Burst int           // 0: 100
}

// Client speaks to one API server with rebuilt credentials. It is safe for concurrent use.
type Client struct {
	clients.Interface
	config    *rest.Config
	transport *http.Transport
}

// Connect prepares a client; it does not speak to the server yet. Close releases its connections.
func Connect(credentials *Credentials, options ConnectOptions) (*Client, error) {
	if options.Allow == nil {
		return nil, errors.New("connecting to the API server: no address policy was given")
	}
	transport, err := base(credentials, options.Allow)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	config := &rest.Config{
		Host:        credentials.Server,
		BearerToken: credentials.Token.Reveal(),
		UserAgent:   userAgent,
		Transport:   bounded{next: transport},
		ContentConfig: rest.ContentConfig{
			ContentType:        protobufTypes,
			AcceptContentTypes: protobufTypes + ",application/json",
		},
		WarningHandler: rest.NoWarnings{},
		RateLimiter:    rateLimiter(options),
	}
	if err := seal(config); err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	clientset, err := clients.New(config)
	if err != nil {
		return nil, errors.New("connecting to the API server: the server URL cannot be used")
	}
	return &Client{Interface: clientset, config: config, transport: transport}, nil
}

func rateLimiter(options ConnectOptions) flowcontrol.RateLimiter {
	qps, burst := options.QPS, options.Burst
	if qps <= 0 {
		qps = defaultQPS
	}
	if burst <= 0 {
		burst = defaultBurst
	}
	return flowcontrol.NewTokenBucketRateLimiter(qps, burst)
}

// seal is the second wall (S44, S45): a configuration that could run, open or bypass something is refused, and
// exec plug-ins are denied by client-go's own policy even if the refusal were ignored.
func seal(config *rest.Config) error {
	if config.ExecProvider != nil {
		config.ExecProvider.PluginPolicy = clientcmdapi.PluginPolicy{PolicyType: clientcmdapi.PluginPolicyDenyAll}
	}
	tls := config.TLSClientConfig
	switch {
	case config.ExecProvider != nil, config.AuthProvider != nil:
		return errors.New("authentication plug-ins are refused")
	case config.BearerTokenFile != "", tls.CAFile != "", tls.CertFile != "", tls.KeyFile != "":
		return errors.New("file references are refused")
	case tls.Insecure:
		return errors.New("unverified TLS is refused")
	case config.Impersonate.UserName != "", config.Impersonate.UID != "", len(config.Impersonate.Groups) > 0,
		len(config.Impersonate.Extra) > 0:
		return errors.New("impersonation is refused")
	case config.Username != "", config.Password != "":
		return errors.New("basic authentication is refused")
	case config.Proxy != nil:
		return errors.New("proxies are refused")
	}
	return nil
}

// Config returns a copy for other clients of the same server. They share connections, limits and address policy.
func (c *Client) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Apart returns a client of the same server with a limit of its own: requests that callers provoke do not hold up those that
// follow the cluster.
func (c *Client) Apart(options ConnectOptions) (clients.Interface, error) {
	config := c.Config()
	config.RateLimiter = rateLimiter(options)
	clientset, err := clients.New(config)
	if err != nil {
		return nil, errors.New("connecting to the API server: the server URL cannot be used")
	}
	return clientset, nil
}

// Close ends idle connections. Requests that are under way end by their own contexts.
func (c *Client) Close() { c.transport.CloseIdleConnections() }
