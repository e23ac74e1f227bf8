package listwatch_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"isthmus.dev/isthmus/internal/kube/listwatch"
	"isthmus.dev/isthmus/internal/kube/listwatch/listwatchtest"
)

// isList reports whether the request lists what is followed.
func isList(request *http.Request) bool {
	return strings.HasSuffix(request.URL.Path, "/secrets") && request.URL.Query().Get("watch") == ""
}

func isWatch(request *http.Request) bool { return request.URL.Query().Get("watch") != "" }

// endless is a page of a list that goes on with that token.
func endless(token string) *http.Response {
	return listwatchtest.JSON(http.StatusOK, corev1.SecretList{
		ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: token},
		Items:    []corev1.Secret{*secret("x", "9")},
	})
}

// relists has everything listed while the server answers so.
func relists(answer func(*http.Request) (*http.Response, error)) func(*fixture) {
	return func(w *fixture) {
		w.Wrong(answer)
		w.cluster.Relist()
	}
}

// rewatches has everything watched again while the server answers so.
func rewatches(answer func(*http.Request) (*http.Response, error)) func(*fixture) {
	return func(w *fixture) {
		w.Wrong(answer)
		w.EndWatches()
	}
}

// events is a watch with these events, which ends after them.
func events(texts ...string) *http.Response {
	return listwatchtest.Answer(http.StatusOK, io.NopCloser(strings.NewReader(strings.Join(texts, ""))))
}

