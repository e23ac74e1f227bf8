package graph

import (
	"context"
	"iter"
	"slices"
	"strings"

	"isthmus.dev/isthmus/federation"
	"isthmus.dev/isthmus/federation/config"
	"isthmus.dev/isthmus/federation/config/apply"
	"isthmus.dev/isthmus/federation/config/kind"
	"isthmus.dev/isthmus/graph/model"
)

// ConfigObjects lists the objects that are in force and fit.
func (q query) ConfigObjects(
	ctx context.Context, first *int, after *string, last *int, before *string,
	filter *model.ConfigObjectFilter, orderBy *model.ConfigObjectOrder, _ *string,
) (*model.ConfigObjectConnection, error) {
	view, err := configured(ctx)
	if err != nil {
		return nil, err
	}
	var by order[model.ConfigObject]
	if orderBy != nil {
		by = newOrder(orderBy.Field, orderBy.Direction, objectOrders)
	}
	window, err := window("configObjects"+by.name, first, after, last, before)
	if err != nil {
		return nil, err
	}
	items := objects(view, filter)
	if filter != nil && (filter.Rejected != nil || filter.HasFindings != nil) {
		numbers := q.overviews.objectNumbers(ctx, q.Config)
		items = fitting(items, func(o model.ConfigObject) bool {
			return (filter.Rejected == nil || *filter.Rejected == numbers.isRejected[o.Of.Key]) &&
				(filter.HasFindings == nil || *filter.HasFindings == numbers.hasFindings[o.Of.Key])
		})
	}
	list := model.List[model.ConfigObject]{
		Name: "configObjects", Key: model.ConfigObject.Key, Items: items, Size: manifestSize, MaxPage: maxManifestPage,
	}
	return &model.ConfigObjectConnection{Page: by.page(list, window)}, nil
}

// objectOrders are what configuration objects can be sorted by.
var objectOrders = map[model.ConfigObjectOrderField]func(model.ConfigObject) string{
	model.ConfigObjectOrderFieldName: model.ConfigObject.Name,
	model.ConfigObjectOrderFieldNamespace: func(o model.ConfigObject) string {
		return o.Namespace() + "\x00" + o.Name()
	},
	model.ConfigObjectOrderFieldRevision: func(o model.ConfigObject) string { return number(o.Of.Revision) },
}

func objects(view *config.View, filter *model.ConfigObjectFilter) iter.Seq[model.ConfigObject] {
	all := view.State.Objects()
	if filter != nil && filter.Group != nil && filter.Kind != nil {
		all = view.State.ObjectsOf(federation.Kind{Group: *filter.Group, Name: *filter.Kind})
	}
	return func(yield func(model.ConfigObject) bool) {
		for of := range all {
			if kind.Internal(of.Key.Of()) || !fitsKey(of.Key, filter) {
				continue
			}
			if shown := configObject(view, of); fitsObject(shown, filter) && !yield(shown) {
				return
			}
		}
	}
}

// configObject shows an object and where it comes from.
func configObject(view *config.View, of *config.Object) model.ConfigObject {
	shown := model.NewConfigObject(of)
	counts, hidden := view.SourceOf(of.Key)
	shown.SourceName, shown.Source = counts, sourceKind(counts)
	for _, name := range hidden {
		shown.Hidden = append(shown.Hidden, model.HiddenObject{Source: sourceKind(name), SourceName: name})
	}
	return shown
}

// sourceKind is the sort that the first word of a source's name says.
func sourceKind(name string) model.ConfigSourceKind {
	first := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" :/", r) })
	if len(first) > 0 {
		if kind := model.ConfigSourceKind(strings.ToUpper(first[0])); kind.IsValid() {
			return kind
		}
	}
	return model.ConfigSourceKindMemory
}

func fitsKey(key federation.ObjectKey, filter *model.ConfigObjectFilter) bool {
	return filter == nil || fits(filter.Group, key.Group) && fits(filter.Kind, key.Kind) &&
		fits(filter.Namespace, key.Namespace) && fits(filter.Name, key.Name) && fits(filter.ClusterID, string(key.Cluster))
}

func fitsObject(o model.ConfigObject, filter *model.ConfigObjectFilter) bool {
	return filter == nil || (filter.Source == nil || *filter.Source == o.Source) &&
		(filter.Set == nil || o.HasLabel(apply.SetLabel, *filter.Set)) &&
		!slices.ContainsFunc(filter.Labels, func(wanted model.LabelInput) bool { return !o.HasLabel(wanted.Key, wanted.Value) })
}

// ConfigObject finds an object, in force or as of a revision.
func (q query) ConfigObject(
	ctx context.Context, group, kind string, namespace *string, name string, clusterID *string, at *string, _ *string,
) (*model.ConfigObject, error) {
	key := federation.ObjectKey{
		Group: group, Kind: kind, Namespace: value(namespace), Name: name,
		Cluster: federation.ClusterID(value(clusterID)),
	}
	if at != nil {
		return objectAt(ctx, q.Config.History, key, *at)
	}
	if _, err := configured(ctx); err != nil {
		return nil, err
	}
	if found, ok := objectNamed(ctx, key); ok {
		return &found, nil
	}
	return nil, nil
}

// objectNamed finds the object in force of that key. Objects that only the hub
// reads are not nodes.
func objectNamed(ctx context.Context, key federation.ObjectKey) (found model.ConfigObject, ok bool) {
	view, err := configured(ctx)
	if err != nil || kind.Internal(key.Of()) {
		return found, false
	}
	of, ok := view.State.Object(key)
	if !ok {
		return found, false
	}
	return configObject(view, of), true
}

// ConfigSources says where objects come from.
func (q query) ConfigSources(ctx context.Context) ([]model.ConfigSource, error) {
	view, err := configured(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]model.ConfigSource, len(view.Sources))
	for i, s := range view.Sources {
		all[i] = model.ConfigSource{Name: s.Name, Kind: sourceKind(s.Name), Problems: make([]model.Problem, len(s.Trouble))}
		if !s.Heard.IsZero() {
			revision, age := model.Revision(s.Revision), max(q.Now().Sub(s.Heard), 0)
			all[i].Revision, all[i].Age = &revision, &age
		}
		for j, p := range s.Trouble {
			all[i].Problems[j] = shownProblem(federation.Problem(p))
		}
	}
	return all, nil
}

// ErrorCodes lists the codes of errors.
func (query) ErrorCodes(context.Context) ([]model.ErrorCode, error) { return model.ErrorCodes(), nil }

// FindingCodes lists the codes of findings, problems, conflicts and reasons.
func (query) FindingCodes(context.Context) ([]model.FindingCode, error) {
	return model.FindingCodes(), nil
}

// Kinds lists the kinds of objects that are taken.
func (q query) Kinds(context.Context) ([]model.ConfigKind, error) {
	all := make([]model.ConfigKind, len(q.Config.Kinds))
	for i, k := range q.Config.Kinds {
		all[i] = model.ConfigKind{
			Group: k.Group, Kind: k.Name, Plural: k.Plural, ShortNames: k.ShortNames,
			Namespaced: k.Namespaced, Versions: k.Versions, Storage: k.Storage,
		}
	}
	return all, nil
}
