package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/internal/kube/listwatch"
)

// preflight asks an API server what a registry will ask, and who it is.
func (o Opener) preflight(ctx context.Context, r attach.Request) attach.Report {
	var report attach.Report
	name, _ := r.Section["context"].(string)
	credentials, err := kube.Parse([]byte(r.Credentials.Value(kubeconfigValue).Reveal()), o.Rules(name))
	var refused *kube.Refusal
	if errors.As(err, &refused) {
		for _, e := range wrongKubeconfig(refused) {
			report.Findings = append(report.Findings, analysis.Finding{
				Code: string(e.Code), Severity: analysis.Refusal,
				Field: e.Field, Message: e.Message,
			})
		}
		return report
	}
	report.Expires = credentials.Expires
	client, err := kube.Connect(credentials, kube.ConnectOptions{Allow: o.Allow})
	if err != nil {
		report.Addf(attach.Reachability, analysis.Refusal, "%s: %s", credentials.Server, kube.Explain(err))
		return report
	}
	defer client.Close()
	s := server{Client: client, name: credentials.Server, report: &report}
	if s.identify(ctx) {
		s.trust(ctx, o.Trusted)
	}
	return report
}

// server is an API server that is looked at.
type server struct {
	*kube.Client
	name   string
	report *attach.Report
}

// identify reports whether the server could be identified.
func (s *server) identify(ctx context.Context) bool {
	if !s.version(ctx) || !s.rights(ctx) {
		return false
	}
	s.identity(ctx)
	s.addresses(ctx)
	return true
}

// oldest is the oldest minor version of Kubernetes 1 that serves all that a
// registry reads.
const oldest = 21

// maxSkew is the largest difference between the clocks: tokens and certificates of some
// minutes are judged by them.
const maxSkew = 30 * time.Second

// version reads the version and the clock, and reports whether the server answers.
func (s *server) version(ctx context.Context) bool {
	asked := time.Now()
	version, date, err := s.getVersion(ctx)
	if err != nil {
		s.unanswered(kube.Diagnose(err))
		return false
	}
	s.report.Addf(attach.Reachability, analysis.Info, "%s answers", s.name)
	s.report.Addf(attach.ServerCertificate, analysis.Info, "the server's certificate is verified")
	major, _ := strconv.Atoi(version.Major)
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+"))
	switch {
	case err != nil || major != 1:
		s.report.Addf(attach.APIVersion, analysis.Warning, "the server says no version that is known here")
	case minor < oldest:
		s.report.Addf(attach.APIVersion, analysis.Refusal, "the server is Kubernetes %d.%d: 1.%d is the oldest that can be attached",
			major, minor, oldest)
	default:
		s.report.Addf(attach.APIVersion, analysis.Info, "Kubernetes %d.%d", major, minor)
	}
	if again, _, err := s.getVersion(ctx); err != nil || again != version {
		s.report.Addf(attach.APIUnstable, analysis.Refusal,
			"the server says another version each time it is asked: attach the cluster when its upgrade is over")
	}
	s.clock(asked, date)
	return true
}

// unanswered notes why there is no answer to be used.
func (s *server) unanswered(d kube.Diagnosis) {
	code, known := map[kube.Trouble]apply.Code{
		kube.TroubleTLS: attach.ServerCertificate, kube.TroubleUnauthorized: attach.Unauthorized,
		kube.TroubleNotAPIServer: attach.NotAPIServer, kube.TroubleNotFound: attach.NotAPIServer,
		kube.TroubleRefused: codeOfKubeconfig(kube.CodeServerAddress),
	}[d.Trouble]
	if !known {
		code = attach.Reachability
	}
	if code == attach.ServerCertificate || code == attach.Unauthorized {
		s.report.Addf(attach.Reachability, analysis.Info, "%s answers", s.name)
	}
	s.report.Addf(code, analysis.Refusal, "%s: %s", s.name, d.Message)
}

func (s *server) clock(asked, date time.Time) {
	if date.IsZero() {
		s.report.Addf(attach.Clock, analysis.Info, "the server says no time")
		return
	}
	// The server's second lies between the question and the answer.
	skew := max(time.Until(date), asked.Add(-time.Second).Sub(date), 0)
	if skew > maxSkew {
		s.report.Addf(attach.Clock, analysis.Warning,
			"the clocks of the hub and of the cluster are %s apart: tokens and certificates may be refused; set them", skew.Round(time.Second))
		return
	}
	s.report.Addf(attach.Clock, analysis.Info, "the clocks agree")
}

