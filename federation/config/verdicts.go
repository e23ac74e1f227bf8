package config

import (
	"fmt"
	"net/url"
	"time"

	"isthmus.dev/isthmus/federation"
)

// GatewayHealthKey names what the hub found, one object for each observer and for
// each of the two verdicts: no two hubs write the same object.
func GatewayHealthKey(hub string, observer federation.NetworkID, reachable bool) federation.ObjectKey {
	name := fmt.Sprintf("%s.%t.%s", hub, reachable, url.PathEscape(string(observer)))
	return federation.ObjectKey{Group: federation.MeshGroup, Kind: federation.GatewayHealthKind.Name, Name: name}
}

// NewGatewayHealth is the object that keeps what a hub, one of several over one
// store, found of gateways.
func NewGatewayHealth(hub string, found federation.GatewayHealth) (*Object, error) {
	return newInternal(GatewayHealthKey(hub, found.Observer, found.Reachable), found)
}

func (h *held) health() *federation.GatewayHealth {
	if h == nil || h.shown == nil {
		return nil
	}
	found, _ := h.shown.Spec.(*federation.GatewayHealth)
	return found
}

func waySortKey(way federation.VerdictKey, object string) string {
	return way.Gateway.String() + nul + string(way.Observer) + nul + object
}

// findings stores what a hub found, in the place of what it found before.
func (d *draft) findings(key federation.ObjectKey, old, now *held) {
	if before := old.health(); before != nil {
		for gateway := range before.Since {
			way := federation.VerdictKey{Observer: before.Observer, Gateway: gateway}
			d.opinions.Delete(waySortKey(way, key.Name))
			d.judged[way] = true
		}
	}
	if after := now.health(); after != nil {
		for gateway, since := range after.Since {
			way := federation.VerdictKey{Observer: after.Observer, Gateway: gateway}
			d.opinions.Set(waySortKey(way, key.Name), federation.Verdict{Observer: way.Observer, Reachable: after.Reachable, Since: since})
			d.judged[way] = true
		}
	}
}

// agree makes one verdict of what the hubs found: a gateway is reachable if
// anybody reached it, since the first did; else it is not since the last found so.
// Whatever comes first, the verdict is the same.
func (d *draft) agree() {
	for way := range d.judged {
		agreed, known := federation.Verdict{Observer: way.Observer}, false
		d.opinions.WalkPrefix(waySortKey(way, ""), func(_ string, v federation.Verdict) bool {
			switch {
			case !known, v.Reachable && !agreed.Reachable:
				agreed, known = v, true
			case v.Reachable == agreed.Reachable:
				agreed.Since = sooner(agreed.Since, v.Since, v.Reachable)
			}
			return false
		})
		if known {
			d.verdicts.put(way, agreed)
		} else {
			d.verdicts.drop(way)
		}
	}
}

// sooner is the earlier of the two, or the later.
func sooner(a, b time.Time, want bool) time.Time {
	if a.Before(b) == want {
		return a
	}
	return b
}
