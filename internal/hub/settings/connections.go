package settings

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"isthmus.dev/isthmus/internal/hub/listeners"
	"isthmus.dev/isthmus/internal/server"
	"isthmus.dev/isthmus/xds"
)

// Shares of the file descriptors that the process may have. What connections do not get stays for the hub itself: the
// store, the links to clusters, certificates. Each listener stops at another number in use, so that one cannot take
// what the next needs, however many the hub itself has open: xDS leaves a tenth to GraphQL, both leave some to health.
const (
	inUseXDS       = 70 // percent
	ForConnections = 80 // of xDS and GraphQL together
	inUseHealth    = 85 // of all listeners together

	forXDS     = 60
	forGraphQL = 20
	forHealth  = 5

	mostXDS     = 10_000
	mostGraphQL = 1000
	mostHealth  = 200

	minIdle, maxIdle = time.Second, time.Hour

	defaultPartialMessages = 128 << 20
)

// connections are the settings for a process that may have so many file descriptors; 0: it is not known.
func (c configFile) connections(descriptors int) (listeners.Limits, xds.Limits, error) {
	share := func(percent, most int) int {
		if descriptors == 0 {
			return most
		}
		return max(1, min(most, descriptors*percent/100))
	}
	limits := func(total, perSource, percent, most, inUse int) server.ConnectionLimits {
		total = cmp.Or(total, share(percent, most))
		return server.ConnectionLimits{
			Total: total, PerSource: cmp.Or(perSource, max(1, total/4)), Descriptor: descriptors * inUse / 100,
		}
	}
	s := listeners.Limits{
		GraphQL: limits(c.GraphQL.MaxConnections, c.GraphQL.MaxConnectionsPerSource, forGraphQL, mostGraphQL, ForConnections),
		XDS:     limits(c.XDS.MaxConnections, c.XDS.MaxConnectionsPerSource, forXDS, mostXDS, inUseXDS),
		Health:  limits(0, 0, forHealth, mostHealth, inUseHealth),
		XDSIdle: server.DefaultGRPCIdle, PartialMessages: cmp.Or(c.XDS.MaxPartialMessageBytes, defaultPartialMessages),
	}
	streams := xds.Limits{
		Streams: c.XDS.MaxStreamsPerIdentity, Names: c.XDS.MaxNamesPerType,
		Variants: c.XDS.MaxVariantsPerIdentity, UnknownNames: c.XDS.MaxUnknownNameBytesPerIdentity,
		NodeBytes: c.XDS.MaxNodeBytesPerIdentity,
	}
	err := errors.Join(
		notNegative("graphql.maxConnections", c.GraphQL.MaxConnections), notNegative("graphql.maxConnectionsPerSource",
			c.GraphQL.MaxConnectionsPerSource),
		notNegative("xds.maxConnections", c.XDS.MaxConnections), notNegative("xds.maxConnectionsPerSource", c.XDS.MaxConnectionsPerSource),
		notNegative("xds.maxStreamsPerIdentity", c.XDS.MaxStreamsPerIdentity), notNegative("xds.maxNamesPerType", c.XDS.MaxNamesPerType),
		notNegative("xds.maxVariantsPerIdentity", c.XDS.MaxVariantsPerIdentity), notNegative("xds.maxUnknownNameBytesPerIdentity",
			c.XDS.MaxUnknownNameBytesPerIdentity),
		notNegative("xds.maxPartialMessageBytes", c.XDS.MaxPartialMessageBytes),
		notNegative("xds.maxNodeBytesPerIdentity", c.XDS.MaxNodeBytesPerIdentity),
	)
	if c.XDS.IdleTimeout == "" {
		return s, streams, err
	}
	idle, wrong := time.ParseDuration(c.XDS.IdleTimeout)
	if wrong != nil || idle < minIdle || idle > maxIdle {
		return s, streams, errors.Join(err, fmt.Errorf("xds.idleTimeout %q: use a duration from 1s to 1h, such as 15s", c.XDS.IdleTimeout))
	}
	s.XDSIdle = idle
	return s, streams, err
}

func notNegative(field string, value int) error {
	if value < 0 {
		return fmt.Errorf("%s: %d is negative; use 1 or more, or omit it for the default", field, value)
	}
	return nil
}
