package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/attach"
	"isthmus.dev/isthmus/internal/kube"
)

// Inputs is all that the sources say.
type Inputs struct {
	Hub federation.ClusterID
	// Namespaces are those of the objects which name clusters.
	Namespaces map[attach.RemoteKind]string
	Config     []Claim // in the order of the file
	Folder     map[federation.ClusterID]Claim
	Objects    map[federation.ClusterID]Claim
	Sample     []Claim // attached where there was never a Cluster object
	Remotes    map[Holder]Remotes

	// FolderLooked and ObjectsLooked: the source was looked at since the start.
	// FolderRead: and the folder could be read, so that what it lacks is not there.
	FolderLooked, FolderRead, ObjectsLooked bool
}

// Remotes is what is known of the objects of one holder that name further clusters.
type Remotes struct {
	Asked bool // they were asked for, whatever came of it
	Read  bool
	Named []Entry // those that were attached before, then the others, each sorted
	// Waiting are the clusters that they named before the start. They count until the
	// objects are read.
	Waiting []federation.ClusterID
	// Unreadable is why they cannot be read; what was named stays.
	Unreadable string
}

// Entry is a cluster that an object names.
type Entry struct {
	Object, Key string
	Digest      string // of the kubeconfig, or of why there is none
	Claim       Claim
}

// maxRemotes bounds the clusters that the objects of one holder may name.
const maxRemotes = 500

// entries are those that name clusters, and the problems of the others by name.
func (in Inputs) entries(h Holder) (valid []Entry, wrong map[string]federation.Problem) {
	of, c := in.Remotes[h], remoteKinds[h.By]
	wrong = map[string]federation.Problem{}
	for i, e := range of.Named {
		why := ""
		err := kube.ValidateClusterID(e.Key)
		switch {
		case i >= maxRemotes:
			why = fmt.Sprintf("the %s of a cluster may name %d others; this one is skipped", c.plural, maxRemotes)
		case err != nil:
			why = c.notID + ": " + err.Error()
		case federation.ClusterID(e.Key) == in.Hub:
			why = "the hub itself has this ID; give the cluster another one"
		default:
			valid = append(valid, e)
			continue
		}
		wrong["remote "+c.noun+" "+e.Object+" "+e.Key] = federation.Problem{
			Code: c.invalid, Object: c.noun + " " + e.Object, Field: c.at(e.Key), Message: why,
		}
	}
	if of.Unreadable != "" {
		wrong["remote "+c.plural] = federation.Problem{
			Code: c.unreadable, Object: c.plural + " in " + in.Namespaces[h.By],
			Message: of.Unreadable + "; what they named stays",
		}
	}
	return valid, wrong
}

// waiting are the clusters that count although the objects were not read.
func (s Remotes) waiting() []federation.ClusterID {
	if s.Read {
		return nil
	}
	return s.Waiting
}

// operators are the clusters that operators attached: only their objects count.
func (in Inputs) operators() map[federation.ClusterID]bool {
	all := map[federation.ClusterID]bool{}
	for _, c := range in.Config {
		all[c.ID] = true
	}
	for id := range in.Folder {
		all[id] = true
	}
	for id := range in.Objects {
		all[id] = true
	}
	return all
}

// started reports whether all places where operators name clusters were looked at.
func (in Inputs) started() bool { return in.FolderLooked && in.ObjectsLooked }

// ended are the holders whose objects count no more, because no operator has
// attached them. What waits is kept until all places could be read.
func (in Inputs) ended() []Holder {
	var ended []Holder
	operators := in.operators()
	for h, of := range in.Remotes {
		waits := len(of.waiting()) > 0 && !in.FolderRead
		if in.started() && !operators[h.Cluster] && !waits {
			ended = append(ended, h)
		}
	}
	slices.SortFunc(ended, Holder.compare)
	return ended
}

// claims are those of all sources by ID, the first one first, and the problems of
// what is not a claim: by the cluster at which they are shown, and by name. The holders
// that ended name none.
func (in Inputs) claims(ended []Holder) (of map[federation.ClusterID][]Attachment,
	problems map[federation.ClusterID]map[string]federation.Problem,
) {
	of, problems = map[federation.ClusterID][]Attachment{}, map[federation.ClusterID]map[string]federation.Problem{}
	add := func(c Claim, by Source) { of[c.ID] = append(of[c.ID], Attachment{Claim: c, Source: by}) }
	for _, c := range in.Config {
		if len(of[c.ID]) == 0 {
			add(c, configSource())
		}
	}
	for _, c := range in.Folder {
		add(c, folderSource())
	}
	for _, c := range in.Objects {
		add(c, objectSource())
	}
	if in.ObjectsLooked {
		for _, c := range in.Sample {
			add(c, sampleSource())
		}
	}
	for h, remotes := range in.Remotes {
		if slices.Contains(ended, h) {
			continue
		}
		entries, wrong := in.entries(h)
		for _, e := range entries {
			add(e.Claim, h.source(e.Object))
		}
		for _, id := range remotes.waiting() {
			add(h.unreadClaim(id), h.unreadSource())
		}
		if problems[h.Cluster] == nil {
			problems[h.Cluster] = map[string]federation.Problem{}
		}
		maps.Copy(problems[h.Cluster], wrong)
	}
	for _, all := range of {
		slices.SortFunc(all, Attachment.compare)
	}
	return of, problems
}

// duplicates are the clusters of the config file whose ID an earlier one has: by
// their field, with that of the earlier one.
func (in Inputs) duplicates() (all []duplicate) {
	first := map[federation.ClusterID]int{}
	for i, c := range in.Config {
		if at, taken := first[c.ID]; taken {
			all = append(all, duplicate{id: c.ID, field: fmt.Sprintf("clusters[%d].id", i), holder: fmt.Sprintf("clusters[%d]", at)})
			continue
		}
		first[c.ID] = i
	}
	return all
}

type duplicate struct {
	id            federation.ClusterID
	field, holder string
}

func (d duplicate) problem() federation.Problem {
	return federation.Problem{
		Code: CodeDuplicateID, Object: "cluster " + string(d.id), Field: d.field,
		Message: fmt.Sprintf("the ID %s is taken by %s; this cluster is skipped, give it another ID", d.id, d.holder),
	}
}
