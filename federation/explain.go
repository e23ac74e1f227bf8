package federation

// Via says how a proxy reaches an endpoint.
type Via string

// The ways to an endpoint.
const (
	ViaDirect  Via = "DIRECT"  // at its own address
	ViaGateway Via = "GATEWAY" // through the gateways of its network
	ViaNone    Via = "NONE"    // not at all
)

// Explanation says whether a proxy sends to one endpoint of a service, and why.
type Explanation struct {
	Shard    ShardKey
	Endpoint *Endpoint
	Included bool
	Via      Via
	Code     string // stable, upper case
	Message  string
	Cause    ObjectKey // because of which it is so; zero: no object
}

// Cluster is where the endpoint runs.
func (e Explanation) Cluster() ClusterID {
	return ShardEndpoints{Shard: e.Shard}.ClusterOf(e.Endpoint)
}
