package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const us, them = "system:serviceaccount:bench-system:operator", "admin"

// entry is an audit log entry as the API server writes it, received at a number
// of milliseconds after the hour, with a response two milliseconds later.
func entry(user, verb, resource, name string, code, at int) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","verb":%q,"user":{"username":%q},`+
		`"objectRef":{"resource":%q,"namespace":"bench-1","name":%q},"responseStatus":{"metadata":{},"code":%d},`+
		`"requestReceivedTimestamp":"2026-11-21T12:00:01.%03d000Z","stageTimestamp":"2026-11-21T12:00:01.%03d000Z"}`+"\n",
		verb, user, resource, name, code, at, at+2)
}

func TestParseRequests(t *testing.T) {
	text := entry(us, "patch", "configmaps", "a", 200, 10) + entry(them, "create", "benches", us, 201, 11) + entry("other", "get", "pods", "p", 200, 12)
	found, err := parseRequests([]byte(text), us)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Verb != "patch" || found[0].object() != (object{"", "configmaps", "bench-1", "a"}) || found[0].ResponseStatus.Code != 200 {
		t.Errorf("requests are %+v", found)
	}
	if took := found[0].StageTimestamp.Sub(found[0].RequestReceivedTimestamp); took != 2*time.Millisecond {
		t.Errorf("the duration is %s", took)
	}
	if both, err := parseRequests([]byte(text), us, them); err != nil || len(both) != 2 {
		t.Errorf("requests of two users are %+v, %v", both, err)
	}
	if _, err := parseRequests([]byte(`{"user":{"username":"`+us+`"`+"\n"), us); err == nil {
		t.Error("no error for an incomplete entry")
	}
}

func TestCountRequests(t *testing.T) {
	text := strings.Join([]string{
		entry(us, "create", "secrets", "a", 201, 1),
		entry(us, "patch", "configmaps", "a", 201, 2),
		entry(us, "patch", "services", "a", 409, 3),
		entry(us, "get", "configmaps", "a", 404, 4),
		entry(us, "create", "selfsubjectrulesreviews", "", 201, 5),
		entry(us, "get", "", "", 200, 6),
		entry(us, "watch", "benches", "", 200, 6),
		entry(us, "update", "leases", "chartwright", 200, 7),
	}, "")
	requests, err := parseRequests([]byte(text), us)
	if err != nil {
		t.Fatal(err)
	}
	want := counts{Verbs: map[string]int{"create": 2, "patch": 2, "get": 2}, Total: 6, Writes: 3, Failed: 2, General: 1, Standing: 2}
	if diff := cmp.Diff(want, countRequests(requests)); diff != "" {
		t.Error(diff)
	}
}

func TestCorrections(t *testing.T) {
	about := func(name string) object { return object{"", "configmaps", "bench-1", name} }
	drifted := map[object]bool{about("a"): true, about("b"): true, about("c"): true}
	for _, test := range []struct {
		name  string
		lines []string
		want  map[object]time.Duration
	}{
		{"nothing", nil, map[object]time.Duration{}},
		{"one of two", []string{
			entry(them, "patch", "configmaps", "a", 200, 10), entry(them, "delete", "configmaps", "b", 200, 11), entry(us, "patch", "configmaps", "a", 200, 40),
		}, map[object]time.Duration{about("a"): 30 * time.Millisecond}},
		{"the first correction counts", []string{
			entry(them, "patch", "configmaps", "a", 200, 10), entry(us, "patch", "configmaps", "a", 200, 20), entry(us, "patch", "configmaps", "a", 200, 90),
		}, map[object]time.Duration{about("a"): 10 * time.Millisecond}},
		{"a refused write does not count", []string{
			entry(them, "patch", "configmaps", "a", 200, 10), entry(us, "patch", "configmaps", "a", 409, 20), entry(us, "patch", "configmaps", "a", 200, 90),
		}, map[object]time.Duration{about("a"): 80 * time.Millisecond}},
		{"an earlier write does not count", []string{
			entry(us, "patch", "configmaps", "a", 200, 5), entry(them, "patch", "configmaps", "a", 200, 10),
		}, map[object]time.Duration{}},
		{"ordered by the time of the request, not of its log entry", []string{
			entry(us, "patch", "configmaps", "a", 200, 12), entry(them, "patch", "configmaps", "a", 200, 11),
		}, map[object]time.Duration{about("a"): time.Millisecond}},
		{"writes of other users do not count", []string{
			entry(them, "patch", "configmaps", "x", 200, 10), entry(us, "patch", "configmaps", "x", 200, 20),
		}, map[object]time.Duration{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			requests, err := parseRequests([]byte(strings.Join(test.lines, "")), us, them)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, corrections(requests, them, us, drifted)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
