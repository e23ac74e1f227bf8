package resource

import "isthmus.dev/isthmus/federation"

// Reason says why something of the snapshot is not in a resource.
type Reason struct {
	Code    string // stable, upper case
	Message string
	Shard   federation.ShardKey // whose endpoint; zero where no endpoint is meant
	Address federation.Address
	// Endpoint is the endpoint itself, and Cause the object because of which it is
	// excluded, or that is excluded itself, where there is one.
	Endpoint *federation.Endpoint
	Cause    federation.ObjectKey
	// Service is the one that is excluded, where one is.
	Service federation.ServiceKey
	// Related are other objects that have a part in it, such as one that comes first.
	Related []federation.ObjectKey
}

// The codes of reasons.
const (
	ReasonUnhealthy           = "UNHEALTHY"              // the registry says that the endpoint is unhealthy
	ReasonPortNotDeclared     = "PORT_NOT_DECLARED"      // the endpoint's cluster does not declare the port
	ReasonPortNotServed       = "PORT_NOT_SERVED"        // the endpoint does not listen for the port
	ReasonHostname            = "HOSTNAME"               // a DNS name among addresses that no proxy resolves
	ReasonSocket              = "SOCKET"                 // a unix socket where a name or an IP address is needed
	ReasonInvalidAddress      = "INVALID_ADDRESS"        // no address at all, or port 0
	ReasonDuplicateAddress    = "DUPLICATE_ADDRESS"      // another endpoint has the same address and port
	ReasonOneAddressOnly      = "ONE_ADDRESS_ONLY"       // the resolution uses the first name only
	ReasonHostnameTaken       = "HOSTNAME_TAKEN"         // a service of the same hostname comes first
	ReasonVIPTaken            = "VIP_TAKEN"              // a service with the same VIP and port comes first
	ReasonDomainTaken         = "DOMAIN_TAKEN"           // a service with the same short name or VIP comes first
	ReasonNoDestination       = "NO_DESTINATION"         // where a request should go does not exist, or is not known to the proxy
	ReasonGatewayConflict     = "GATEWAY_CONFLICT"       // an older Gateway, or an earlier server, has the port or the host
	ReasonPortReserved        = "PORT_RESERVED"          // the proxy or the agent beside it listens at the port already
	ReasonOtherNetwork        = "OTHER_NETWORK"          // the endpoint is not of the router's own network
	ReasonSNIConflict         = "SNI_CONFLICT"           // connections to it would ask for the same server name as others
	ReasonClusterLocal        = "CLUSTER_LOCAL"          // the host is served by the proxy's own cluster only
	ReasonNoShare             = "NO_SHARE"               // requests are distributed over other localities than the endpoint's
	ReasonUnknownNetwork      = "UNKNOWN_NETWORK"        // the endpoint's label names a network that does not exist
	ReasonNoMutualTLS         = "NO_MUTUAL_TLS"          // the endpoint does not take mutual TLS, without which nothing comes from other networks
	ReasonNoIdentity          = "NO_IDENTITY"            // the proxy has no identity with which it could speak mutual TLS to other networks
	ReasonMutualTLSOff        = "MUTUAL_TLS_OFF"         // a rule has callers speak something else than mutual TLS of the mesh
	ReasonNoGatewayAddress    = "NO_GATEWAY_ADDRESS"     // no gateway of the endpoint's network has an address that may be used
	ReasonNoGatewayForNetwork = "NO_GATEWAY_FOR_NETWORK" // the gateways of the endpoint's network may not be entered from the proxy's
	ReasonNoProvider          = "NO_PROVIDER"            // the provider that a policy names cannot be asked
	ReasonNoKeys              = "NO_KEYS"                // there are no keys to verify tokens by, all of which are refused
	ReasonOldKeys             = "OLD_KEYS"               // the keys to verify tokens by cannot be fetched again
	ReasonNoTokens            = "NO_TOKENS"              // routes depend on claims of tokens that no RequestAuthentication verifies
	ReasonPatchInvalid        = "PATCH_INVALID"          // what a patch would make cannot be sent
	ReasonPatchMatchesNothing = "PATCH_MATCHES_NOTHING"  // no proxy has what a patch is about
	ReasonInvalidRule         = "INVALID_RULE"           // the object holds a value that Envoy would refuse
)

// The codes of reasons that come of DestinationRules.
const (
	ReasonRuleIgnored = "RULE_IGNORED"      // an older rule says it already, or what the rule says cannot be
	ReasonSubset      = "SUBSET"            // the endpoint is not of the subset
	ReasonTLS         = "TLS_NOT_AVAILABLE" // the rule demands TLS that cannot be had: nothing is sent in plain text instead
)

// ReasonProxyless is the code of reasons for what gRPC clients do not do.
const ReasonProxyless = "NOT_IN_GRPC"

// ReasonPatchMatched is the code of reasons that tell of a patch that matched. It is not a problem, and is
// not shown: without it, the patch matches nothing.
const ReasonPatchMatched = "patch matched" // in lower case: no client sees it
