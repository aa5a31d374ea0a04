package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const us, them = "system:serviceaccount:bench-system:operator", "admin"

// line is a line of the log as the API server writes it, a second and so many
// milliseconds after the hour, answered two later.
func line(user, verb, resource, name string, code, at int) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","verb":%q,"user":{"username":%q},`+
		`"objectRef":{"resource":%q,"namespace":"bench-1","name":%q},"responseStatus":{"metadata":{},"code":%d},`+
		`"requestReceivedTimestamp":"2026-11-21T12:00:01.%03d000Z","stageTimestamp":"2026-11-21T12:00:01.%03d000Z"}`+"\n",
		verb, user, resource, name, code, at, at+2)
}

func TestParseRequests(t *testing.T) {
	text := line(us, "patch", "configmaps", "a", 200, 10) + line(them, "create", "benches", us, 201, 11) + line("other", "get", "pods", "p", 200, 12)
	found, err := parseRequests([]byte(text), us)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].Verb != "patch" || found[0].object() != (object{"", "configmaps", "bench-1", "a"}) || found[0].ResponseStatus.Code != 200 {
		t.Errorf("found is %+v", found)
	}
	if took := found[0].StageTimestamp.Sub(found[0].RequestReceivedTimestamp); took != 2*time.Millisecond {
		t.Errorf("it took %s", took)
	}
	if both, err := parseRequests([]byte(text), us, them); err != nil || len(both) != 2 {
		t.Errorf("of two users they are %+v, %v", both, err)
	}
	if _, err := parseRequests([]byte(`{"user":{"username":"`+us+`"`+"\n"), us); err == nil {
		t.Error("half a line is no error")
	}
}

func TestCountRequests(t *testing.T) {
	text := strings.Join([]string{
		line(us, "create", "secrets", "a", 201, 1),
		line(us, "patch", "configmaps", "a", 201, 2),
		line(us, "patch", "services", "a", 409, 3),
		line(us, "get", "configmaps", "a", 404, 4),
		line(us, "create", "selfsubjectrulesreviews", "", 201, 5),
		line(us, "get", "", "", 200, 6),
		line(us, "watch", "benches", "", 200, 6),
		line(us, "update", "leases", "chartwright", 200, 7),
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

func TestRepairs(t *testing.T) {
	about := func(name string) object { return object{"", "configmaps", "bench-1", name} }
	damaged := map[object]bool{about("a"): true, about("b"): true, about("c"): true}
	for _, test := range []struct {
		name  string
		lines []string
		want  map[object]time.Duration
	}{
		{"nothing", nil, map[object]time.Duration{}},
		{"one of two", []string{
			line(them, "patch", "configmaps", "a", 200, 10), line(them, "delete", "configmaps", "b", 200, 11), line(us, "patch", "configmaps", "a", 200, 40),
		}, map[object]time.Duration{about("a"): 30 * time.Millisecond}},
		{"the first repair counts", []string{
			line(them, "patch", "configmaps", "a", 200, 10), line(us, "patch", "configmaps", "a", 200, 20), line(us, "patch", "configmaps", "a", 200, 90),
		}, map[object]time.Duration{about("a"): 10 * time.Millisecond}},
		{"one that was refused does not", []string{
			line(them, "patch", "configmaps", "a", 200, 10), line(us, "patch", "configmaps", "a", 409, 20), line(us, "patch", "configmaps", "a", 200, 90),
		}, map[object]time.Duration{about("a"): 80 * time.Millisecond}},
		{"what was written before is no repair", []string{
			line(us, "patch", "configmaps", "a", 200, 5), line(them, "patch", "configmaps", "a", 200, 10),
		}, map[object]time.Duration{}},
		{"by when requests came, not by when they were noted", []string{
			line(us, "patch", "configmaps", "a", 200, 12), line(them, "patch", "configmaps", "a", 200, 11),
		}, map[object]time.Duration{about("a"): time.Millisecond}},
		{"others do not count", []string{
			line(them, "patch", "configmaps", "x", 200, 10), line(us, "patch", "configmaps", "x", 200, 20),
		}, map[object]time.Duration{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			requests, err := parseRequests([]byte(strings.Join(test.lines, "")), us, them)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, repairs(requests, them, us, damaged)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
