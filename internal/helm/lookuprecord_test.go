package helm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/release"
)

const (
	secretPath  = "/api/v1/namespaces/apps/secrets/a"
	secretsPath = "/api/v1/namespaces/apps/secrets"
)

// secretOf returns the JSON of a Secret with additional metadata and fields.
func secretOf(name, metadata, rest string) string {
	return fmt.Sprintf(`{"kind": "Secret", "metadata": {"name": %q, "namespace": "apps"%s}%s}`, name, metadata, rest)
}

func secretList(version string, items ...string) string {
	return fmt.Sprintf(`{"kind": "SecretList", "metadata": {"resourceVersion": %q}, "items": [%s]}`, version, strings.Join(items, ","))
}

// reply is a response of the API server for one path.
type reply struct {
	status int
	body   string
}

func found(body string) reply { return reply{http.StatusOK, body} }

var none = reply{http.StatusNotFound, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "details": {"name": "a", "kind": "secrets"}, "code": 404}`}

// digest returns the digest of the reply on the record, empty if the reply is ignored.
func (r reply) digest(path string, without ...place) string {
	readings, own := newLookupRecord("cr-uid", nil, types.NamespacedName{}), map[place]bool{}
	readings.note(path, r.status, []byte(r.body))
	for _, p := range without {
		own[p] = true
	}
	if looked := readings.lookups(own); len(looked) == 1 && looked[0].Path == path {
		return looked[0].Digest
	}
	return ""
}

// Two responses differ if a template could render them differently.
func TestLookupRecord_DetectsDifferences(t *testing.T) {
	a := found(secretOf("a", "", `, "data": {"word": "b25l"}`))
	for _, test := range []struct {
		name, path string
		one, two   reply
		differ     bool
		// own is the name of a Secret of the release.
		own string
	}{
		{"the same", secretPath, a, a, false, ""},
		{"other data", secretPath, a, found(secretOf("a", "", `, "data": {"word": "dHdv"}`)), true, ""},
		{"another label", secretPath, a, found(secretOf("a", `, "labels": {"a": "b"}`, `, "data": {"word": "b25l"}`)), true, ""},
		{"written with the same content", secretPath, found(secretOf("a", `, "resourceVersion": "1"`, "")), found(secretOf("a", `, "resourceVersion": "2"`, "")), false, ""},
		{"other field manager", secretPath, found(secretOf("a", `, "managedFields": [{"manager": "a"}]`, "")), found(secretOf("a", `, "managedFields": [{"manager": "b"}]`, "")), false, ""},
		{"made again", secretPath, found(secretOf("a", `, "uid": "1"`, "")), found(secretOf("a", `, "uid": "2"`, "")), true, ""},
		{"gone", secretPath, a, none, true, ""},
		{"missing twice", secretPath, none, reply{http.StatusNotFound, "not found"}, false, ""},
		{"a list read twice", secretsPath, found(secretList("1", a.body)), found(secretList("2", a.body)), false, ""},
		{"a list in another order", secretsPath, found(secretList("1", a.body, secretOf("b", "", ""))), found(secretList("1", secretOf("b", "", ""), a.body)), false, ""},
		{"an item of a list written with the same content", secretsPath, found(secretList("1", secretOf("a", `, "resourceVersion": "1"`, ""))), found(secretList("2", secretOf("a", `, "resourceVersion": "2"`, ""))), false, ""},
		{"an item changed", secretsPath, found(secretList("1", a.body)), found(secretList("1", secretOf("a", "", ""))), true, ""},
		{"an additional item", secretsPath, found(secretList("1", a.body)), found(secretList("1", a.body, secretOf("b", "", ""))), true, ""},
		{"the first item", secretsPath, found(secretList("1")), found(secretList("1", a.body)), true, ""},
		{"an empty list and a missing list", secretsPath, found(secretList("1")), none, true, ""},
		{"an additional item of the release", secretsPath, found(secretList("1", a.body)), found(secretList("1", a.body, secretOf("b", "", ""))), false, "b"},
		{"an additional item with the owner's label", secretsPath, found(secretList("1", a.body)), found(secretList("1", a.body, secretOf("b", `, "labels": {"chartwright.dev/owner-uid": "cr-uid"}`, ""))), false, ""},
		{"an additional item of another release", secretsPath, found(secretList("1", a.body)), found(secretList("1", a.body, secretOf("b", `, "labels": {"chartwright.dev/owner-uid": "another"}`, ""))), true, ""},
		{"an object of a hook", secretsPath, found(secretList("1", a.body)), found(secretList("1", a.body, secretOf("b", `, "labels": {"chartwright.dev/hook-owner-uid": "cr-uid"}`, ""))), false, ""},
		{"a revision of any release", secretsPath, found(secretList("1", a.body)), found(secretList("1", a.body, secretOf("b", "", `, "type": "helm.sh/release.v1"`))), false, ""},
		{"the status of the custom resource itself", secretPath, found(secretOf("a", `, "uid": "cr-uid"`, `, "status": 1`)), found(secretOf("a", `, "uid": "cr-uid"`, `, "status": 2`)), false, ""},
		{"the spec of the custom resource itself", secretPath, found(secretOf("a", `, "uid": "cr-uid"`, `, "spec": 1`)), found(secretOf("a", `, "uid": "cr-uid"`, `, "spec": 2`)), true, ""},
		{"the status of another custom resource", secretPath, found(secretOf("a", "", `, "status": 1`)), found(secretOf("a", "", `, "status": 2`)), true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var own []place
			if test.own != "" {
				own = append(own, place{"", "secrets", "apps", test.own})
			}
			one, two := test.one.digest(test.path, own...), test.two.digest(test.path, own...)
			if one == "" || two == "" {
				t.Fatalf("ignored: %q and %q", one, two)
			}
			if (one != two) != test.differ {
				t.Errorf("%s and %s, want them to differ: %t", one, two, test.differ)
			}
		})
	}
}

func TestLookupRecord_IgnoresOtherPaths(t *testing.T) {
	a := place{"", "secrets", "apps", "a"}
	for _, test := range []struct {
		name  string
		path  string
		reply reply
	}{
		{"an object of the release", secretPath, found(secretOf("a", "", ""))},
		{"a missing object of the release", secretPath, none},
		{"an object of the release in another API version", "/api/v2/namespaces/apps/secrets/a", none},
		{"an object with the owner's label", "/api/v1/namespaces/apps/secrets/b", found(secretOf("b", `, "labels": {"chartwright.dev/owner-uid": "cr-uid"}`, ""))},
		{"discovery", "/api/v1", found(`{"kind": "APIResourceList"}`)},
		{"discovery with status 404", "/apis/example.com/v1", none},
		{"a forbidden object", "/api/v1/namespaces/apps/secrets/b", reply{http.StatusForbidden, `{"kind": "Status"}`}},
		{"invalid JSON", "/api/v1/namespaces/apps/secrets/b", found("no")},
	} {
		if got := test.reply.digest(test.path, a); got != "" {
			t.Errorf("%s is recorded as %s", test.name, got)
		}
	}
}

func TestLookupRecord_SortedAndLimited(t *testing.T) {
	log := &logBuffer{redact: NoOp{}.Redact}
	k := &kubeClient{readings: newLookupRecord("cr-uid", nil, types.NamespacedName{}), builder: newTestBuilder(t), log: log}
	rls := aRelease()
	rls.Hooks = nil
	if text, err := k.lookupsAnnotation(rls); text != "" || err != nil {
		t.Errorf("without lookups: %q, %v", text, err)
	}
	for _, name := range []string{"c", "a", "b"} {
		k.readings.note("/api/v1/namespaces/apps/secrets/"+name, http.StatusNotFound, nil)
	}
	want := `[{"path":"/api/v1/namespaces/apps/secrets/a","digest":"absent"},` +
		`{"path":"/api/v1/namespaces/apps/secrets/b","digest":"absent"},` +
		`{"path":"/api/v1/namespaces/apps/secrets/c","digest":"absent"}]`
	if text, err := k.lookupsAnnotation(rls); text != want || err != nil {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	for i := range 2000 {
		k.readings.note(fmt.Sprintf("/api/v1/namespaces/apps/secrets/z%s-%d", strings.Repeat("x", i%100), i), http.StatusNotFound, nil)
	}
	text, err := k.lookupsAnnotation(rls)
	if err != nil || len(text) > maxLookupAnnotation || len(text) < maxLookupAnnotation/2 || !strings.HasPrefix(text, strings.TrimSuffix(want, "]")) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if lines := log.lines(); len(lines) == 0 || !strings.Contains(lines[0], "too many objects") {
		t.Errorf("the log: %q", lines)
	}
}

// Templates cannot read release records, which contain the values of other custom
// resources. The data of Secrets that they read is reported for redaction.
func TestLookupRecord_HidesReleaseRecords(t *testing.T) {
	secret := func(name, kind, data string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": map[string]any{"name": name}, "data": map[string]any{"key": data}}
	}
	const encoded, plain = "aHVudGVyMg==", "hunter2"
	var reported []string
	r := newLookupRecord("cr-uid", func(data map[string]any) {
		text, _ := data["key"].(string)
		reported = append(reported, text)
	}, types.NamespacedName{})
	if got := r.readable(secret("sh.helm.release.v1.web.v1", release.SecretType, encoded)); len(got) > 0 {
		t.Errorf("a record: %v", got)
	}
	list := r.readable(map[string]any{"apiVersion": "v1", "kind": "SecretList", "items": []any{
		secret("sh.helm.release.v1.web.v1", release.SecretType, encoded), secret("db", "Opaque", encoded),
	}})
	if items, _ := list["items"].([]any); len(items) != 1 {
		t.Errorf("a list: %v", list)
	}
	if got := r.readable(secret("db", "Opaque", encoded)); !cmp.Equal(got, secret("db", "Opaque", encoded)) {
		t.Errorf("a Secret: %v", got)
	}
	r.readable(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "public"}})
	if diff := cmp.Diff([]string{plain, plain}, reported); diff != "" {
		t.Error(diff)
	}
}

// Templates cannot read signing keys: neither the operator's own, found by name, nor
// those of other operators, found by label.
func TestLookupRecord_HidesSigningKeys(t *testing.T) {
	t.Parallel()
	secret := func(namespace, name string, labels map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"current": "aHVudGVyMg=="},
			"metadata": map[string]any{"namespace": namespace, "name": name, "labels": labels},
		}
	}
	r := newLookupRecord("cr-uid", func(map[string]any) { t.Error("a hidden key was reported") }, types.NamespacedName{Namespace: "system", Name: "op-signing-key"})
	own, other := secret("system", "op-signing-key", nil), secret("apps", "any", map[string]any{"chartwright.dev/signing-key": "other"})
	for _, key := range []map[string]any{own, other} {
		if got := r.readable(key); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	}
	list := r.readable(map[string]any{"apiVersion": "v1", "kind": "SecretList", "items": []any{own, other}})
	if items, _ := list["items"].([]any); len(items) > 0 {
		t.Errorf("a list: got %v", list)
	}
}
