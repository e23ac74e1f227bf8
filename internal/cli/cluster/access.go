package cluster

import (
	"fmt"
	stdio "io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"isthmus.dev/isthmus/client"
	"isthmus.dev/isthmus/internal/cli/cmdutil"
	"isthmus.dev/isthmus/internal/cli/output"
	"isthmus.dev/isthmus/internal/kube"
)

// access are the flags that say how a cluster is reached.
type access struct {
	kubeconfig, context            string
	address, tokenFile, datacenter string
	ca, cert, key                  string
}

func (a *access) bind(f *pflag.FlagSet) {
	f.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` of a Kubernetes cluster, or - for standard input")
	f.StringVar(&a.context, "context", "", "`NAME` of a context of the kubeconfig (default: its current one)")
	f.StringVar(&a.address, "consul-address", "", "`URL` of a Consul agent or server")
	f.StringVar(&a.tokenFile, "token-file", "", "`FILE` with the Consul token")
	f.StringVar(&a.datacenter, "datacenter", "", "`NAME` of the Consul datacenter (default: that of the agent)")
	f.StringVar(&a.ca, "consul-ca", "", "`FILE` of the CAs that sign Consul's certificate")
	f.StringVar(&a.cert, "consul-cert", "", "`FILE` of the hub's certificate for Consul")
	f.StringVar(&a.key, "consul-key", "", "key `FILE` of that certificate")
}

// read reads the files that are named: what they hold is sent to the hub.
func (a *access) read(in stdio.Reader) (*client.KubernetesAccessInput, *client.ConsulAccessInput, error) {
	if (a.kubeconfig == "") == (a.address == "") {
		return nil, nil, cmdutil.Usagef("name either --kubeconfig or --consul-address")
	}
	if a.kubeconfig != "" {
		text, err := a.readKubeconfig(in)
		if err != nil {
			return nil, nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		return &client.KubernetesAccessInput{Kubeconfig: string(text), Context: output.OrNil(a.context)}, nil, nil
	}
	consul, err := a.readConsul()
	return nil, consul, err
}

func (a *access) readKubeconfig(in stdio.Reader) ([]byte, error) {
	if a.kubeconfig == "-" {
		return stdio.ReadAll(stdio.LimitReader(in, kube.MaxKubeconfig+1))
	}
	return kube.ReadFile(a.kubeconfig)
}

func (a *access) readConsul() (*client.ConsulAccessInput, error) {
	input := &client.ConsulAccessInput{Address: a.address, Datacenter: output.OrNil(a.datacenter)}
	var texts [4]string
	for i, of := range []struct{ flag, path string }{
		{"token-file", a.tokenFile},
		{"consul-ca", a.ca},
		{"consul-cert", a.cert},
		{"consul-key", a.key},
	} {
		if of.path == "" {
			continue
		}
		data, err := os.ReadFile(of.path)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", of.flag, err)
		}
		texts[i] = string(data)
	}
	input.Token = output.OrNil(strings.TrimSpace(texts[0]))
	if a.ca+a.cert+a.key != "" {
		input.Tls = &client.ConsulTLSInput{Ca: output.OrNil(texts[1]), Cert: output.OrNil(texts[2]), Key: output.OrNil(texts[3])}
	}
	return input, nil
}