var faults = map[string]struct {
	resource func(*listwatch.Resource[value])
	fault    func(*fixture)
	during   string // what is known while the server is wrong; "": a=1 b=2
	says     string // the trouble then; "": none
	asked    string // then; "": whatever it is
	after    string // what is known once the server is right again; "": as during
}{
	"pages without end": {
		fault: func(w *fixture) {
			n := 0
			relists(func(r *http.Request) (*http.Response, error) {
				if !isList(r) {
					return nil, nil
				}
				n++
				return endless(fmt.Sprint("t", n)), nil
			})(w)
		},
		says: "list secrets: the cluster has more than 20 objects, its limit",
	},
	"empty pages without end": {
		fault: func(w *fixture) {
			n := 0
			relists(func(r *http.Request) (*http.Response, error) {
				if !isList(r) {
					return nil, nil
				}
				n++
				return listwatchtest.JSON(http.StatusOK,
					corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: fmt.Sprint("t", n)}}), nil
			})(w)
		},
		says: "more than 30 pages, its limit",
	},
	"large objects": {
		fault: relists(func(r *http.Request) (*http.Response, error) {
			if !isList(r) {
				return nil, nil
			}
			return listwatchtest.JSON(http.StatusOK, corev1.SecretList{
				ListMeta: metav1.ListMeta{ResourceVersion: "9"},
				Items:    []corev1.Secret{*secret("x", strings.Repeat("x", 1001))},
			}), nil
		}),
		says: "more than 1000 bytes, its limit",
	},
	"a continue token that comes again": {
		fault: relists(func(r *http.Request) (*http.Response, error) {
			if !isList(r) {
				return nil, nil
			}
			return endless("again"), nil
		}),
		says: "list secrets: the server gave the same continue token twice",
	},
	"a list that breaks off": {
		fault: relists(func(r *http.Request) (*http.Response, error) {
			if isList(r) && r.URL.Query().Get("continue") != "" {
				return nil, errors.New("broken off")
			}
			return nil, nil
		}),
		says: "broken off",
	},
	"a list without a version": {
		fault: relists(func(r *http.Request) (*http.Response, error) {
			if !isList(r) {
				return nil, nil
			}
			return listwatchtest.JSON(http.StatusOK, corev1.SecretList{}), nil
		}),
		says: "list secrets: the server sent a list without a version",
	},
	"a list that may not be read": {
		fault: relists(func(r *http.Request) (*http.Response, error) {
			if !isList(r) {
				return nil, nil
			}
			return listwatchtest.Status(http.StatusForbidden, metav1.StatusReasonForbidden), nil
		}),
		says: "list secrets: ",
	},
	"a list that may not be read and need not": {
		resource: func(r *listwatch.Resource[value]) { r.Optional, r.Renew = true, 30*time.Second },
		fault: func(w *fixture) {
			relists(func(r *http.Request) (*http.Response, error) {
				if !isList(r) {
					return nil, nil
				}
				return listwatchtest.Status(http.StatusForbidden, metav1.StatusReasonForbidden), nil
			})(w)
		},
		during: "nothing", after: "a=1 b=2",
	},
	"410 between two pages": {
		fault: relists(func(r *http.Request) (*http.Response, error) {
			if isList(r) && r.URL.Query().Get("continue") != "" {
				return listwatchtest.Status(http.StatusGone, metav1.StatusReasonExpired), nil
			}
			return nil, nil
		}),
		asked: "list, list 1, list, watch 102",
	},
	"410 instead of a watch": {
		fault: func(w *fixture) {
			w.Compact()
			w.EndWatches()
		},
		asked: "watch 102, list, list 1, watch 103",
	},
	"410 in a watch": {
		fault: func(w *fixture) {
			first := true
			rewatches(func(r *http.Request) (*http.Response, error) {
				if !isWatch(r) || !first {
					return nil, nil
				}
				first = false
				c := secret("b", "3")
				c.APIVersion, c.Kind, c.ResourceVersion = "v1", "Secret", "102"
				w.Put(secret("b", "4")) // the server has gone on meanwhile
				return events(listwatchtest.Event("MODIFIED", c),
					listwatchtest.Event("ERROR", listwatchtest.Failure(http.StatusGone, metav1.StatusReasonExpired))), nil
			})(w)
		},
		during: "a=1 b=4", asked: "watch 102, list, list 1, watch 103",
	},
	"a history that went back": {
		fault:  func(w *fixture) { w.Restore(50, secret("a", "0")) },
		during: "a=0", asked: "list, watch 51",
	},
	"another cluster": {
		fault: func(w *fixture) {
			w.Become("u2")
			w.Delete("edge", "a")
			w.Put(secret("b", "foreign"))
		},
		during: "a=1 b=2", says: "did not prove that it is the known one: another cluster answers at this address", after: "b=foreign",
	},
	"another cluster that shows after its list": {
		fault: func(w *fixture) {
			relists(func(r *http.Request) (*http.Response, error) {
				if isList(r) {
					w.Become("u2")
					return listwatchtest.JSON(http.StatusOK, corev1.SecretList{
						ListMeta: metav1.ListMeta{ResourceVersion: "500"},
						Items:    []corev1.Secret{*secret("foreign", "9")},
					}), nil
				}
				return nil, nil
			})(w)
		},
		says: "another cluster answers at this address",
	},
	"a server that is silent": {
		fault: func(w *fixture) {
			w.Put(secret("a", "3"))
			synctest.Wait()
			w.Wrong(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
		},
		during: "a=3 b=2", says: "connection refused",
	},
	"a bookmark": {
		fault: func(w *fixture) {
			first := true
			rewatches(func(r *http.Request) (*http.Response, error) {
				if !isWatch(r) || !first {
					return nil, nil
				}
				first = false
				mark := &corev1.Secret{
					TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
					ObjectMeta: metav1.ObjectMeta{ResourceVersion: "777"},
				}
				return events(listwatchtest.Event("BOOKMARK", mark)), nil
			})(w)
		},
		asked: "watch 102, watch 777",
	},
	"an event of an unknown type": {
		fault: rewatches(func(r *http.Request) (*http.Response, error) {
			if !isWatch(r) {
				return nil, nil
			}
			return events(listwatchtest.Event("NONSENSE", secret("c", "3"))), nil
		}),
		says: "watch secrets: ",
	},
	"watches that end at once": {
		fault: rewatches(func(r *http.Request) (*http.Response, error) {
			if !isWatch(r) {
				return nil, nil
			}
			return events(), nil
		}),
		says: "watch secrets: the server ends the watch at once",
	},
	"a watch with too much": {
		fault: func(w *fixture) {
			for i := range 30 {
				w.Put(secret(fmt.Sprint("n", i), "0"))
			}
		},
		during: "a=1 b=2 n0=0 n10=0 n11=0 n12=0 n13=0 n14=0 n15=0 n16=0 n17=0 n1=0 n2=0 n3=0 n4=0 n5=0 n6=0 n7=0 n8=0 n9=0",
		says:   "more than 20 objects, its limit",
	},
	"an object over which the hub panics": {
		resource: func(r *listwatch.Resource[value]) { r.Read = panicsOver(r.Read, "poison") },
		fault: func(w *fixture) {
			w.Put(secret("poison", "3"))
			w.Put(secret("a", "4"))
		},
		says: "the hub cannot read edge/poison, which is a fault of the hub", after: "a=4 b=2",
	},
	"such an object that is set aside": {
		resource: func(r *listwatch.Resource[value]) {
			r.Read = panicsOver(r.Read, "poison")
			r.Fault = func(k listwatch.Key, cause any, stack []byte) value {
				return value{k.Name, fmt.Sprint(cause, strings.Contains(string(stack), "follow_test.go"))}
			}
		},
		fault: func(w *fixture) {
			w.Put(secret("poison", "3"))
			w.Put(secret("a", "4"))
		},
		during: "a=4 b=2 poison=a bug true", after: "a=4 b=2",
	},
	"a list that lacks an object for a moment": {
		resource: func(r *listwatch.Resource[value]) {
			r.Doubtful = func(list []value) bool { return len(list) < 2 }
		},
		fault: func(w *fixture) {
			first := true
			relists(func(r *http.Request) (*http.Response, error) {
				if !isList(r) || !first {
					return nil, nil
				}
				first = false
				return listwatchtest.JSON(http.StatusOK, corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "102"}}), nil
			})(w)
		},
		asked: "list, list, list 1, watch 102",
	},
}

func panicsOver(read func(in runtime.Object) (value, bool), name string) func(in runtime.Object) (value, bool) {
	return func(in runtime.Object) (value, bool) {
		if v, _ := read(in); v.name == name {
			panic("a bug ")
		}
		return read(in)
	}
}