// versionAnswer is what is read of /version.
type versionAnswer struct{ Major, Minor string }

const maxVersion = 64 << 10

func (s *server) getVersion(ctx context.Context) (v versionAnswer, date time.Time, err error) {
	answer := s.CoreV1().RESTClient().Get().AbsPath("/version").Do(ctx)
	if err := answer.Error(); err != nil {
		return v, date, err
	}
	data, err := answer.Raw()
	if err != nil || len(data) > maxVersion || json.Unmarshal(data, &v) != nil || v.Major == "" {
		return v, date, kube.ErrNotAPIServer
	}
	return v, s.date(ctx), nil
}

// date is the time in the head of an answer; zero where there is none.
func (s *server) date(ctx context.Context) time.Time {
	client, err := rest.HTTPClientFor(s.Config())
	if err != nil {
		return time.Time{}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.name+"/version", http.NoBody)
	if err != nil {
		return time.Time{}
	}
	answer, err := client.Do(request)
	if err != nil {
		return time.Time{}
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxVersion))
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}

// identity reads who the cluster is, and its network.
func (s *server) identity(ctx context.Context) {
	system, _, err := listwatch.Identity(ctx, s)
	switch {
	case err != nil:
		s.report.Addf(attach.DuplicateCluster, analysis.Refusal, "the cluster cannot be told from others: reading its namespace kube-system: %s",
			kube.Explain(err))
	case system == nil:
		s.report.Addf(attach.DuplicateCluster, analysis.Refusal,
			"the cluster cannot be told from others: it does not show the namespace kube-system")
	default:
		s.report.UID = string(system.UID)
		s.report.Network = cmp.Or(federation.NetworkID(system.Labels[labelNetwork]), s.istioNetwork(ctx))
	}
}

// istioNetwork is where Istio's guides put the label. Not every account may look.
func (s *server) istioNetwork(ctx context.Context) federation.NetworkID {
	list, err := s.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + istioNamespace, Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return ""
	}
	return federation.NetworkID(list.Items[0].Labels[labelNetwork])
}

// sample is how many objects of a kind are looked at for their addresses.
const sample = 500

// addresses reads where workloads are. What cannot be read is excluded: the
// rights were judged already.
func (s *server) addresses(ctx context.Context) {
	if nodes, err := s.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: sample}); err == nil {
		for i := range nodes.Items {
			for _, text := range nodes.Items[i].Spec.PodCIDRs {
				if p, err := netip.ParsePrefix(text); err == nil {
					s.report.Prefixes = append(s.report.Prefixes, p.Masked())
				}
			}
		}
	}
	slices, err := s.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: sample})
	if err != nil {
		return
	}
	for i := range slices.Items {
		if slices.Items[i].Namespace == metav1.NamespaceDefault && slices.Items[i].Labels["kubernetes.io/service-name"] == "kubernetes" {
			continue // the API servers themselves
		}
		for _, e := range slices.Items[i].Endpoints {
			for _, text := range e.Addresses {
				if ip, err := netip.ParseAddr(text); err == nil {
					s.report.Addresses = append(s.report.Addresses, ip.Unmap())
				}
			}
		}
	}
}

func denied(missing []string) string {
	return fmt.Sprintf("the account may not %s: grant it these rights", strings.Join(missing, ", "))
}

// codeOfKubeconfig is the code of a rule of kubeconfigs, such as KUBECONFIG_EXEC.
func codeOfKubeconfig(c kube.Code) apply.Code {
	return apply.Code("KUBECONFIG_" + strings.ToUpper(strings.ReplaceAll(string(c), "-", "_")))
}

// wrongKubeconfig are the reasons of a refusal, one a code: further fields of the
// same rule are named in its message.
func wrongKubeconfig(refused *kube.Refusal) []apply.Error {
	var wrong []apply.Error
	for _, f := range refused.Findings {
		code, field := codeOfKubeconfig(f.Code), "kubernetes.kubeconfig"
		if f.Field != "" {
			field += ": " + f.Field
		}
		at := slices.IndexFunc(wrong, func(e apply.Error) bool { return e.Code == code })
		if at < 0 {
			wrong = append(wrong, apply.Error{Code: code, Field: field, Message: f.Message})
			continue
		}
		wrong[at].Message += fmt.Sprintf("; also %s", cmp.Or(f.Field, f.Message))
	}
	return wrong
}
