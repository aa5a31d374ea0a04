package release

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/api"
)

func TestReadRecord(t *testing.T) {
	rls := aRelease()
	// The manifest contains documents of templates, and of a post-renderer of the helm
	// CLI.
	rls.Manifest = "---\n# Source: small/templates/a.yaml\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n" +
		"---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
	secret := mustEncode(t, rls)
	stored, err := ReadRecord(secret)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range append(stored.Objects, stored.Hooks...) {
		got = append(got, o.Source+" "+o.GetKind()+" "+o.GetName())
	}
	want := []string{"templates/a.yaml Secret a", "templates/a.yaml Secret b", " ConfigMap c", "templates/job.yaml Job "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"replicas": int64(2), "nothing": nil}, stored.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	// The record has no annotations.
	if stored.Chart != "small" || stored.ChartVersion != "1.2.3" || stored.AppVersion != "9" {
		t.Errorf("the chart is %s %s, app %s", stored.Chart, stored.ChartVersion, stored.AppVersion)
	}
	if stored.Release != "web" || stored.Revision != 3 || stored.Status != api.StatusDeployed {
		t.Errorf("the record is %+v", stored.Record)
	}
	if name := SecretName("web", 3); name != recordKey {
		t.Errorf("its name is %s", name)
	}
}

func TestReadRecord_RejectsInvalid(t *testing.T) {
	whole := aRelease()
	for name, spoil := range map[string]func() error{
		"content": func() error {
			secret := mustEncode(t, whole)
			secret.Data["release"] = []byte("bm90aGluZw==")
			_, err := ReadRecord(secret)
			return err
		},
		"labels": func() error {
			secret := mustEncode(t, whole)
			delete(secret.Labels, "version")
			_, err := ReadRecord(secret)
			return err
		},
		"manifest": func() error {
			rls := aRelease()
			rls.Manifest = "---\n- a list\n"
			_, err := ReadRecord(mustEncode(t, rls))
			return err
		},
	} {
		if err := spoil(); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
