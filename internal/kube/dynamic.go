package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Dynamic returns a client of the same server for resources that have no Go type. It decodes lists
// once; the one of client-go decodes each object of a list twice.
func (c *Client) Dynamic() (dynamic.Interface, error) {
	config := dynamic.ConfigFor(c.config)
	config.NegotiatedSerializer = singlePassSerializer{config.NegotiatedSerializer}
	config.APIPath = "/" // it is needed, and not used: the client names whole paths
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, errors.New("connecting to the API server: the server URL cannot be used")
	}
	requests, err := rest.UnversionedRESTClientForConfigAndClient(config, connections)
	if err != nil {
		return nil, errors.New("connecting to the API server: the server URL cannot be used")
	}
	return dynamic.New(requests), nil
}

// singlePassSerializer has lists in JSON read by decodeList.
type singlePassSerializer struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes is part of runtime.NegotiatedSerializer.
func (o singlePassSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	types := slices.Clone(o.NegotiatedSerializer.SupportedMediaTypes())
	for i := range types {
		if types[i].MediaType == runtime.ContentTypeJSON {
			types[i].Serializer = listSerializer{types[i].Serializer}
		}
	}
	return types
}

type listSerializer struct{ runtime.Serializer }

// Decode is part of runtime.Serializer.
func (s listSerializer) Decode(data []byte, defaults *apischema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*apischema.GroupVersionKind, error,
) {
	list, is := into.(*unstructured.UnstructuredList)
	if !is {
		return s.Serializer.Decode(data, defaults, into)
	}
	if err := decodeList(data, list); err != nil {
		return nil, nil, err
	}
	kind := list.GroupVersionKind()
	return list, &kind, nil
}

// decodeList reads a list of objects as client-go does: objects that do not say their kind have
// that of the list.
func decodeList(data []byte, into *unstructured.UnstructuredList) error {
	var list struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Metadata   map[string]any   `json:"metadata"`
		Items      []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	if list.Kind == "" {
		return runtime.NewMissingKindErr(string(data))
	}
	into.Object = map[string]any{"apiVersion": list.APIVersion, "kind": list.Kind, "metadata": list.Metadata}
	into.Items = make([]unstructured.Unstructured, len(list.Items))
	for i := range into.Items {
		item := &into.Items[i]
		item.Object = list.Items[i]
		if item.GetKind() == "" && item.GetAPIVersion() == "" {
			item.SetKind(strings.TrimSuffix(list.Kind, "List"))
			item.SetAPIVersion(list.APIVersion)
		}
	}
	return nil
}
