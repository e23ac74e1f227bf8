package xds

// clientState is which resources of a type the client has: what it was sent, what of that it
// accepted, and what it said it has.
type clientState struct {
	slots  *slots
	live   int    // slots with something sent, those apart that exist whatever the services
	sum    digest // over what was sent last
	claims int    // names of initial_resource_versions without a resource that are not answered yet
}

// sent notes that the client is sent r; nil means removed. It returns the new entry of the name.
func (c *clientState) sent(name string, r *resource) entry {
	return c.slots.update(name, func(e entry) entry {
		if e.sent != nil {
			c.sum = c.sum.minus(e.sent.hash)
			c.live -= e.sent.weight()
		}
		if r != nil {
			c.sum = c.sum.plus(r.hash)
			c.live += r.weight()
		}
		e.lapsed = e.acked != nil && (e.lapsed || r == nil)
		e.sent = r
		return e
	})
}

// accept notes that the client has accepted what the response contained.
func (c *clientState) accept(f *sentResponse) {
	accepted := make([]*resource, 0, len(f.resources))
	for _, r := range f.resources {
		has := c.slots.update(r.name, func(e entry) entry {
			switch {
			case e == (entry{}): // the client dropped it
			case sameContent(e.sent, r): // r, or that of another group which has taken the place of r's
				e.acked, e.lapsed = e.sent, false
			default:
				e.acked = r
			}
			return e
		})
		if has != (entry{}) {
			accepted = append(accepted, r)
		}
	}
	noteAccepted(accepted)
	for _, name := range f.removed {
		c.slots.update(name, func(e entry) entry {
			e.acked, e.lapsed = nil, false
			return e
		})
	}
}

// takeBack notes that the client refused r: it has what it accepted last.
func (c *clientState) takeBack(r *resource) {
	if e := c.slots.get(r.name); e.sent == r {
		c.sent(r.name, e.acked)
	}
}

// forget is that the client dropped the resource itself.
func (c *clientState) forget(name string) {
	c.sent(name, nil)
	c.slots.set(name, entry{})
	c.slots.forgetRewarm(name)
}

// resources returns everything that the client was sent and has not been told to remove, by name.
func (c *clientState) resources() []*resource {
	var all []*resource
	for _, e := range c.slots.all() {
		if e.sent != nil {
			all = append(all, e.sent)
		}
	}
	sortResources(all)
	return all
}

// usage is the clusters that the client may use because of what it was sent.
func (c *clientState) usage() usage {
	u := usage{single: map[string]struct{}{}}
	for _, e := range c.slots.all() {
		u.add(e.sent)
		if e.acked != e.sent {
			u.add(e.acked)
		}
	}
	return u
}

// claim records what the client says it has.
func (c *clientState) claim(initial map[string]string) {
	for name := range initial {
		if !c.slots.names.exists(name) {
			c.claims++
		}
	}
	if err := c.slots.account.addClaims(c.claims); err != nil {
		c.claims, c.slots.excess = 0, err
		return
	}
	for name, version := range initial {
		c.live += c.slots.claim(name, version).weight()
		if c.slots.excess != nil {
			return
		}
	}
}

// dropClaims notes that the client has answered what it was sent because of its claims.
func (c *clientState) dropClaims() {
	c.slots.account.removeClaims(c.claims)
	c.claims = 0
}

// close gives back what the client's names hold.
func (c *clientState) close() {
	c.dropClaims()
	c.slots.close()
}
