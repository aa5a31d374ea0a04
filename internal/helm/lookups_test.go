package helm

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// lookingChart returns a chart that reads a foreign ConfigMap and lists all Secrets. It
// generates a password and keeps it.
func lookingChart() files {
	return small().with("templates/config.yaml", `{{ $ns := .Release.Namespace }}
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data:
  word: {{ dig "data" "word" "none" (lookup "v1" "ConfigMap" $ns "settings") | quote }}
  secrets: {{ len (lookup "v1" "Secret" $ns "").items | quote }}
---
{{ $old := lookup "v1" "Secret" $ns "password" }}
apiVersion: v1
kind: Secret
metadata: {name: password}
data: {password: {{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum 12 | b64enc }}{{ end }}}
`)
}

// setting creates or changes the ConfigMap that the chart reads, or deletes it if word
// is empty.
func (w *world) setting(word string) {
	w.Helper()
	maps := w.plain.CoreV1().ConfigMaps(w.namespace)
	err := maps.Delete(w.Context(), "settings", metav1.DeleteOptions{})
	if word != "" {
		_, err = maps.Create(w.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"word": word},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// lookupResult returns the paths on the record of a revision. It fails the test if the
// index and the record have different digests of the inputs.
func (w *world) lookupResult(revision int) (input string, paths []string) {
	w.Helper()
	record, _ := w.index.Get(w.namespace, release.SecretName("web", revision))
	secret, err := w.plain.CoreV1().Secrets(w.namespace).Get(w.Context(), record.Secret, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if live, _ := release.FromMeta(secret); live.InputDigest != record.InputDigest {
		w.Errorf("the index has the digest %q and the record %q", record.InputDigest, live.InputDigest)
	}
	var found []lookupResult
	if text, ok := secret.Annotations[release.AnnotationLookups]; ok {
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			w.Fatal(err)
		}
	}
	for _, one := range found {
		paths = append(paths, one.Path)
	}
	return record.InputDigest, paths
}

func TestVerify_DetectsChangedLookups(t *testing.T) {
	w := newWorld(t)
	r := w.request(lookingChart().load(t), "inputs", nil)
	verify := func(when, input string) {
		t.Helper()
		if err := w.helm.Verify(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		newest := w.index.History(w.namespace, "web")[0].Revision
		if got, _ := w.lookupResult(newest); got != input {
			t.Errorf("%s: the record's digest is %q, want %q", when, got, input)
		}
	}
	upgrade := func(statuses ...string) {
		t.Helper()
		if err := w.helm.Upgrade(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		equal(t, "after the upgrade", statuses, w.statuses())
	}

	if err := w.helm.Install(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	at := "/api/v1/namespaces/" + w.namespace
	paths := []string{at + "/configmaps/settings", at + "/secrets"}
	_, got := w.lookupResult(1)
	equal(t, "the recorded lookups", paths, got)
	verify("nothing changed", "inputs")

	w.setting("one")
	verify("a missing object was created", "")
	verify("before the upgrade", "")
	upgrade("v2 deployed", "v1 superseded")
	for revision := range 2 {
		_, got := w.lookupResult(revision + 1)
		equal(t, "the recorded lookups", paths, got)
	}
	verify("after the upgrade", "inputs")

	w.setting("")
	w.setting("two")
	verify("a foreign object has its name", "")
	upgrade("v3 deployed", "v2 superseded", "v1 superseded")
	verify("after the upgrade", "inputs")

	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	if _, err := w.plain.CoreV1().Secrets(w.namespace).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	verify("a list has a new item", "")
	if err := w.helm.Rollback(t.Context(), r, 3); err != nil {
		t.Fatal(err)
	}
	_, got = w.lookupResult(4)
	equal(t, "the lookups of the revision before", paths, got)
}

// A chart that reads only its own objects adds nothing to the record.
func TestLookups_NoneRecorded(t *testing.T) {
	w := newWorld(t)
	r := w.request(mapsChart().load(t), "inputs", valuesOf("a=1"))
	if err := w.helm.Install(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	secret, err := w.plain.CoreV1().Secrets(w.namespace).Get(t.Context(), w.index.History(w.namespace, "web")[0].Secret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := secret.Annotations[release.AnnotationLookups]; ok {
		t.Errorf("the record has %q", text)
	}
}

func TestLookups_SurviveRecordUpdates(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*world, Request) error
	}{
		{"the patch of another inventory", func(w *world, r Request) error {
			patch := []byte(`{"metadata": {"annotations": {"chartwright.dev/inventory": "{}"}}}`)
			_, err := w.plain.CoreV1().Secrets(w.namespace).Patch(w.Context(), "sh.helm.release.v1.web.v1", types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return err
			}
			w.watch()
			if err := w.helm.Verify(w.Context(), r); err != nil {
				return err
			}
			if w.index.History(w.namespace, "web")[0].Inventory.Digest == "" {
				w.Error("nothing was patched")
			}
			return nil
		}},
		{"a mark", func(w *world, r Request) error {
			r.Marks = release.Marks{Reconcile: "now"}
			return w.helm.Mark(w.Context(), r)
		}},
		{"another action's update", func(w *world, r Request) error {
			return w.helm.MarkFailed(w.Context(), r, w.index.History(w.namespace, "web")[0], "Interrupted")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.request(lookingChart().load(t), "inputs", nil)
			if err := w.helm.Install(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := test.do(w, r); err != nil {
				t.Fatal(err)
			}
			if input, paths := w.lookupResult(1); len(paths) != 2 || input != "inputs" {
				t.Errorf("the record has %v, digest %q", paths, input)
			}
		})
	}
}

// Objects that the rules forbid now are not read; the repair before that works.
func TestLookups_RestrictedByAllowBlock(t *testing.T) {
	w := newWorld(t)
	r := w.request(lookingChart().load(t), "inputs", nil)
	if err := w.helm.Install(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := w.plain.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.setting("one")
	r.Allow.Lookup = watches.LookupNone
	if err := w.helm.Verify(t.Context(), r); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("the error is %v", err)
	}
	if input, _ := w.lookupResult(1); input != "inputs" {
		t.Errorf("the digest became %q", input)
	}
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// Paths in a record cannot make the operator read other paths.
func TestLookupsChanged(t *testing.T) {
	const mapsPath = "/api/v1/namespaces/apps/configmaps"
	nothing := found(secretList("1")).digest(mapsPath)
	const is, was = `[{"path": "` + secretPath + `", "digest": "`, `"}]`
	for _, test := range []struct {
		name, prefix, annotation string
		answer                   reply
		received                 []string
		outdated                 bool
		fails, forbidden         bool
		upgradeDue               bool
	}{
		{name: "nothing", annotation: ""},
		{name: "no longer JSON", annotation: "no", outdated: true},
		{name: "still absent", annotation: is + absentDigest + was, answer: none, received: []string{secretPath}},
		{name: "there now", annotation: is + absentDigest + was, answer: found(secretOf("a", "", "")), received: []string{secretPath}, outdated: true},
		{name: "created, with an upgrade due", annotation: is + absentDigest + was, upgradeDue: true},
		{name: "ours now", annotation: is + absentDigest + was, answer: found(secretOf("a", `, "labels": {"chartwright.dev/owner-uid": "cr-uid"}`, "")), received: []string{secretPath}},
		// For example an object of a hook that the helm CLI created.
		{
			name: "in a list, an owned object without the owner's label", annotation: `[{"path": "` + mapsPath + `", "digest": "` + nothing + `"}]`,
			answer: found(`{"items": [{"kind": "ConfigMap", "metadata": {"name": "web", "namespace": "apps"}}]}`), received: []string{mapsPath},
		},
		{
			name: "in a list, a foreign object", annotation: `[{"path": "` + mapsPath + `", "digest": "` + nothing + `"}]`,
			answer: found(`{"items": [{"kind": "ConfigMap", "metadata": {"name": "other", "namespace": "apps"}}]}`), received: []string{mapsPath}, outdated: true,
		},
		{name: "gone", annotation: is + "0123456789abcdef" + was, answer: none, received: []string{secretPath}, outdated: true},
		{name: "behind a prefix", prefix: "/k8s/clusters/c", annotation: is + "0123456789abcdef" + was, answer: none, received: []string{"/k8s/clusters/c" + secretPath}, outdated: true},
		{name: "an error", annotation: is + absentDigest + was, answer: reply{http.StatusForbidden, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`}, received: []string{secretPath}, fails: true},
		{name: "not served", annotation: is + "0123456789abcdef" + was, answer: reply{http.StatusNotFound, "404 page not found"}, received: []string{secretPath}, fails: true},
		{name: "another namespace", annotation: `[{"path": "/api/v1/namespaces/other/secrets/a", "digest": ""}]`, fails: true, forbidden: true},
		{name: "upwards", annotation: `[{"path": "` + secretsPath + `/../../other/secrets/a", "digest": ""}]`, outdated: true},
		{name: "another host", annotation: `[{"path": "@example.com/api/v1/namespaces/apps/secrets/a", "digest": ""}]`, outdated: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var received []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				received = append(received, r.URL.Path)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.answer.status)
				_, _ = io.WriteString(w, test.answer.body)
			}))
			t.Cleanup(server.Close)
			seen := newLookupRecord("cr-uid", nil, types.NamespacedName{})
			getter := lookupGetter{ctx: t.Context(), config: &rest.Config{Host: server.URL + test.prefix}, namespace: "apps", readings: seen}
			input := "inputs"
			if test.upgradeDue {
				input = ""
			}
			rls := aRelease()
			rls.Hooks = nil
			r := &run{
				config: &engine.Configuration{RESTClientGetter: getter},
				kube:   &kubeClient{readings: seen, builder: newTestBuilder(t)},
				driver: &release.Driver{Annotations: map[string]map[string]string{"v1": {release.AnnotationLookups: test.annotation}}},
			}
			outdated, err := r.lookupsChanged(t.Context(), current{record: release.Record{Secret: "v1", InputDigest: input}, release: rls})
			if outdated != test.outdated || (err != nil) != test.fails || errors.Is(err, ErrNotAllowed) != test.forbidden {
				t.Errorf("outdated: %t, error: %v", outdated, err)
			}
			equal(t, "the requests", test.received, received)
		})
	}
}
