package kind

import (
	multicluster "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config/analysis"
	"isthmus.dev/isthmus/federation/config/validation"
)

var _ = add(of[multicluster.ServiceExportSpec]{
	kind:        federation.ServiceExportKind,
	contributes: &federation.ExportsService,
	names: func(d Decoded, _ *multicluster.ServiceExportSpec) []string {
		return []string{string(federation.ExportedService(d.Key).Hostname), string(federation.ClusterSetService(d.Key).Hostname)}
	},
	references: func(r *analysis.References, s *multicluster.ServiceExportSpec) {
		analysis.ServiceExport(r)
		notExported(r, "spec.exportedLabels", s.ExportedLabels)
		notExported(r, "spec.exportedAnnotations", s.ExportedAnnotations)
	},
})

func notExported(r *analysis.References, field string, values map[string]string) {
	if len(values) > 0 {
		r.Add(string(validation.NoEffect), field, "%s", NotExported)
	}
}

// NotExported is why what a ServiceExport says about the service for people has no effect.
const NotExported = "proxies do not use labels and annotations of services"

var _ = add(of[multicluster.ServiceImportSpec]{
	kind:    federation.ServiceImportKind,
	columns: []Column{{"TYPE", "spec.type"}, {"IPS", "spec.ips"}},
})
