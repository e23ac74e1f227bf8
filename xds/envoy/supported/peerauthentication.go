package supported

import "isthmus.dev/isthmus/xds/envoy/authentication"

var _ = add(row{kind: authentication.PeerKind, table: &table{fields: []string{"selector.matchLabels", "mtls.mode", "portLevelMtls"}}})
