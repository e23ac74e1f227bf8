package validation

import (
	api "istio.io/api/telemetry/v1alpha1"

	"isthmus.dev/isthmus/federation/config/schema"
)

// Telemetry checks a spec of the kind.
func Telemetry(_ string, t *api.Telemetry) []Problem {
	at := spec
	found := attachment(at, t)
	found = append(found, problem(at.field("tracing"), NoEffect,
		when(len(t.GetTracing()) > 1, "one item says how requests are traced: keep one"))...)
	found = append(found, each(at.field("tracing"), t.GetTracing(), tracing)...)
	return append(found, each(at.field("metrics"), t.GetMetrics(), func(at path, m *api.Metrics) []Problem {
		found := each(at.field("overrides"), m.GetOverrides(), metricOverride)
		return append(found, invalid(at.field("reportingInterval"),
			when(m.GetReportingInterval() != nil && m.GetReportingInterval().AsDuration() < 1e6,
				"%s is too short: write at least 1ms", m.GetReportingInterval().AsDuration()))...)
	})...)
}

func tracing(at path, t *api.Tracing) []Problem {
	found := problem(at.field("providers"), NoEffect, when(len(t.GetProviders()) > 1, "requests are traced by one provider: keep one"))
	share := t.GetRandomSamplingPercentage()
	found = append(found, invalid(at.field("randomSamplingPercentage"), when(share.GetValue() < 0 || share.GetValue() > 100,
		"%v is not a percentage: write 0 to 100", share.GetValue()))...)
	return append(found, entries(at.field("customTags"), t.GetCustomTags(), func(at path, name string, tag *api.Tracing_CustomTag) []Problem {
		found := problem(at, schema.Required, when(name == "", "name the tag"))
		return append(found, apply(at, tag, tagRules)...)
	})...)
}

var tagRules = []rule[*api.Tracing_CustomTag]{
	{"", schema.Required, func(t *api.Tracing_CustomTag) string {
		return when(t.GetType() == nil, "say what the tag has: write literal, environment, header or formatter")
	}},
	{"literal.value", schema.Required, func(t *api.Tracing_CustomTag) string {
		return when(t.GetLiteral() != nil && t.GetLiteral().GetValue() == "", "write the value")
	}},
	{"environment.name", schema.Required, func(t *api.Tracing_CustomTag) string {
		return when(t.GetEnvironment() != nil && t.GetEnvironment().GetName() == "", "name the variable")
	}},
	{"header.name", schema.Required, func(t *api.Tracing_CustomTag) string {
		return when(t.GetHeader() != nil && t.GetHeader().GetName() == "", "name the header")
	}},
}

func metricOverride(at path, o *api.MetricsOverrides) []Problem {
	return entries(at.field("tagOverrides"), o.GetTagOverrides(), func(at path, name string, t *api.MetricsOverrides_TagOverride) []Problem {
		found := problem(at, schema.Required, when(name == "", "name the tag"))
		removes := t.GetOperation() == api.MetricsOverrides_TagOverride_REMOVE
		found = append(found, problem(at.field("value"), schema.Required,
			when(!removes && t.GetValue() == "", "write the value, or operation REMOVE"))...)
		return append(found, problem(at.field("value"), schema.Forbidden,
			when(removes && t.GetValue() != "", "a tag that is removed has no value: remove it"))...)
	})
}
