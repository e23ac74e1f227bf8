package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	networking "istio.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"isthmus.dev/isthmus/deploy/testbed"
)

// listCustom lists and decodes the objects with client-go.
func listCustom(ctx context.Context, k *testbed.Kube) error {
	client, err := connect(k)
	if err != nil {
		return err
	}
	defer client.Close()
	on, err := dynamic.NewForConfig(client.Config())
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	pages := pager.New(pager.ListPageFunc(func(ctx context.Context, o metav1.ListOptions) (runtimeapi.Object, error) {
		return on.Resource(customResource).Namespace(customNamespace(manyCustom)).List(ctx, o)
	}))
	pages.PageSize = pageSize
	found, _, err := pages.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	if found == nil {
		return errors.New("there is nothing")
	}
	return nil
}

// typedList is a page of the objects as the client of their module has them.
type typedList struct {
	metav1.ListMeta `json:"metadata"`
	Items           []struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              networking.VirtualService `json:"spec"`
	} `json:"items"`
}

// listTyped lists the objects into Go types.
func listTyped(ctx context.Context, k *testbed.Kube) error {
	client, err := connect(k)
	if err != nil {
		return err
	}
	defer client.Close()
	for read, next := 0, ""; ; {
		options := url.Values{"limit": {strconv.Itoa(pageSize)}, "continue": {next}}
		body, err := client.Discovery().RESTClient().Verb(http.MethodGet).RequestURI(customPath(manyCustom) + "?" + options.Encode()).DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("listing: %w", err)
		}
		var page typedList
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("reading a page: %w", err)
		}
		read, next = read+len(page.Items), page.Continue
		if next == "" {
			if read != manyCustom {
				return fmt.Errorf("%d objects are listed", read)
			}
			return nil
		}
	}
}
