package model

// ClusterConnection is a page of clusters.
type ClusterConnection struct{ Page[Cluster] }

// Edges returns the clusters of the page with their cursors.
func (c ClusterConnection) Edges() []ClusterEdge {
	return edges(c.Page, func(cursor string, node Cluster) ClusterEdge { return ClusterEdge{Cursor: cursor, Node: node} })
}

// NetworkConnection is a page of networks.
type NetworkConnection struct{ Page[Network] }

// Edges returns the networks of the page with their cursors.
func (c NetworkConnection) Edges() []NetworkEdge {
	return edges(c.Page, func(cursor string, node Network) NetworkEdge { return NetworkEdge{Cursor: cursor, Node: node} })
}

// NetworkGatewayConnection is a page of gateways.
type NetworkGatewayConnection struct{ Page[NetworkGateway] }

// Edges returns the gateways of the page with their cursors.
func (c NetworkGatewayConnection) Edges() []NetworkGatewayEdge {
	return edges(c.Page, func(cursor string, node NetworkGateway) NetworkGatewayEdge {
		return NetworkGatewayEdge{Cursor: cursor, Node: node}
	})
}

// ServiceConnection is a page of services.
type ServiceConnection struct{ Page[Service] }

// Edges returns the services of the page with their cursors.
func (c ServiceConnection) Edges() []ServiceEdge {
	return edges(c.Page, func(cursor string, node Service) ServiceEdge { return ServiceEdge{Cursor: cursor, Node: node} })
}

// EndpointConnection is a page of endpoints.
type EndpointConnection struct{ Page[Endpoint] }

// Edges returns the endpoints of the page with their cursors.
func (c EndpointConnection) Edges() []EndpointEdge {
	return edges(c.Page, func(cursor string, node Endpoint) EndpointEdge { return EndpointEdge{Cursor: cursor, Node: node} })
}

// ProblemConnection is a page of problems.
type ProblemConnection struct{ Page[Problem] }

// Edges returns the problems of the page with their cursors.
func (c ProblemConnection) Edges() []ProblemEdge {
	return edges(c.Page, func(cursor string, node Problem) ProblemEdge { return ProblemEdge{Cursor: cursor, Node: node} })
}

// ProxyConnection is a page of proxies.
type ProxyConnection struct{ Page[Proxy] }

// Edges returns the proxies of the page with their cursors.
func (c ProxyConnection) Edges() []ProxyEdge {
	return edges(c.Page, func(cursor string, node Proxy) ProxyEdge { return ProxyEdge{Cursor: cursor, Node: node} })
}

// ProxyResourceConnection is a page of what a proxy was sent.
type ProxyResourceConnection struct{ Page[ProxyResource] }

// Edges returns the resources of the page with their cursors.
func (c ProxyResourceConnection) Edges() []ProxyResourceEdge {
	return edges(c.Page, func(cursor string, node ProxyResource) ProxyResourceEdge {
		return ProxyResourceEdge{Cursor: cursor, Node: node}
	})
}

// ConfigObjectConnection is a page of configuration objects.
type ConfigObjectConnection struct{ Page[ConfigObject] }

// Edges returns the objects of the page with their cursors.
func (c ConfigObjectConnection) Edges() []ConfigObjectEdge {
	return edges(c.Page, func(cursor string, node ConfigObject) ConfigObjectEdge {
		return ConfigObjectEdge{Cursor: cursor, Node: node}
	})
}

// ProxyRolloutConnection is a page of proxies that a change concerns.
type ProxyRolloutConnection struct{ Page[ProxyRollout] }

// Edges returns the proxies of the page with their cursors.
func (c ProxyRolloutConnection) Edges() []ProxyRolloutEdge {
	return edges(c.Page, func(cursor string, node ProxyRollout) ProxyRolloutEdge {
		return ProxyRolloutEdge{Cursor: cursor, Node: node}
	})
}

// ConfigObjectRevisionConnection is a page of what was done to an object.
type ConfigObjectRevisionConnection struct {
	Page[ConfigObjectRevision]
	Compacted bool
}

// Edges returns the revisions of the page with their cursors.
func (c ConfigObjectRevisionConnection) Edges() []ConfigObjectRevisionEdge {
	return edges(c.Page, func(cursor string, node ConfigObjectRevision) ConfigObjectRevisionEdge {
		return ConfigObjectRevisionEdge{Cursor: cursor, Node: node}
	})
}

// ConfigRevisionConnection is a page of revisions of the configuration.
type ConfigRevisionConnection struct{ Page[ConfigRevision] }

// Edges returns the revisions of the page with their cursors.
func (c ConfigRevisionConnection) Edges() []ConfigRevisionEdge {
	return edges(c.Page, func(cursor string, node ConfigRevision) ConfigRevisionEdge {
		return ConfigRevisionEdge{Cursor: cursor, Node: node}
	})
}
