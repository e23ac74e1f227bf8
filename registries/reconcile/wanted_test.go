package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
	"isthmus.dev/isthmus/registries"
)

// calls are what a plan has the registries do.
type calls struct{ all []string }

func (c *calls) say(format string, args ...any) { c.all = append(c.all, fmt.Sprintf(format, args...)) }

func (c *calls) Attach(of registries.Cluster) {
	confirmed := ""
	if of.Confirmed {
		confirmed = " confirmed"
	}
	c.say("attach %s %s of %s%s", of.ID, of.Fingerprint, of.Owner, confirmed)
}

func (c *calls) Refuse(id federation.ClusterID, _ federation.ClusterSpec, why string) {
	c.say("refuse %s: %s", id, why)
}
func (c *calls) Detach(id federation.ClusterID)          { c.say("detach %s", id) }
func (c *calls) Leaving(id federation.ClusterID, _ bool) { c.say("%s stays", id) }
func (c *calls) Forget(owner string)                     { c.say("forget %s", owner) }
func (c *calls) Saved() ([]registries.Saved, error)      { return nil, nil }
func (c *calls) Problem(id federation.ClusterID, _ string, p *federation.Problem) {
	if p == nil {
		c.say("%s: no problem", id)
		return
	}
	c.say("%s: %s %s", id, p.Code, p.Field)
}

// says are the inputs of a row: what each source says. Where it matters the
// fingerprint tells which of them has the ID.
type says struct {
	config, folder, objects, sample []Claim
	secrets, profiles               map[string]Remotes
	notLooked, folderUnread         bool
}

func (s says) inputs() Inputs {
	in := Inputs{
		Hub: "hub", Namespaces: map[attach.RemoteKind]string{attach.Secrets: "istio-system", attach.Profiles: "fleet"}, Config: s.config,
		Sample: s.sample, Folder: map[federation.ClusterID]Claim{}, Objects: map[federation.ClusterID]Claim{},
		Remotes: map[Holder]Remotes{}, FolderLooked: true, FolderRead: !s.folderUnread, ObjectsLooked: !s.notLooked,
	}
	for _, c := range s.folder {
		in.Folder[c.ID] = c
	}
	for _, c := range s.objects {
		in.Objects[c.ID] = c
	}
	for id, of := range s.secrets {
		in.Remotes[holder(id)] = of
	}
	for id, of := range s.profiles {
		in.Remotes[Holder{federation.ClusterID(id), attach.Profiles}] = of
	}
	return in
}

// holder is a cluster whose Secrets name others.
func holder(id string) Holder { return Holder{federation.ClusterID(id), attach.Secrets} }

func named(id, fingerprint string, aliases ...string) Claim {
	c := claimOf(id, fingerprint, nil)
	c.Spec.Aliases = federation.NewAliases(aliases)
	return c
}

func one(id, fingerprint string) []Claim { return []Claim{named(id, fingerprint)} }

// secret is what is read of the Secrets of a cluster: an entry for each ID.
func secret(fingerprint string, ids ...string) Remotes {
	s := Remotes{Asked: true, Read: true}
	for _, id := range ids {
		s.Named = append(s.Named, Entry{Object: "istio-system/s", Key: id, Claim: named(id, fingerprint)})
	}
	return s
}

func of(holder string, s Remotes) map[string]Remotes { return map[string]Remotes{holder: s} }

