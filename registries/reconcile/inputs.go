package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/internal/kube"
)

// Inputs is all that the sources say.
type Inputs struct {
	Hub federation.ClusterID
	// Namespace is that of the Secrets which name clusters.
	Namespace string
	Config    []Claim // in the order of the file
	Folder    map[federation.ClusterID]Claim
	Objects   map[federation.ClusterID]Claim
	Sample    []Claim // attached where there was never a Cluster object
	Secrets   map[federation.ClusterID]Secrets

	// FolderLooked and ObjectsLooked: the source was looked at since the start.
	// FolderRead: and the folder could be read, so that what it lacks is not there.
	FolderLooked, FolderRead, ObjectsLooked bool
}

// Secrets is what is known of the Secrets of one cluster that name further clusters.
type Secrets struct {
	Asked bool // they were asked for, whatever came of it
	Read  bool
	Named []Entry // sorted
	// Waiting are the clusters that they named before the start. They count until the
	// Secrets are read.
	Waiting []federation.ClusterID
	// Unreadable is why they cannot be read; what was named stays.
	Unreadable string
}

// Entry is one entry of one Secret: a cluster by its ID and its kubeconfig.
type Entry struct {
	Secret, Key string
	Digest      string // of the kubeconfig
	Claim       Claim
}

// maxRemotes bounds the clusters that the Secrets of one cluster may name.
const maxRemotes = 500

// entries are those that name clusters, and the problems of the others by name.
func (in Inputs) entries(s Secrets) (valid []Entry, wrong map[string]federation.Problem) {
	wrong = map[string]federation.Problem{}
	for i, e := range s.Named {
		why := ""
		err := kube.ValidateClusterID(e.Key)
		switch {
		case i >= maxRemotes:
			why = fmt.Sprintf("the Secrets of a cluster may name %d others; this one is skipped", maxRemotes)
		case err != nil:
			why = "the key is no cluster ID: " + err.Error()
		case federation.ClusterID(e.Key) == in.Hub:
			why = "the hub itself has this ID; give the cluster another one"
		default:
			valid = append(valid, e)
			continue
		}
		wrong["remote "+e.Secret+" "+e.Key] = federation.Problem{
			Code: "REMOTE_SECRET_INVALID", Object: "Secret " + e.Secret, Field: fmt.Sprintf("data[%.80q]", e.Key), Message: why,
		}
	}
	if s.Unreadable != "" {
		wrong["remote all"] = federation.Problem{Code: "REMOTE_SECRETS_UNREADABLE", Object: "Secrets in " + in.Namespace, Message: s.Unreadable + "; what they named stays"}
	}
	return valid, wrong
}

// waiting are the clusters that count although the Secrets were not read.
func (s Secrets) waiting() []federation.ClusterID {
	if s.Read {
		return nil
	}
	return s.Waiting
}

// operators are the clusters that operators attached: only their Secrets count.
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

// ended are the clusters whose Secrets count no more, because no operator has
// attached them. What waits is kept until all places could be read.
func (in Inputs) ended() []federation.ClusterID {
	var ended []federation.ClusterID
	operators := in.operators()
	for _, holder := range slices.Sorted(maps.Keys(in.Secrets)) {
		waits := len(in.Secrets[holder].waiting()) > 0 && !in.FolderRead
		if in.started() && !operators[holder] && !waits {
			ended = append(ended, holder)
		}
	}
	return ended
}

// claims are those of all sources by ID, the first one first, and the problems of
// what is not a claim: by the cluster at which they are shown, and by name. The Secrets
// of those that ended name none.
func (in Inputs) claims(ended []federation.ClusterID) (of map[federation.ClusterID][]Attachment, problems map[federation.ClusterID]map[string]federation.Problem) {
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
	for holder, s := range in.Secrets {
		if slices.Contains(ended, holder) {
			continue
		}
		entries, wrong := in.entries(s)
		for _, e := range entries {
			add(e.Claim, secretSource(holder, e.Secret))
		}
		for _, id := range s.waiting() {
			add(unreadClaim(id, holder), unreadSource(holder))
		}
		problems[holder] = wrong
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
