package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// If an object that a template looked up changes, the next verification of the
// release creates one new revision. Until then, the change causes no requests.
func TestLookup_ChangeUpgradesAtVerification(t *testing.T) {
	t.Parallel()
	for _, when := range []struct {
		name   string
		kind   harness.Kind
		period bool
		// request requests a verification of the release.
		request func(*harness.Env, *unstructured.Unstructured)
	}{
		{"the period elapses", tenantVerifiedOften, true, func(*harness.Env, *unstructured.Unstructured) {}},
		{"on request", tenantVerifiedOnce, false, func(env *harness.Env, cr *unstructured.Unstructured) {
			env.Patch(cr, `[{"op": "add", "path": "/metadata/annotations", "value": {"chartwright.dev/reconcile-requested-at": "now"}}]`)
		}},
	} {
		t.Run(when.name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			kind := env.Use(when.kind)
			prize := harness.Secret("prize")
			prize.Object["stringData"] = map[string]any{"word": "silver"}
			env.Create(prize)
			web := harness.MakeCR(kind, "web").Set("lookup", env.Namespace).Obj()
			env.Create(web)
			env.WaitRevision(web, 1)
			expectData(t, env, "web", "found", base64.StdEncoding.EncodeToString([]byte("silver")))

			audit := env.Audit(harness.SharedUser())
			gold := base64.StdEncoding.EncodeToString([]byte("gold"))
			env.Patch(prize, `[{"op": "replace", "path": "/data/word", "value": "`+gold+`"}]`)
			if !when.period {
				// Another release is created meanwhile, so that the operator
				// had time.
				other := harness.MakeCR(kind, "other").Obj()
				env.Create(other)
				env.WaitReady(other)
				if found := lookups(audit, "prize"); found > 0 {
					t.Errorf("%d lookups before", found)
				}
			}
			when.request(env, web)
			env.WaitRevision(web, 2)
			expectData(t, env, "web", "found", gold)
			env.ExpectRevisions("web", "1 superseded, 2 deployed")

			// Further verifications find no change.
			audit = env.Audit(harness.SharedUser())
			if when.period {
				env.Wait("two more lookups", func(context.Context) error {
					if lookups(audit, "prize") < 2 {
						return errors.New("not yet")
					}
					return nil
				})
			}
			env.ExpectRevisions("web", "1 superseded, 2 deployed")
		})
	}
}

// lookups counts how often an object was read.
func lookups(audit *harness.Audit, name string) (count int) {
	for _, request := range audit.Requests() {
		if request.Verb == "get" && request.ObjectRef.Name == name {
			count++
		}
	}
	return count
}
