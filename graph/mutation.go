package graph

import (
	"context"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/graph/model"
	"isthmus.dev/isthmus/graph/transport"
)

type mutation struct{ *resolver }

// Apply merges manifests into the configuration.
func (m mutation) Apply(ctx context.Context, in model.ApplyInput) (model.ApplyPayload, error) {
	request, wait, errs := applyRequest(in)
	request.Author = m.author(ctx)
	out, err := m.change(ctx, changing{
		dryRun: request.DryRun, key: request.IdempotencyKey, wait: wait, refused: errs,
		run: func(c Changer) (apply.Result, error) {
			return c.Apply(ctx, request)
		},
	})
	if value(in.Ticket) != "" && !request.DryRun && len(out.UserErrors) == 0 && err == nil {
		out.Findings = append(out.Findings, noTickets("the manifests were taken as they are"))
	}
	return model.ApplyPayload{Outcome: out}, err
}

// Delete deletes objects.
func (m mutation) Delete(ctx context.Context, in model.DeleteInput) (model.DeletePayload, error) {
	var read reader
	request := apply.Deletion{
		DryRun: value(in.DryRun), ExpectedRevision: read.optional("expectedRevision", in.ExpectedRevision),
		Origin: apply.Origin{Author: m.author(ctx), Message: value(in.Message), IdempotencyKey: value(in.IdempotencyKey)},
	}
	for _, o := range in.Objects {
		request.Objects = append(request.Objects, federation.ObjectKey{Group: o.Group, Kind: o.Kind, Namespace: value(o.Namespace), Name: o.Name})
	}
	wait := read.wait(in.WaitFor)
	out, err := m.change(ctx, changing{
		dryRun: request.DryRun, key: request.IdempotencyKey, wait: wait, refused: read.errs,
		run: func(c Changer) (apply.Result, error) {
			return c.Delete(ctx, request)
		},
	})
	return model.DeletePayload{Outcome: out}, err
}

// Rollback goes back to a revision.
func (m mutation) Rollback(ctx context.Context, in model.RollbackInput) (model.RollbackPayload, error) {
	var read reader
	request := apply.Rollback{
		To: read.revision("to", in.To), DryRun: value(in.DryRun),
		Origin: apply.Origin{Author: m.author(ctx), Message: value(in.Message), IdempotencyKey: value(in.IdempotencyKey)},
	}
	wait := read.wait(in.WaitFor)
	out, err := m.change(ctx, changing{
		dryRun: request.DryRun, key: request.IdempotencyKey, wait: wait, refused: read.errs,
		run: func(c Changer) (apply.Result, error) {
			return c.Rollback(ctx, request)
		},
	})
	return model.RollbackPayload{Outcome: out}, err
}

func (m mutation) author(ctx context.Context) string {
	if m.Config.Author == nil {
		return ""
	}
	return m.Config.Author(ctx)
}

// changing is a request that was read.
type changing struct {
	dryRun  bool
	key     string // by which a repetition is known
	wait    *waiting
	refused []apply.Error // why it cannot even be tried
	run     func(Changer) (apply.Result, error)
}

// change carries out a request and returns its result. The snapshots that it
// reads are those before and after the change, not the one of the operation.
func (m mutation) change(ctx context.Context, c changing) (model.Outcome, error) {
	if m.Config.Changer == nil {
		return model.Outcome{}, errNoConfig
	}
	if len(c.refused) > 0 {
		return model.NewOutcome(apply.Result{DryRun: c.dryRun, Errors: c.refused}), nil
	}
	before := m.Snapshots.Latest().Version()
	result, err := c.run(m.Config.Changer)
	if err != nil {
		return model.Outcome{}, shown(err)
	}
	out := model.NewOutcome(result)
	if result.Revision > 0 {
		transport.AnswersAs(ctx, result.Revision)
	}
	switch {
	case len(result.Errors) > 0:
	case c.dryRun:
		out.Findings = append(out.Findings, noTickets("to carry out what this dry run shows, repeat it without dryRun and with expectedRevision"))
		err = m.preview(ctx, result, &out)
	default:
		changed := m.spans.first(requestKey{m.author(ctx), c.key}, span{after: before, upTo: m.Snapshots.Latest().Version()})
		out.Rollout = m.rollout(ctx, c.wait, changed)
		out.Findings = append(out.Findings, m.uncounted(out.Rollout)...)
	}
	return out, shown(err)
}

// preview adds what a dry run shows beside the differences of objects.
func (m mutation) preview(ctx context.Context, result apply.Result, out *model.Outcome) error {
	if m.Config.Previewer == nil {
		return nil
	}
	proxies, resources, err := m.Config.Previewer.Preview(ctx, result.Before, result.After)
	if err != nil {
		return err
	}
	out.Preview = &model.Preview{Proxies: []model.Proxy{}, Resources: resources}
	for _, id := range proxies {
		if latest := connected(ctx).ByProxy(id); latest != nil {
			out.Preview.Proxies = append(out.Preview.Proxies, model.NewProxy(result.Before, latest))
		}
	}
	return nil
}

// noTickets is a finding of every dry run, which would return one, and of an apply that
// names one.
func noTickets(meanwhile string) model.Finding {
	return model.Finding{Code: "NOT_BUILT", Severity: model.SeverityInfo, Message: "tickets are not built yet: " + meanwhile}
}