// badFile is what the folder says about a kubeconfig that executes a program.
func badFile(id string) Claim {
	const text = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
  clusters: [{name: c, cluster: {server: "https://192.0.2.1"}}], users: [{name: u, user: {exec: {command: /bin/true}}}]}`
	return Folder{}.claim(kube.FileEvent{ID: id, Kind: kube.FileReady, Files: []string{id + ".yaml"}, Content: []byte(text)})
}

// TestWantedClusters is what each change of the sources leads to: the calls that lead
// from one plan to the next, in order. The first step starts from nothing.
func TestWantedClusters(t *testing.T) {
	duplicate := "DUPLICATE_CLUSTER_ID "
	waiting := Remotes{Waiting: []federation.ClusterID{"w"}}
	for name, row := range map[string]struct {
		steps []says
		want  []string // of each step
	}{
		"each source attaches": {
			[]says{{config: one("a", "1"), folder: one("b", "2"), objects: one("c", "3"), secrets: of("a", secret("4", "d"))}},
			[]string{"attach a 1 of config; attach b 2 of folder; attach c 3 of object; attach d 4 of Secrets of a"},
		},
		"the config file comes before the folder, Cluster objects and Secrets": {
			[]says{{
				config: []Claim{named("a", "1"), named("x", "1")}, folder: one("x", "2"), objects: one("x", "3"),
				secrets: of("a", secret("4", "x")),
			}},
			[]string{"attach a 1 of config; attach x 1 of config; x: " + duplicate + "--kubeconfig-dir; x: " + duplicate + "a Cluster object; x: " +
				duplicate + "the Secret istio-system/s of cluster a"},
		},
		"of two lines of the config file the first has the ID": {
			[]says{{config: []Claim{named("x", "1"), named("x", "2")}}},
			[]string{"attach x 1 of config; x: " + duplicate + "clusters[1].id"},
		},
		"the next source takes over without a detach": {
			[]says{{folder: one("x", "1"), objects: one("x", "2")}, {objects: one("x", "2")}, {}},
			[]string{"attach x 1 of folder; x: " + duplicate + "a Cluster object", "x stays; attach x 2 of object; x: no problem", "detach x"},
		},
		"nothing new, nothing done": {
			[]says{{config: one("x", "1")}, {config: one("x", "1")}},
			[]string{"attach x 1 of config", ""},
		},
		"rotation: another kubeconfig reattaches": {
			[]says{{config: one("x", "1")}, {config: one("x", "2")}},
			[]string{"attach x 1 of config", "attach x 2 of config"},
		},
		"a bad kubeconfig is refused, has the ID, and is attached once it is good": {
			[]says{{folder: []Claim{badFile("x")}, objects: one("x", "2")}, {folder: one("x", "1"), objects: one("x", "2")}},
			[]string{
				"refuse x: --kubeconfig-dir: x.yaml: kubeconfig refused: users[0].user.exec: nothing is ever executed; use a token or a client certificate as inline data (exec); x: " + duplicate + "a Cluster object",
				"attach x 1 of folder; x: " + duplicate + "a Cluster object",
			},
		},
		"a bad kubeconfig after a good one is refused: what runs goes on": {
			[]says{{folder: one("x", "1")}, {folder: []Claim{Refuse("x", federation.ClusterSpec{Provider: federation.Kubernetes}, "bad")}}},
			[]string{"attach x 1 of folder", "refuse x: bad"},
		},
		"an operator who takes an ID from a Secret confirms the cluster": {
			[]says{
				{config: one("a", "1"), secrets: of("a", secret("2", "x"))},
				{config: one("a", "1"), secrets: of("a", secret("2", "x")), objects: one("x", "3")},
			},
			[]string{
				"attach a 1 of config; attach x 2 of Secrets of a",
				"x stays; attach x 3 of object confirmed; x: " + duplicate + "the Secret istio-system/s of cluster a",
			},
		},
		"a Secret that takes an ID from an operator confirms nothing": {
			[]says{
				{config: one("a", "1"), secrets: of("a", secret("2", "x")), objects: one("x", "3")},
				{config: one("a", "1"), secrets: of("a", secret("2", "x"))},
			},
			[]string{
				"attach a 1 of config; attach x 3 of object; x: " + duplicate + "the Secret istio-system/s of cluster a",
				"x stays; attach x 2 of Secrets of a; x: no problem",
			},
		},
		"Secrets of a cluster count as long as an operator has it attached": {
			[]says{{objects: one("a", "1"), secrets: of("a", secret("2", "x"))}, {secrets: of("a", secret("2", "x"))}},
			[]string{"attach a 1 of object; attach x 2 of Secrets of a", "detach a; detach x"},
		},
		"Secrets of a cluster that a Secret named count for nothing": {
			[]says{{config: one("a", "1"), secrets: map[string]Remotes{"a": secret("2", "x"), "x": secret("3", "y")}}},
			[]string{"attach a 1 of config; attach x 2 of Secrets of a"},
		},
		"entries that cannot be clusters are problems of the cluster with the Secrets": {
			[]says{
				{config: one("a", "1"), secrets: of("a", secret("2", "No.ID", "hub", "x"))},
				{config: one("a", "1"), secrets: of("a", secret("2", "x"))},
			},
			[]string{
				`attach a 1 of config; a: REMOTE_SECRET_INVALID data["No.ID"]; a: REMOTE_SECRET_INVALID data["hub"]; attach x 2 of Secrets of a`,
				"a: no problem; a: no problem",
			},
		},
		"ClusterProfiles come after Secrets, and both of one cluster count": {
			[]says{
				{config: one("a", "1"), secrets: of("a", secret("2", "x")), profiles: of("a", secret("3", "x", "y", "No.ID"))},
				{config: one("a", "1"), profiles: of("a", secret("3", "x"))},
			},
			[]string{
				"attach a 1 of config; a: CLUSTER_PROFILE_INVALID metadata.name; attach x 2 of Secrets of a; x: " + duplicate +
					"the ClusterProfile istio-system/s of cluster a; attach y 3 of ClusterProfiles of a",
				"detach y; a: no problem; x stays; attach x 3 of ClusterProfiles of a; x: no problem",
			},
		},
		"known from before the start until the Secrets are read": {
			[]says{
				{notLooked: true, secrets: of("a", waiting)},
				{objects: one("a", "1"), secrets: of("a", waiting)},
				{objects: one("a", "1"), secrets: of("a", Remotes{Waiting: waiting.Waiting, Unreadable: "forbidden"})},
				{objects: one("a", "1"), secrets: of("a", secret("2", "w"))},
				{objects: one("a", "1"), secrets: of("a", secret("2"))},
			},
			[]string{
				"attach w not read yet of Secrets of a", "attach a 1 of object", "a: REMOTE_SECRETS_UNREADABLE ",
				"a: no problem; w stays; attach w 2 of Secrets of a", "detach w",
			},
		},
		"known from before the start, and the cluster with the Secrets is gone": {
			[]says{{notLooked: true, secrets: of("a", waiting)}, {folderUnread: true, secrets: of("a", waiting)}, {secrets: of("a", waiting)}},
			[]string{"attach w not read yet of Secrets of a", "", "detach w"},
		},
		"known from before the start, and now an operator's": {
			[]says{{notLooked: true, secrets: of("a", waiting)}, {objects: []Claim{named("a", "1"), named("w", "2")}, secrets: of("a", waiting)}},
			[]string{
				"attach w not read yet of Secrets of a",
				"attach a 1 of object; w stays; attach w 2 of object confirmed; w: " + duplicate + "the Secrets of cluster a, which were not read yet",
			},
		},
		"the sample comes after the objects were looked at, and last": {
			[]says{{sample: one("s", "1"), notLooked: true}, {sample: one("s", "1")}, {sample: one("s", "1"), objects: one("s", "2")}},
			[]string{"", "attach s 1 of ", "s stays; attach s 2 of object confirmed; s: " + duplicate + "the sample"},
		},
		"an alias names the first, and an ID is nobody's alias": {
			[]says{
				{config: []Claim{named("a", "1", "k", "b")}, objects: []Claim{named("b", "2", "k")}},
				{objects: []Claim{named("b", "2", "k")}},
			},
			[]string{
				"attach a 1 of config; a: DUPLICATE_CLUSTER_ALIAS aliases; attach b 2 of object; b: DUPLICATE_CLUSTER_ALIAS aliases",
				"detach a; attach b 2 of object; b: no problem",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := Wanted(Inputs{})
			for i, step := range row.steps {
				next, did := Wanted(step.inputs()), &calls{}
				next.apply(before, did)
				if got := strings.Join(did.all, "; "); got != row.want[i] {
					t.Errorf("step %d:\n got  %s\n want %s", i, got, row.want[i])
				}
				before = next
			}
		})
	}
}

// TestTooManyRemotes: one cluster names at most 500 others.
func TestTooManyRemotes(t *testing.T) {
	var ids []string
	for i := range maxRemotes + 2 {
		ids = append(ids, fmt.Sprintf("c%03d", i))
	}
	p := Wanted(says{config: one("a", "1"), secrets: of("a", secret("2", ids...))}.inputs())
	if len(p.Clusters) != maxRemotes+1 || len(p.Problems["a"]) != 2 {
		t.Errorf("%d clusters and %d problems", len(p.Clusters), len(p.Problems["a"]))
	}
}

// TestU45TooManyRemotesDetachNone: a cluster that was attached before a holder named too many stays, and the place of one that
// goes is given to the first that waits. A restart changes nothing.
func TestU45TooManyRemotesDetachNone(t *testing.T) {
	named := func(names ...string) (all []attach.Remote) {
		for _, name := range names {
			all = append(all, attach.Remote{Object: "ns/" + name, Key: name, Refused: "no token"})
		}
		return all
	}
	var many []string
	for i := range maxRemotes + 2 {
		many = append(many, fmt.Sprintf("c%03d", i))
	}
	for name, saved := range map[string][]federation.ClusterID{"running": nil, "restarted": {"west"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := start(t, Start{Config: []Claim{cluster("home", "h", 9, 1)}})
				defer h.stop()
				by := Holder{"home", attach.Profiles}
				say := func(all []attach.Remote) map[federation.ClusterID]Attachment {
					h.Named(by.Cluster, by.By, all)
					synctest.Wait()
					return h.Reconciler.Latest().Clusters
				}
				if saved == nil {
					say(named("west"))
				} else {
					h.say(func(in *Inputs) { in.Remotes[by] = Remotes{Waiting: saved} })
				}
				all := say(named(append(many, "west")...))
				if _, stays := all["west"]; !stays || len(all) != maxRemotes+1 {
					t.Errorf("%d clusters, the one that was attached among them: %t", len(all), stays)
				}
				last := federation.ClusterID(many[maxRemotes-1])
				if _, early := all[last]; early {
					t.Errorf("%s is attached beyond the limit", last)
				}
				all = say(named(many...))
				if _, there := all[last]; !there || len(all) != maxRemotes+1 {
					t.Errorf("%d clusters, the next one among them: %t", len(all), there)
				}
			})
		})
	}
}

// TestWantedDoesNotDependOnTheOrderOfMaps: the same inputs have the same plan.
func TestWantedDoesNotDependOnTheOrderOfMaps(t *testing.T) {
	in := says{
		config: one("a", "1"), folder: []Claim{named("b", "1", "k"), named("c", "1", "k")},
		objects: []Claim{named("b", "2"), named("d", "2", "k")},
		secrets: of("a", secret("3", "b", "c", "e")),
	}.inputs()
	var first []string
	for range 50 {
		did := &calls{}
		Wanted(in).apply(Wanted(Inputs{}), did)
		if first == nil {
			first = did.all
		}
		if !slices.Equal(first, did.all) {
			t.Fatalf("once\n%s\nonce\n%s", strings.Join(first, "; "), strings.Join(did.all, "; "))
		}
	}
}
