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
	items := objects(ctx, view, filter)
	if filter != nil && (filter.Rejected != nil || filter.HasFindings != nil || filter.FindingCode != nil) {
		numbers := q.overviews.objectNumbers(ctx, q.Config)
		items = fitting(items, func(o model.ConfigObject) bool { return numbers.fits(o.Of.Key, filter) })
	}
	list := model.List[model.ConfigObject]{
		Name: "configObjects", Key: model.ConfigObject.Key, Items: items, Size: manifestSize, MaxPage: maxManifestPage,
	}
	return &model.ConfigObjectConnection{Page: recorded(q.resolver, by.page(list, window))}, nil
}

// objectOrders are what configuration objects can be sorted by.
var objectOrders = map[model.ConfigObjectOrderField]func(model.ConfigObject) string{
	model.ConfigObjectOrderFieldName: model.ConfigObject.Name,
	model.ConfigObjectOrderFieldNamespace: func(o model.ConfigObject) string {
		return o.Namespace() + "\x00" + o.Name()
	},
	model.ConfigObjectOrderFieldRevision: func(o model.ConfigObject) string { return number(o.Of.Revision) },
}

func objects(ctx context.Context, view *config.View, filter *model.ConfigObjectFilter) iter.Seq[model.ConfigObject] {
	all := view.State.Objects()
	if filter != nil && filter.Group != nil && filter.Kind != nil {
		all = view.State.ObjectsOf(federation.Kind{Group: *filter.Group, Name: *filter.Kind})
	}
	return func(yield func(model.ConfigObject) bool) {
		for of := range inTime(ctx, all) {
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
	shown.SourceName, shown.HiddenIn = view.SourceOf(of.Key)
	shown.Source = sourceKind(shown.SourceName)
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
	return filter == nil || (filter.Source == nil || *filter.Source == o.Source) && fits(filter.SourceName, o.SourceName) &&
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
	return objectOf(ctx, key), nil
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

// objectOf is the object in force of that key, or nil.
func objectOf(ctx context.Context, key federation.ObjectKey) *model.ConfigObject {
	if found, ok := objectNamed(ctx, key); ok {
		return &found
	}
	return nil
}

// meshKey is that of an object of the hub's own kinds that have no namespace.
func meshKey(of federation.Kind, name string) federation.ObjectKey {
	return federation.ObjectKey{Group: of.Group, Kind: of.Name, Name: name}
}

// ConfigSources says where objects come from.
func (q query) ConfigSources(ctx context.Context) ([]model.ConfigSource, error) {
	view, err := configured(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]model.ConfigSource, len(view.Sources))
	for i, s := range view.Sources {
		all[i] = shownSource(q.resolver, s)
	}
	return all, nil
}

// shownSource shows a source as of now.
func shownSource(r *resolver, of config.SourceStatus) model.ConfigSource {
	shown := model.ConfigSource{Name: of.Name, Kind: sourceKind(of.Name), Problems: make([]model.Problem, len(of.Trouble))}
	if !of.Heard.IsZero() {
		revision, age := model.Revision(of.Revision), max(r.Now().Sub(of.Heard), 0)
		shown.Revision, shown.Age = &revision, &age
	}
	for i, p := range of.Trouble {
		shown.Problems[i] = shownProblem(r, federation.Problem(p), "")
	}
	return shown
}

// ConfigSource is the source that the object comes from, or nil.
func (r objectResolver) ConfigSource(ctx context.Context, of *model.ConfigObject) (*model.ConfigSource, error) {
	return sourceNamed(ctx, r.resolver, of.SourceName)
}

// Hidden are the sources that have the object, too.
func (r objectResolver) Hidden(ctx context.Context, of *model.ConfigObject) ([]model.HiddenObject, error) {
	all := make([]model.HiddenObject, len(of.HiddenIn))
	for i, name := range of.HiddenIn {
		found, err := sourceNamed(ctx, r.resolver, name)
		if err != nil {
			return nil, err
		}
		all[i] = model.HiddenObject{Source: sourceKind(name), SourceName: name, ConfigSource: found}
	}
	return all, nil
}

// sourceNamed finds a source by its name.
func sourceNamed(ctx context.Context, r *resolver, name string) (*model.ConfigSource, error) {
	view, err := configured(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range view.Sources {
		if s.Name == name {
			shown := shownSource(r, s)
			return &shown, nil
		}
	}
	return nil, nil
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
