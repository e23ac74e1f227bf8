package graph_test

import (
	"context"
	"testing"
	"time"

	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph"
	"isthmus.dev/isthmus/graph/model"
)

// rotating is an authority that was rotated as often as it says.
type rotating struct {
	signers []model.Signer
	refuse  []apply.Error
}

func (r *rotating) Show() model.CertificateAuthority {
	text := "the key does not open"
	return model.CertificateAuthority{
		TrustDomain: "mesh.example", Source: model.SignerSourceOwn, Signs: true, Message: &text, Signers: r.signers,
		Bundles: []model.TrustBundle{{
			TrustDomain: "mesh.example",
			Roots:       []model.TrustRoot{{Fingerprint: "f1", Subject: "CN=root", ExpiresAt: day, ClusterIDs: []string{"c1", "gone"}}},
		}},
	}
}

func (r *rotating) Rotate(_ context.Context, force bool, _ string) ([]apply.Error, error) {
	if !force && r.refuse != nil {
		return r.refuse, nil
	}
	r.signers = append(r.signers, model.Signer{
		Fingerprint: "f2", State: model.SignerStateWaiting, TrustedAt: day,
		SigningStartsAt: day, ExpiresAt: day,
	})
	return nil, nil
}

var day = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

const shownAuthority = `{ trustDomain source signs message signers { fingerprint state signingStartsAt } bundles { trustDomain roots { fingerprint expiresAt clusterIDs clusters { clusterID } } } }`

func TestTheCertificateAuthorityIsShownAndRotated(t *testing.T) {
	a := &rotating{signers: []model.Signer{}}
	h := hubWith(t, graph.Options{Snapshots: &source{fixture(t)}, Authority: a})
	now := h.answer("{ certificateAuthority "+shownAuthority+" }", nil)
	h.want(now, "OWN", "certificateAuthority", "source")
	h.want(now, true, "certificateAuthority", "signs")
	h.want(now, "the key does not open", "certificateAuthority", "message")
	h.want(now, "c1", "certificateAuthority", "bundles", 0, "roots", 0, "clusterIDs", 0)
	h.want(now, []any{map[string]any{"clusterID": "c1"}}, "certificateAuthority", "bundles", 0, "roots", 0, "clusters")
	h.want(now, "2026-11-21T10:00:00.000Z", "certificateAuthority", "bundles", 0, "roots", 0, "expiresAt")

	const rotate = "mutation($force: Boolean) { rotateCertificateAuthority(input: {force: $force}) { certificateAuthority " + shownAuthority +
		" userErrors { code message } } }"
	after := h.answer(rotate, nil)
	h.want(after, "WAITING", "rotateCertificateAuthority", "certificateAuthority", "signers", 0, "state")
	h.want(after, []any{}, "rotateCertificateAuthority", "userErrors")
	a.refuse = []apply.Error{{Code: "SIGNER_UNUSABLE", Message: "put the key file back"}}
	h.want(h.answer(rotate, nil), "SIGNER_UNUSABLE", "rotateCertificateAuthority", "userErrors", 0, "code")
	h.want(h.answer(rotate, map[string]any{"force": true}), []any{}, "rotateCertificateAuthority", "userErrors")
}

func TestAHubThatHasNoAuthoritySaysSo(t *testing.T) {
	h := newHub(t)
	now := h.answer("{ certificateAuthority "+shownAuthority+" }", nil)
	h.want(now, "NONE", "certificateAuthority", "source")
	h.want(now, false, "certificateAuthority", "signs")
	if _, errs := h.ask("mutation { rotateCertificateAuthority(input: {}) { userErrors { code } } }", nil); errs == "" {
		t.Error("it rotates what is not there")
	}
}
