package wanted_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/gatewayapi"
	"isthmus.dev/isthmus/federation/config/writeback/wanted"
)

func edgeOf(kind string) federation.ObjectKey {
	return federation.ObjectKey{Group: gateway.GroupName, Kind: kind, Namespace: "shop", Name: "edge", Cluster: "c1"}
}

// says are the conditions of a status and of its listeners, without messages.
func says(conditions []wanted.Condition) (all []string) {
	for _, c := range conditions {
		all = append(all, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(all)
	return all
}

// TestG53MissingSecrets: a listener of which gateways lack a Secret says so, and others go on.
func TestG53MissingSecrets(t *testing.T) {
	holding := func(types ...string) (all []gatewayapi.Condition) {
		for _, kind := range types {
			all = append(all, gatewayapi.Condition{Type: kind, Status: true, Reason: kind})
		}
		return all
	}
	listener := func(secrets ...gatewayapi.Secret) gatewayapi.ListenerStatus {
		return gatewayapi.ListenerStatus{Name: "l", Secrets: secrets, Conditions: holding("Accepted", "Programmed", "ResolvedRefs")}
	}
	cert, roots := gatewayapi.Secret{Namespace: "shop", Name: "cert"}, gatewayapi.Secret{Namespace: "shop", Name: "roots", Authorities: true}
	fine := []string{"Accepted True Accepted", "Conflicted False NoConflicts", "Programmed True Programmed", "ResolvedRefs True ResolvedRefs"}
	lacks := []string{
		"Accepted True Accepted", "Conflicted False NoConflicts", "Programmed False Invalid",
		"ResolvedRefs False InvalidCertificateRef",
	}
	for name, test := range map[string]struct {
		listeners []gatewayapi.ListenerStatus
		missing   gatewayapi.Secret
		want      []string
		each      [][]string
	}{
		"none": {
			[]gatewayapi.ListenerStatus{listener(cert)},
			roots,
			[]string{"Accepted True Accepted", "Programmed True Programmed"},
			[][]string{fine},
		},
		"that of the only listener": {
			[]gatewayapi.ListenerStatus{listener(cert)},
			cert,
			[]string{"Accepted True ListenersNotValid", "Programmed False Invalid"},
			[][]string{lacks},
		},
		"that of one listener": {
			[]gatewayapi.ListenerStatus{listener(), listener(cert, roots)}, roots, []string{
				"Accepted True ListenersNotValid",
				"Programmed True Programmed",
			}, [][]string{fine, lacks},
		},
	} {
		for _, kind := range []string{"Gateway", "ListenerSet"} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				m := wanted.Mesh{
					Read: federation.Empty().Read(),
					Gateways: func(federation.ObjectKey) (gatewayapi.Status, bool) {
						return gatewayapi.Status{Controller: "c", Conditions: holding("Accepted", "Programmed"), Listeners: test.listeners}, true
					},
					Delivered: func(...federation.ObjectKey) (wanted.Delivery, bool) { return wanted.Delivery{Accepted: 1}, true },
					MissingSecret: func(cluster federation.ClusterID, secret gatewayapi.Secret) string {
						if cluster == "c1" && secret == test.missing {
							return "there is none"
						}
						return ""
					},
				}
				status, _ := wanted.For(m, wanted.Object{Cluster: "c1", Key: edgeOf(kind)})
				if got := says(status.Conditions); !slices.Equal(got, test.want) {
					t.Errorf("the conditions are %q", got)
				}
				for i, l := range status.Listeners {
					if got := says(l.Conditions); !slices.Equal(got, test.each[i]) {
						t.Errorf("the conditions of listener %d are %q", i, got)
					}
				}
			})
		}
	}
}

// TestG83MissingCertificateForBackends: a Gateway whose proxies lack the certificate for backends says so, and
// listeners go on.
func TestG83MissingCertificateForBackends(t *testing.T) {
	client := gatewayapi.Secret{Namespace: "shop", Name: "client"}
	for missing, want := range map[string]string{"": "ResolvedRefs True ResolvedRefs", "there is none": "ResolvedRefs False InvalidClientCertificateRef"} {
		m := wanted.Mesh{
			Read: federation.Empty().Read(),
			Gateways: func(federation.ObjectKey) (gatewayapi.Status, bool) {
				return gatewayapi.Status{
					Controller: "c", Secrets: []gatewayapi.Secret{client},
					Conditions: []gatewayapi.Condition{
						{Type: "Accepted", Status: true, Reason: "Accepted"},
						{Type: "Programmed", Status: true, Reason: "Programmed"},
						{Type: "ResolvedRefs", Status: true, Reason: "ResolvedRefs"},
					},
				}, true
			},
			Delivered: func(...federation.ObjectKey) (wanted.Delivery, bool) { return wanted.Delivery{Accepted: 1}, true },
			MissingSecret: func(_ federation.ClusterID, secret gatewayapi.Secret) string {
				if secret != client {
					return ""
				}
				return missing
			},
		}
		status, _ := wanted.For(m, wanted.Object{Cluster: "c1", Key: edgeOf("Gateway")})
		if got := says(status.Conditions); !slices.Equal(got, []string{"Accepted True Accepted", "Programmed True Programmed", want}) {
			t.Errorf("with the reason %q the conditions are %q", missing, got)
		}
	}
}

// TestG52AttachedListenerSets: the status of a Gateway counts its ListenerSets, and has no count
// without any.
func TestG52AttachedListenerSets(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		before any
		sets   int
		want   any
		writes bool
	}{{nil, 0, nil, false}, {nil, 2, int64(2), true}, {int64(2), 2, nil, false}, {int64(2), 1, int64(1), true}, {int64(2), 0, nil, true}} {
		patch := wanted.Change(edgeOf("Gateway").Of(), map[string]any{"attachedListenerSets": test.before}, &wanted.Status{Sets: test.sets}, now)
		if got, writes := patch["attachedListenerSets"]; got != test.want || writes != test.writes {
			t.Errorf("from %v to %d the patch is %v", test.before, test.sets, patch)
		}
	}
}
