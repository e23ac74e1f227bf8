package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"isthmus.dev/isthmus/deploy/testbed"
)

// goroutines are those of the hub's process.
func (h *hubUnderTest) goroutines(t *testing.T) int {
	t.Helper()
	_, body, err := h.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^go_goroutines (\d+)$`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("the metrics do not tell of goroutines:\n%.500s", body)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// names are those of the objects in the namespace shop.
func (h *hubUnderTest) names() (map[string]bool, error) {
	var answer struct {
		ConfigObjects struct{ Nodes []struct{ Name string } }
	}
	err := h.query(`{configObjects(first: 500, filter: {namespace: "shop"}) {nodes {name}}}`, &answer)
	found := map[string]bool{}
	for _, o := range answer.ConfigObjects.Nodes {
		found[o.Name] = true
	}
	return found, err
}

// TestF27HubWithASlowStoreAnswersInTimeWithoutAPileUp: at a round trip of 2 s each
// change is answered within 10 s, by what it made or by why it failed; reading is
// as it was, and nothing is left behind.
func TestF27HubWithASlowStoreAnswersInTimeWithoutAPileUp(t *testing.T) {
	const many = 30
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	link := testbed.StartProxy(t, strings.TrimPrefix(store.URL, "http://"))
	h := startHub(t, "--etcd-endpoints", "http://"+link.Addr())
	if made, err := h.applyEntry("before", 1); err != nil || len(made.Apply.UserErrors) > 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	quiet := h.goroutines(t)
	link.Delay(time.Second)
	clock := testbed.StartClock(t)
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			name, began := fmt.Sprint("slow-", i), time.Now()
			made, err := h.applyEntry(name, 1)
			if took := clock.Since(began); err != nil || took > 10*time.Second {
				t.Errorf("a change gets %v after %v", err, took)
				return
			}
			for _, e := range made.Apply.UserErrors {
				if e.Code != "UNAVAILABLE" && e.Code != "BUSY" {
					t.Errorf("a change is refused: %+v", e)
				}
			}
			if len(made.Apply.UserErrors) == 0 {
				mu.Lock()
				defer mu.Unlock()
				acknowledged[name] = true
			}
		})
	}
	began := time.Now()
	found, err := h.names()
	if took := clock.Since(began); err != nil || !found["before"] || took > 5*time.Second {
		t.Errorf("reading gives %v, %v after %v", found, err, took)
	}
	if now := h.goroutines(t); now > quiet+20*many {
		t.Errorf("%d changes have %d goroutines, before there were %d", many, now, quiet)
	}
	group.Wait()
	link.Delay(0)
	h.await(t, "a change to be taken", func() error {
		made, err := h.applyEntry("after", 1)
		if err == nil && len(made.Apply.UserErrors) > 0 {
			err = fmt.Errorf("%+v", made)
		}
		return err
	})
	h.await(t, "the goroutines to end", func() error {
		if now := h.goroutines(t); now > quiet+many {
			return fmt.Errorf("there are %d, before there were %d", now, quiet)
		}
		return nil
	})
	found, err = h.names()
	if err != nil {
		t.Fatal(err)
	}
	for name := range acknowledged {
		if !found[name] {
			t.Errorf("%s was acknowledged and is not there", name)
		}
	}
	t.Logf("%d of %d changes were made", len(acknowledged), many)
}

// registrationTTL is how long a registration of the test holds.
const registrationTTL = 12 * time.Second

func (h *hubUnderTest) register(t *testing.T, name string) {
	t.Helper()
	var answer struct {
		RegisterWorkload struct {
			UserErrors []struct{ Code, Message string }
		}
	}
	err := h.query(fmt.Sprintf(`mutation {registerWorkload(input: {namespace: "shop", name: %q, address: "192.0.2.9", ttl: %q}) {userErrors {code message}}}`,
		name, registrationTTL), &answer)
	if err != nil || len(answer.RegisterWorkload.UserErrors) > 0 {
		t.Fatalf("registering %s: %+v, %v", name, answer, err)
	}
}

// renew renews, where the store answers already.
func (h *hubUnderTest) renew(name string) (code string, err error) {
	var answer struct {
		RenewWorkload struct{ UserErrors []struct{ Code string } }
	}
	err = h.query(fmt.Sprintf(`mutation {renewWorkload(input: {namespace: "shop", name: %q}) {userErrors {code}}}`, name), &answer)
	if err == nil && len(answer.RenewWorkload.UserErrors) > 0 {
		code = answer.RenewWorkload.UserErrors[0].Code
	}
	return code, err
}

// TestRegistrationsAcrossARestartOfTheirStore: etcd counts what is left of a lease
// again when it starts. What is not renewed is gone after its time from then on,
// what is renewed stays, and neither goes with the restart.
func TestRegistrationsAcrossARestartOfTheirStore(t *testing.T) {
	// etcd gives a new leader's leases its election timeout more, and looks for ended
	// ones twice a second; the rest is for a slow machine.
	const slack = 10 * time.Second
	t.Parallel() // it waits most of the time
	store := testbed.StartEtcd(t, testbed.EtcdOptions{})
	clock, h := testbed.StartClock(t), startHub(t, "--etcd-endpoints", store.URL)
	for _, name := range []string{"renewed", "forgotten"} {
		h.register(t, name)
	}
	has := func(names ...string) func() error {
		return func() error {
			found, err := h.names()
			if err == nil && len(found) != len(names) {
				err = fmt.Errorf("there are %v", found)
			}
			for _, name := range names {
				if err == nil && !found[name] {
					err = fmt.Errorf("there are %v", found)
				}
			}
			return err
		}
	}
	h.await(t, "both", has("renewed", "forgotten"))
	store.Kill()
	store.Restart()
	up := time.Now()
	if err := has("renewed", "forgotten")(); err != nil {
		t.Errorf("with the restart: %v", err)
	}
	keep := func(until func() error) func() error {
		return func() error {
			if code, _ := h.renew("renewed"); code == "NOT_FOUND" { // other trouble passes
				t.Fatal("what is renewed is gone")
			}
			return until()
		}
	}
	h.await(t, "what is not renewed to go", keep(has("renewed")))
	if took := clock.Since(up); took > registrationTTL+slack {
		t.Errorf("it went %v after the restart, its time is %v", took, registrationTTL)
	}
	h.await(t, "twice its time", keep(func() error {
		if since := time.Since(up); since < 2*registrationTTL {
			return fmt.Errorf("it is %v", since)
		}
		return has("renewed")()
	}))
	h.await(t, "what is not renewed any more to go", has())
}
