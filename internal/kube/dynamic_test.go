package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// lists are answers to a list.
var lists = map[string]string{
	"objects": `{"apiVersion":"g.io/v1","kind":"ThingList","metadata":{"resourceVersion":"7","continue":"more","remainingItemCount":9},"items":[
		{"apiVersion":"g.io/v1","kind":"Thing","metadata":{"name":"a","managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]},"spec":{"n":1,"big":9007199254740993,"f":1.5,"e":1e3,"no":null,"is":true}},
		{"apiVersion":"g.io/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"text":"\u003ca\u003e \ud83d\ude00 \u0000","text":"last","Text":"other","list":[1,"x",{},[]]}}]}`,
	"without their kind":         `{"apiVersion":"v1","kind":"SecretList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}},{"kind":"Other","metadata":{"name":"b"}}, null]}`,
	"none":                       `{"apiVersion":"g.io/v1","kind":"ThingList","metadata":{"resourceVersion":"7"},"items":[]}`,
	"null":                       `{"apiVersion":"g.io/v1","kind":"ThingList","metadata":{"resourceVersion":"7"},"items":null}`,
	"members of other case":      `{"apiVersion":"g.io/v1","kind":"ThingList","metadata":{},"Items":[{"metadata":{"name":"a"}}]}`,
	"of no kind":                 `{"apiVersion":"g.io/v1","metadata":{},"items":[]}`,
	"not JSON":                   `{"apiVersion":"g.io/v1","kind":"ThingList","items":[{]}`,
	"cut off":                    `{"apiVersion":"g.io/v1","kind":"ThingList","items":[{"metadata":{"name":"a"}}`,
	"no objects":                 `{"apiVersion":"g.io/v1","kind":"ThingList","metadata":{},"items":["a"]}`,
	"a number that no one holds": `{"apiVersion":"g.io/v1","kind":"ThingList","metadata":{},"items":[{"spec":1e999}]}`,
}

// TestG72ListsAreDecodedAsByClientGo: the client that decodes lists once reads what that of client-go reads, and refuses what that
// refuses.
func TestG72ListsAreDecodedAsByClientGo(t *testing.T) {
	for name, body := range lists {
		t.Run(name, func(t *testing.T) {
			_, credentials := apiServer(t, answer(200, "application/json", body))
			client, err := Connect(credentials, ConnectOptions{Allow: anywhere})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			ours, err := client.Dynamic()
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := dynamic.NewForConfig(client.Config())
			if err != nil {
				t.Fatal(err)
			}
			things := apischema.GroupVersionResource{Group: "g.io", Version: "v1", Resource: "things"}
			got, refused := ours.Resource(things).List(t.Context(), metav1.ListOptions{})
			want, alsoRefused := theirs.Resource(things).List(t.Context(), metav1.ListOptions{})
			if (refused == nil) != (alsoRefused == nil) {
				t.Fatalf("got %v, client-go %v", refused, alsoRefused)
			}
			if want != nil {
				delete(want.Object, "Items") // what lists do not have is excluded
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
