package ingress

import (
	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
)

// Translate is what Ingresses and IngressClasses mean by the settings of the state and the services
// of the snapshot, and what is wrong with them: what a Source gives that has read them.
func Translate(state *config.State, snapshot *federation.Snapshot, read []*config.Object) (objects []*config.Object,
	problems []config.Problem,
) {
	b := newTranslations()
	b.follow(snapshot)
	if now, readable := settingsIn(state); readable {
		b.configure(now)
	}
	events := make([]config.Event, len(read))
	for i, o := range read {
		events[i].New = o
	}
	b.take(events)
	for _, e := range b.change(1) {
		objects = append(objects, e.New)
	}
	return objects, b.set.Problems()
}
