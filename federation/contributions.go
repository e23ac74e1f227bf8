package federation

// contributions are what registries say of services, and the services that must be
// merged again for it before a version is whole.
type contributions struct {
	services *servicesTxn // as they were merged last
	dirty    map[ServiceKey]bool
	said     map[ServiceKey]ShardSet // what registries say of them now, where they say something else
	rebound  bool                    // bindings or services came or went, and with them circles
}

// of is what registries say of the service now.
func (c *contributions) of(key ServiceKey) ShardSet {
	if said, ok := c.said[key]; ok {
		return said
	}
	if svc, ok := c.services.Get(key.sortKey()); ok {
		return svc.Shards
	}
	return nil
}

// set sets the shard to what its source reports about the service; nil: nothing.
func (c *contributions) set(key ServiceKey, source ShardKey, shard *Shard) {
	shards, member := c.of(key), source.prefix()+key.sortKey()
	c.rebound = c.rebound || shard == nil || shards.Of(source) == nil
	c.dirty[key] = true
	c.said[key] = shards.with(source, shard)
	if shard == nil {
		c.services.members.Delete(member)
	} else {
		c.services.members.Set(member, struct{}{})
	}
}

// markAll marks every service to be merged again; settings and places need it.
func (c *contributions) markAll() {
	c.services.Walk(func(_ string, svc *Service) bool { c.dirty[svc.Key] = true; return false })
}

// markCluster marks every service of the cluster to be merged again.
func (c *contributions) markCluster(id ClusterID) {
	for key := range c.services.from(clusterPrefix(id)) {
		c.dirty[key] = true
	}
}

// clear empties the marks when everything was merged.
func (c *contributions) clear() {
	c.dirty, c.said, c.rebound = map[ServiceKey]bool{}, map[ServiceKey]ShardSet{}, false
}
