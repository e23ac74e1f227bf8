package schema

import (
	"context"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// ofServer are the fields of metadata that only the store sets. In what somebody
// wants they are ignored, so that what was read can be applied again.
var ofServer = []string{
	"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds",
}

// clean removes what only the store sets.
func (v *version) clean(object map[string]any) {
	if v.status {
		delete(object, "status")
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return
	}
	for _, name := range ofServer {
		delete(metadata, name)
	}
}

// dropNulls removes nulls from metadata, where they mean nothing.
func dropNulls(object map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	for name, value := range metadata {
		if value == nil {
			delete(metadata, name)
		}
	}
}

// adopt gives an object what the store set on another.
func (v *version) adopt(object, from map[string]any) {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return
	}
	theirs, _ := from["metadata"].(map[string]any)
	for _, name := range ofServer {
		if value, ok := theirs[name]; ok {
			metadata[name] = value
		} else {
			delete(metadata, name)
		}
	}
	if status, ok := from["status"]; ok && v.status {
		object["status"] = status
	}
}

// metadataSchema is Kubernetes' ObjectMeta, with how its lists are merged.
var metadataSchema = sync.OnceValue(func() *spec.Schema {
	text, number, boolean := spec.StringProperty(), spec.Int64Property(), spec.BoolProperty()
	texts := spec.MapProperty(text)
	owner := object(map[string]spec.Schema{
		"apiVersion": *text, "kind": *text, "name": *text, "uid": *text, "controller": *boolean, "blockOwnerDeletion": *boolean,
	})
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	owners := spec.ArrayProperty(owner)
	owners.AddExtension("x-kubernetes-list-type", "map")
	owners.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	finalizers := spec.ArrayProperty(text)
	finalizers.AddExtension("x-kubernetes-list-type", "set")
	managed := spec.ArrayProperty(object(nil))
	managed.AddExtension("x-kubernetes-list-type", "atomic")
	return object(map[string]spec.Schema{
		"name": *text, "generateName": *text, "namespace": *text, "selfLink": *text, "uid": *text, "resourceVersion": *text,
		"generation": *number, "creationTimestamp": *text, "deletionTimestamp": *text, "deletionGracePeriodSeconds": *number,
		"labels": *texts, "annotations": *texts, "ownerReferences": *owners, "finalizers": *finalizers, "managedFields": *managed,
	})
})

func object(properties map[string]spec.Schema) *spec.Schema {
	s := &spec.Schema{}
	s.Type = spec.StringOrArray{"object"}
	s.Properties = properties
	return s
}

var metadataValidator = sync.OnceValue(func() validation.SchemaValidator {
	return validation.NewSchemaValidatorFromOpenAPI(metadataSchema())
})

var metadataLevel = sync.OnceValue(func() *level { return newLevel(*metadataSchema()) })

// readMetadata checks the metadata of an object, and writes it as Kubernetes would.
func (v *version) readMetadata(object map[string]any) []Problem {
	if meta := plainMetadata(object["metadata"]); meta != nil {
		return v.checkMeta(meta)
	}
	meta, problems := v.checkMetadata(object)
	if len(problems) > 0 {
		return problems
	}
	if err := setMetadata(object, meta); err != nil {
		return []Problem{{Invalid, "metadata", cut(err.Error())}}
	}
	return nil
}

// plainMetadata reads metadata that has names, labels and annotations alone, and that
// Kubernetes would write as it is: that of most objects. It returns nil for all other.
func plainMetadata(raw any) *metav1.ObjectMeta {
	metadata, _ := raw.(map[string]any)
	meta := &metav1.ObjectMeta{}
	for name, value := range metadata {
		known := false
		switch name {
		case "name":
			meta.Name, known = value.(string)
		case "namespace":
			meta.Namespace, known = value.(string)
			known = known && meta.Namespace != ""
		case "labels":
			meta.Labels, known = plainTexts(value)
		case "annotations":
			meta.Annotations, known = plainTexts(value)
		}
		if !known {
			return nil
		}
	}
	if meta.Name == "" {
		return nil
	}
	return meta
}

func plainTexts(value any) (map[string]string, bool) {
	texts, _ := value.(map[string]any)
	plain := make(map[string]string, len(texts))
	for name, value := range texts {
		text, is := value.(string)
		if !is {
			return nil, false
		}
		plain[name] = text
	}
	return plain, len(plain) > 0
}

func (v *version) checkMeta(meta *metav1.ObjectMeta) []Problem {
	return problemsOf(metavalidation.ValidateObjectMeta(meta, v.definition.Namespaced, metavalidation.NameIsDNSSubdomain,
		field.NewPath("metadata")))
}

// checkMetadata reads the metadata of an object and says what is wrong with it.
func (v *version) checkMetadata(o map[string]any) (*metav1.ObjectMeta, []Problem) {
	at := field.NewPath("metadata")
	raw, ok := o["metadata"]
	if !ok || raw == nil {
		return nil, []Problem{{Required, "metadata.name", "Required value: an object has a name"}}
	}
	if !metadataLevel().conforms(raw) {
		return nil, problemsOf(validation.ValidateCustomResource(at, raw, metadataValidator()))
	}
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(o, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, []Problem{{Invalid, "metadata", cut(err.Error())}}
	}
	var problems []Problem
	for _, name := range unknown {
		problems = append(problems, unknownField(name, namesOf(metadataSchema().Properties)))
	}
	if meta.Name == "" {
		problems = append(problems, Problem{Required, "metadata.name", "Required value: an object has a name; names are not generated"})
		meta.Name, meta.GenerateName = "x", ""
	}
	return meta, append(problems, v.checkMeta(meta)...)
}

// embedded checks the metadata of objects within the object.
func (c *compiled) embedded(o map[string]any) field.ErrorList {
	return objectmeta.Validate(context.Background(), nil, o, c.structural, false)
}
