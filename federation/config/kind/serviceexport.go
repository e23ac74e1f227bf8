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
		if len(s.ExportedLabels)+len(s.ExportedAnnotations) > 0 {
			r.Add(string(validation.NoEffect), "spec",
				"exportedLabels and exportedAnnotations have no effect: proxies do not use labels of services")
		}
	},
})

var _ = add(of[multicluster.ServiceImportSpec]{
	kind:    federation.ServiceImportKind,
	columns: []Column{{"TYPE", "spec.type"}, {"IPS", "spec.ips"}},
})
