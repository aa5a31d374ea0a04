package valuesfrom

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
)

var (
	databases = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
	database  = Ref{databases, "apps", "db"}
)

// evaluating returns a source with an expression.
func evaluating(t *testing.T, ref Ref, expression, path string) Source {
	t.Helper()
	compiled, err := Compile(expression, path == "")
	if err != nil {
		t.Fatal(err)
	}
	return Source{At: "valuesFrom[2]", Ref: ref, Expression: compiled, TargetPath: path}
}

// withDatabase returns a cluster with the Database.
func withDatabase() *cluster {
	c := newCluster()
	c.send(database, c.putObject(database, map[string]any{
		"spec": map[string]any{"replicas": int64(9007199254740993), "ratio": 0.5, "tls": true, "none": nil},
		"status": map[string]any{
			"host": "db.apps", "port": int64(5432), "ports": []any{int64(1), "two"}, "empty": []any{},
			"outputs": map[string]any{"user": "shop", "nested": map[string]any{"a": int64(1)}},
		},
	}))
	return c
}

func TestExpression_TypedValues(t *testing.T) {
	for expression, want := range map[string]any{
		"self.status.host":    "db.apps",
		"self.status.port":    int64(5432),
		"self.spec.replicas":  int64(9007199254740993),
		"self.spec.ratio":     0.5,
		"self.spec.tls":       true,
		"self.status.ports":   []any{int64(1), "two"},
		"self.status.outputs": map[string]any{"user": "shop", "nested": map[string]any{"a": int64(1)}},
		"self.status.host + ':' + string(self.status.port)":    "db.apps:5432",
		"self.kind + '/' + self.metadata.name":                 "Database/db",
		"self.status.?nothing.orValue('other')":                "other",
		"{'host': self.status.host, ?'no': self.status.?no}":   map[string]any{"host": "db.apps"},
		"self.status.ports.map(p, type(p) == int ? 'int' : p)": []any{"int", "two"},
	} {
		c := withDatabase()
		got := c.merge(t, "u", evaluating(t, database, expression, "a.b[0]"))
		if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": []any{want}}}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
}

func TestExpression_MapIsMerged(t *testing.T) {
	c := withDatabase()
	got, secrets, err := c.Merge(t.Context(), "u", []Source{evaluating(t, database, "self.status.outputs", "")},
		map[string]any{"user": "spec", "nested": map[string]any{"b": "kept"}})
	if err != nil || len(secrets) > 0 {
		t.Fatalf("%v, secrets %q", err, secrets)
	}
	if diff := cmp.Diff(map[string]any{"user": "shop", "nested": map[string]any{"a": int64(1), "b": "kept"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A caller, and a later source, cannot change the result in memory.
func TestExpression_ResultIsCopied(t *testing.T) {
	c := withDatabase()
	from := []Source{evaluating(t, database, "self.status.outputs", "db"), evaluating(t, database, "{'db': {'user': 'other'}}", "")}
	for range 2 {
		got := c.merge(t, "u", from...)
		if diff := cmp.Diff(map[string]any{"db": map[string]any{"user": "other", "nested": map[string]any{"a": int64(1)}}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got["db"].(map[string]any)["nested"].(map[string]any)["a"] = "changed"
	}
	if got := c.merge(t, "u", from[0])["db"].(map[string]any)["user"]; got != "shop" {
		t.Errorf("the result in memory is %v", got)
	}
}

func TestExpression_Problems(t *testing.T) {
	missing := Ref{databases, "apps", "other"}
	for _, test := range []struct {
		ref              Ref
		expression, path string
		reason, message  string
	}{
		{missing, "self.status.host", "a", api.ReasonValuesSourceMissing, "valuesFrom[2]: Database apps/other does not exist: create it"},
		{database, "self.status.nothing.host", "a", api.ReasonValuesSourceMissing, "valuesFrom[2]: Database apps/db: the expression self.status.nothing.host has no value: no such key: nothing"},
		{database, "self.status.empty[0]", "a", api.ReasonValuesSourceMissing, "valuesFrom[2]: Database apps/db: the expression self.status.empty[0] has no value: index out of bounds: 0"},
		{database, "self.spec.none", "a", api.ReasonValuesSourceMissing, "valuesFrom[2]: Database apps/db: the expression self.spec.none has no value: the result is null"},
		{database, "self.status.?nothing", "a", api.ReasonValuesSourceMissing, "valuesFrom[2]: Database apps/db: the expression self.status.?nothing has no value: the result is null"},
		{database, "self.status.?nothing", "", api.ReasonValuesSourceMissing, "valuesFrom[2]: Database apps/db: the expression self.status.?nothing has no value: the result is null"},
		{database, "int(self.status.host)", "a", api.ReasonValuesSourceInvalid, "valuesFrom[2]: Database apps/db: the expression int(self.status.host) failed: "},
		{database, "1 / (self.status.port - 5432)", "a", api.ReasonValuesSourceInvalid, "valuesFrom[2]: Database apps/db: the expression 1 / (self.status.port - 5432) failed: division by zero"},
		{database, "type(self)", "a", api.ReasonValuesSourceInvalid, "valuesFrom[2]: Database apps/db: the expression type(self) failed: the result is a type, which JSON cannot represent"},
		{database, "self.status.host", "", api.ReasonValuesSourceInvalid, "valuesFrom[2]: Database apps/db: the expression self.status.host has a result that is not a map: add targetPath"},
		{database, "lists.range(3000).map(i, self.status).map(i, lists.range(100))", "a", api.ReasonValuesSourceInvalid, "valuesFrom[2]: Database apps/db: the expression lists.range(3000).map(i, self.status).map(i, lists.range(100)) failed: "},
		{database, "self.status.host", "word.b", api.ReasonValuesSourceInvalid, "valuesFrom[2]: cannot set the value word.b from the expression self.status.host of Database apps/db"},
	} {
		c := withDatabase()
		from := evaluating(t, test.ref, test.expression, test.path)
		_, _, err := c.Merge(t.Context(), "u", []Source{from}, map[string]any{"word": "x"})
		problem, ok := errors.AsType[*Error](err)
		if !ok || problem.Reason != test.reason || !strings.HasPrefix(err.Error(), test.message) || problem.Ref != test.ref {
			t.Errorf("%s: got %v, %+v, want %s: %s", test.expression, err, problem, test.reason, test.message)
		}
		from.Optional = true
		got, _, err := c.Merge(t.Context(), "u", []Source{from}, map[string]any{"word": "x"})
		if used := err == nil && cmp.Equal(got, map[string]any{"word": "x"}); used != (test.reason == api.ReasonValuesSourceMissing) {
			t.Errorf("%s: optional: got %v, %v", test.expression, got, err)
		}
	}
}

func TestCompile_Rejected(t *testing.T) {
	for expression, want := range map[string]string{
		"self.":            "column 6: Syntax error",
		"other.status":     "column 1: undeclared reference to 'other'",
		"'a'":              "got an expression of type string, want a map",
		"self.a + ''":      "got an expression of type string, want a map",
		"optional.of([1])": "got an expression of type optional_type(list(int)), want a map",
	} {
		if _, err := Compile(expression, true); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	for _, expression := range []string{"self", "self.a", "{'a': 1}", "optional.of({'a': 1})", "self.?a"} {
		if _, err := Compile(expression, true); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

// An expression reads the data of a Secret as text. All of it is secret, and no error quotes
// it.
func TestExpression_Secret(t *testing.T) {
	const canary, other = "canary-3f9a", "canary-77e1"
	for _, test := range []struct {
		expression, path string
		want             any
		reason, message  string
	}{
		{"self.data.password", "a", canary, "", ""},
		{"self.data.password + '@' + self.type", "a", canary + "@Opaque", "", ""},
		{"self.data.password.upperAscii()", "a", "CANARY-3F9A", "", ""},
		{"{'deep': [self.data.password]}", "a", map[string]any{"deep": []any{canary}}, "", ""},
		{"self.data.password.split('-')", "a", []any{"canary", "3f9a"}, "", ""},
		{"int(self.data.pin)", "a", int64(123456), "", ""},
		{"self.data[self.data.password]", "a", nil, api.ReasonValuesSourceMissing, "has no value: it reads a field that does not exist, or the result is null"},
		{"int(self.data.password)", "a", nil, api.ReasonValuesSourceInvalid, "failed; the error is not reported, because it may contain a part of the Secret"},
		{"uint(self.data.pin) + 18446744073709428159u", "a", nil, api.ReasonValuesSourceInvalid, "failed; the error is not reported"},
		{"self.data.password", "", nil, api.ReasonValuesSourceInvalid, "has a result that is not a map"},
	} {
		c := newCluster()
		metadata := c.put(secret, map[string]string{"password": canary, "other": other, "pin": "123456"})
		c.objects[secret].Object["type"] = "Opaque"
		c.send(secret, metadata)
		got, secrets, err := c.Merge(t.Context(), "u", []Source{evaluating(t, secret, test.expression, test.path)}, map[string]any{})
		if test.want == nil {
			problem, ok := errors.AsType[*Error](err)
			if want := "valuesFrom[2]: Secret apps/web: the expression " + test.expression + " " + test.message; !ok || problem.Reason != test.reason || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: got %v, want %s: %s", test.expression, err, test.reason, want)
			}
			if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "123456") {
				t.Errorf("%s: the error contains the secret: %v", test.expression, err)
			}
			continue
		}
		if diff := cmp.Diff(map[string]any{"a": test.want}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.expression, err, diff)
		}
		if text, ok := test.want.(string); ok && strings.Contains(secrets.Redact("got "+text), text) {
			t.Errorf("%s: the result is not redacted: %q", test.expression, secrets)
		}
		if left := secrets.Redact("got " + canary + ", " + other + " and 123456"); left != "got [redacted], [redacted] and [redacted]" {
			t.Errorf("%s: redacted as %q with %q", test.expression, left, secrets)
		}
	}
	// The data of other kinds is not secret.
	c := newCluster()
	c.putAndSend(configMap, map[string]string{"password": canary})
	got, secrets, err := c.Merge(t.Context(), "u", []Source{evaluating(t, configMap, "self.data.password", "a")}, map[string]any{})
	if err != nil || got["a"] != canary || len(secrets) > 0 {
		t.Errorf("got %v, secrets %q, %v", got, secrets, err)
	}
}

func TestExpression_ReadsEachVersionOnce(t *testing.T) {
	c := withDatabase()
	host, port := evaluating(t, database, "self.status.host", "host"), evaluating(t, database, "self.status.port", "port")
	for range 3 {
		c.merge(t, "one", host, port)
		// Another kind compiles the same expression again.
		c.merge(t, "two", evaluating(t, database, "self.status.host", "other"))
	}
	// One request for each expression that was not used before.
	c.expectReads(t, 2)
	versions := c.Versions([]Source{host})
	c.send(database, c.putObject(database, map[string]any{"status": map[string]any{"host": "new", "port": int64(1)}}))
	c.expectNotified(t, "one", "two")
	if c.Versions([]Source{host}) == versions {
		t.Error("the versions are the same after a change")
	}
	var wait sync.WaitGroup
	for _, user := range []types.UID{"one", "two", "three", "four"} {
		wait.Go(func() {
			got, _, err := c.Merge(t.Context(), user, []Source{host, port}, map[string]any{})
			if err != nil || !cmp.Equal(got, map[string]any{"host": "new", "port": int64(1)}) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	wait.Wait()
	c.expectReads(t, 1)
	if n := len(c.Store.objects[database].parts); n != 2 {
		t.Errorf("%d parts in memory, want 2", n)
	}
	if a, b := c.Versions([]Source{host}), c.Versions([]Source{evaluating(t, database, "self.status.port", "host")}); a == b {
		t.Error("the versions of two expressions are equal")
	}
}

func TestFeed_States(t *testing.T) {
	c := newCluster()
	feed := c.Feed(databases)
	from := evaluating(t, database, "self.status.host", "host")
	optional := from
	optional.Optional = true
	expect := func(reason, message string) {
		t.Helper()
		_, _, err := c.Merge(t.Context(), "u", []Source{from}, map[string]any{})
		problem, _ := errors.AsType[*Error](err)
		if err == nil || !strings.Contains(err.Error(), message) || reason == "" && problem != nil || reason != "" && (problem == nil || problem.Reason != reason) {
			t.Errorf("got %v, want %s: %s", err, reason, message)
		}
	}
	expect("", "Database apps/db: objects of the kind Database are not listed yet")
	if _, _, err := c.Merge(t.Context(), "u", []Source{optional}, map[string]any{}); err == nil {
		t.Error("an optional source that may exist is skipped")
	}
	const unserved = `no matches for kind "Database" in version "example.com/v1"`
	if !feed.Failed(unserved) || feed.Failed(unserved) {
		t.Error("a reason is not new exactly once")
	}
	c.expectNotified(t, "u")
	expect(api.ReasonValuesSourceMissing, "valuesFrom[2]: Database apps/db cannot be read: "+unserved)
	if _, _, err := c.Merge(t.Context(), "u", []Source{optional}, map[string]any{}); err != nil {
		t.Errorf("an optional source of a kind that is not served: %v", err)
	}
	feed.Failed(Forbidden("{apiGroups: [example.com]}"))
	c.expectNotified(t, "u")
	expect(api.ReasonValuesSourceForbidden, "add to the rules of the operator's role: {apiGroups: [example.com]}")
	feed.Synced()
	c.expectNotified(t, "u")
	expect(api.ReasonValuesSourceMissing, "Database apps/db does not exist: create it")
	if feed.Failed("ended") {
		t.Error("a failure after the list is new")
	}
	c.send(database, c.putObject(database, map[string]any{"status": map[string]any{"host": "x"}}))
	c.expectNotified(t, "u")
	if got := c.merge(t, "u", from); got["host"] != "x" {
		t.Errorf("got %v", got)
	}
	// The state of another kind does not matter.
	c.Feed(schema.GroupVersionKind{Version: "v1", Kind: "Service"}).Synced()
	c.expectNotified(t)
}

// The namespace of an object of a cluster-scoped kind does not matter.
func TestFeed_ClusterScoped(t *testing.T) {
	c := newCluster()
	from := evaluating(t, database, "self.status.host", "host")
	if _, _, err := c.Merge(t.Context(), "u", []Source{from}, map[string]any{}); err == nil {
		t.Error("a missing source can be used")
	}
	feed := c.Feed(databases)
	feed.Scoped(true)
	c.expectNotified(t, "u")
	feed.Synced()
	c.notified = nil
	if _, _, err := c.Merge(t.Context(), "u", []Source{from}, map[string]any{}); err == nil || !strings.Contains(err.Error(), "Database db does not exist") {
		t.Errorf("got %v", err)
	}
	cluster, versions := database, c.Versions([]Source{from})
	cluster.Namespace = ""
	c.send(cluster, c.putObject(cluster, map[string]any{"status": map[string]any{"host": "x"}}))
	c.expectNotified(t, "u")
	if got := c.merge(t, "u", from); got["host"] != "x" {
		t.Errorf("got %v", got)
	}
	if c.Versions([]Source{from}) == versions {
		t.Error("the versions are the same after a change")
	}
	if !slices.Equal(c.reads, []Ref{cluster}) {
		t.Errorf("read %v", c.reads)
	}
}

func TestExpression_ForbiddenObject(t *testing.T) {
	c := withDatabase()
	c.fails = apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "databases"}, "db", errors.New("no"))
	from := evaluating(t, database, "self.status.host", "host")
	from.Optional = true
	_, _, err := c.Merge(t.Context(), "u", []Source{from}, map[string]any{})
	if problem, ok := errors.AsType[*Error](err); !ok || problem.Reason != api.ReasonValuesSourceForbidden {
		t.Errorf("got %v", err)
	}
}
