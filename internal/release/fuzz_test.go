package release_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// FuzzFromMeta reads the metadata of Secrets from untrusted users. The result must be
// limited in size, and the name must match the labels.
func FuzzFromMeta(f *testing.F) {
	const secretName = "sh.helm.release.v1.web.v3"
	f.Add(secretName, "web", "3", "u1", "3", `{"chart":"web","deployed":"2026-01-02T03:04:05Z"}`, `{"passed":true}`, `{"kinds":["v1/ConfigMap","apps/v1/Deployment"],"finished":{"a/b":"Complete"}}`, "3")
	f.Add(secretName, "web", "03", "u1", "x", `{"deployed":"0001-01-01T00:00:00+23:59"}`, `null`, `{"kinds":[`+strings.Repeat(`"",`, 5000)+`""]}`, "-1")
	f.Add("sh.helm.release.v1.a.v1.v2", "a.v1", "2", "", "", `{"description":"`+strings.Repeat("x", 20_000)+`"}`, `[]`, `{"finished":{"":""},"kinds":["/","a/b/c/d","//"]}`, "9999999999999999999")
	f.Fuzz(func(t *testing.T, secret, name, version, owner, revision, description, tested, inventory, held string) {
		meta := &metav1.ObjectMeta{
			Namespace: "apps", Name: secret,
			Labels: map[string]string{
				release.LabelOwner: release.OwnerHelm, release.LabelName: name, release.LabelVersion: version, release.LabelStatus: api.StatusDeployed,
				api.LabelOwnerUID: owner, api.LabelRevision: revision, api.LabelHeldRevision: held, "modifiedAt": revision,
			},
			Annotations: map[string]string{
				api.AnnotationOwner: owner, release.AnnotationRelease: description, release.AnnotationTested: tested,
				release.AnnotationInventory: inventory, release.AnnotationLookups: description,
			},
		}
		r, ok := release.FromMeta(meta)
		if ok != (name != "" && r.Revision != 0 && secret == release.SecretName(r.Release, r.Revision)) {
			// A record of revision 0 is valid if its name matches.
			if r.Revision != 0 || secret != release.SecretName(name, 0) {
				t.Fatalf("%q of release %q, version %q: record %v of revision %d", secret, name, version, ok, r.Revision)
			}
		}
		if !ok {
			return
		}
		if r.Written() && (r.Revision < 1 || r.OwnerUID == "") || r.Genuine() && !r.Written() {
			t.Errorf("revision %d of owner %q is written %v, genuine %v", r.Revision, r.OwnerUID, r.Written(), r.Genuine())
		}
		if kinds := r.Inventory.Kinds; len(kinds) > 100 || cap(kinds) > 256 || len(r.Inventory.GVKs()) > len(kinds) {
			t.Errorf("%d kinds in a slice of capacity %d", len(kinds), cap(kinds))
		}
		given := 0
		for _, texts := range []map[string]string{meta.Labels, meta.Annotations} {
			for _, text := range texts {
				given += len(text)
			}
		}
		if kept := retained(r); kept > 8*given+4096 {
			t.Errorf("%d of %d bytes are retained", kept, given)
		}
	})
}

// retained estimates the memory of a record in bytes: each string takes its length and
// a header.
func retained(r release.Record) int {
	size := 16 * cap(r.Inventory.Kinds)
	for _, text := range []string{
		r.Secret, r.Release, r.Status, string(r.OwnerUID), r.Owner, r.Chart, r.ChartVersion, r.AppVersion, r.Description.Description, r.Inventory.Digest, r.Lookups,
	} {
		size += len(text)
	}
	for _, kind := range r.Inventory.Kinds {
		size += len(kind)
	}
	for object, outcome := range r.Inventory.Finished {
		size += len(object) + len(outcome) + 64
	}
	if r.Tested != nil {
		size += len(r.Tested.Message) + 64
	}
	return size
}
