package supported

import "isthmus.dev/isthmus/xds/envoy/node"

var _ = add(row{
	kind:    node.SidecarKind,
	selects: true,
	table: &table{
		fields: []string{"workloadSelector", "egress.hosts", "outboundTrafficPolicy.mode"},
		refused: map[string]string{
			"egress.port":                       "egress listeners of single ports are not compiled: their hosts are imported for every port",
			"egress.bind":                       "egress listeners are not bound to addresses of their own",
			"egress.captureMode":                "all outbound traffic is captured alike",
			"ingress":                           "inbound listeners follow the services of the workload",
			"outboundTrafficPolicy.egressProxy": "there is no egress proxy for what the mesh does not know",
			"inboundConnectionPool":             "inbound connections are not limited",
		},
	},
})
