package helm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// crdWorld is a release whose chart has a CRD in crds/.
type crdWorld struct {
	*world
	crds dynamic.ResourceInterface
	name string
}

func newCRDWorld(t *testing.T) *crdWorld {
	t.Helper()
	w := newWorld(t)
	client, err := dynamic.NewForConfig(apiServer.config)
	if err != nil {
		t.Fatal(err)
	}
	c := &crdWorld{world: w, crds: client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")), name: "dials." + w.namespace + ".example.com"}
	t.Cleanup(func() {
		if err := c.crds.Delete(context.Background(), c.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return c
}

// chart returns a chart whose CRD has versions. The first one is the storage version.
func (c *crdWorld) chart(versions ...string) *chart.Chart {
	c.Helper()
	var text strings.Builder
	text.WriteString("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " + c.name +
		"\nspec:\n  group: " + c.namespace + ".example.com\n  scope: Namespaced\n  names: {kind: Dial, plural: dials}\n  versions:\n")
	for i, version := range versions {
		storage := "false"
		if i == 0 {
			storage = "true"
		}
		text.WriteString("    - {name: " + version + ", served: true, storage: " + storage + ", schema: {openAPIV3Schema: {type: object}}}\n")
	}
	return mapsChart().with("crds/dial.yaml", text.String()).load(c.T)
}

func (c *crdWorld) request(versions ...string) Request {
	c.Helper()
	r := c.world.request(c.chart(versions...), strings.Join(versions, "-"), valuesOf("a="+versions[0]))
	r.CRDs = watches.CRDsReplace
	return r
}

// versions returns the versions and the UID of the live CRD.
func (c *crdWorld) versions() ([]string, types.UID) {
	c.Helper()
	live, err := c.crds.Get(c.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	decoded, err := decodeCRD(live)
	if err != nil {
		c.Fatal(err)
	}
	names := make([]string, len(decoded.Spec.Versions))
	for i, version := range decoded.Spec.Versions {
		names[i] = version.Name
	}
	return names, live.GetUID()
}

// expectVersions checks the versions of the live CRD.
func (c *crdWorld) expectVersions(want ...string) {
	c.Helper()
	got, _ := c.versions()
	equal(c.T, "the versions of the CRD", want, got)
}

func TestGuard_CRDReplacementWaitsForApproval(t *testing.T) {
	w := newCRDWorld(t)
	w.must(w.helm.Install(t.Context(), w.request("v2", "v1")))
	digest := w.waits("replace CustomResourceDefinition "+w.name+" (version v1 was removed)", w.upgrade, w.request("v2"))
	w.expectVersions("v2", "v1")

	other := w.request("v2")
	other.Approve = "another"
	if again := w.waits("digest of another plan", w.upgrade, other); again != digest {
		t.Errorf("the digest is %s, then %s", digest, again)
	}
	_, uid := w.versions()
	var waiting *ApprovalError
	if err := w.upgrade(w.request("v2")); !errors.As(err, &waiting) || len(waiting.Plan.Operations) != 1 || waiting.Plan.Operations[0].UID != uid {
		t.Errorf("the error is %v, want a plan with the UID %s", err, uid)
	}
	approved := w.request("v2")
	approved.Approve = digest
	w.must(w.upgrade(approved))
	w.expectVersions("v2")
	equal(t, "the approval on the record", digest, w.newest().Approved)
}

// The API server rejects the removal of a version that .status.storedVersions lists.
// An approval is requested only after users have resolved that.
func TestGuard_CRDWithStoredVersionIsRejectedBeforeApproval(t *testing.T) {
	w := newCRDWorld(t)
	w.must(w.helm.Install(t.Context(), w.request("v1")))
	w.watch()
	watched := &disturbance{}
	w.net.armed.Store(watched)
	err := w.upgrade(w.request("v2"))
	w.net.armed.Store(nil)
	if err == nil || errors.Is(err, ErrApprovalRequired) || !strings.Contains(err.Error(), "remove v1 from .status.storedVersions") {
		t.Errorf("the error is %v", err)
	}
	if written := writes(watched.log()); len(written) > 0 {
		t.Errorf("the action wrote %v", written)
	}
	w.must(w.upgrade(w.request("v2", "v1")))
	if _, err := w.crds.Patch(t.Context(), w.name, types.MergePatchType, []byte(`{"status": {"storedVersions": ["v2"]}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	approved := w.request("v2")
	approved.Approve = w.waits("version v1 was removed", w.upgrade, w.request("v2"))
	w.must(w.upgrade(approved))
	w.expectVersions("v2")
}

// Without an approval, a CRD that breaks custom resources is never replaced.
func TestGuard_BreakingCRDIsRejectedIfNoApprovalIsRequested(t *testing.T) {
	w := newCRDWorld(t)
	w.must(w.helm.Install(t.Context(), w.request("v2", "v1")))
	rejects := func(t *testing.T, act func(Request) error, r Request) {
		t.Helper()
		w.watch()
		watched := &disturbance{}
		w.net.armed.Store(watched)
		err := act(r)
		w.net.armed.Store(nil)
		if !errors.Is(err, errBreakingCRD) || !strings.Contains(err.Error(), "version v1 was removed") {
			t.Errorf("the error is %v", err)
		}
		if written := writes(watched.log()); slices.ContainsFunc(written, func(request string) bool { return !strings.Contains(request, "/secrets/") }) {
			t.Errorf("the action wrote %v", written)
		}
		w.expectVersions("v2", "v1")
	}
	for name, set := range map[string]func(*Request){
		"Warn":       func(r *Request) { r.Guard.Mode = watches.GuardWarn },
		"Off":        func(r *Request) { r.Guard.Mode = watches.GuardOff },
		"Off Always": func(r *Request) { r.Guard.Mode, r.Approval = watches.GuardOff, watches.ApprovalAlways },
		"Never":      func(r *Request) { r.Approval = watches.ApprovalNever },
	} {
		t.Run(name, func(t *testing.T) {
			r := w.request("v2")
			set(&r)
			rejects(t, w.upgrade, r)
		})
	}
	t.Run("Warn Always", func(*testing.T) {
		r := w.request("v2")
		r.Guard.Mode, r.Approval = watches.GuardWarn, watches.ApprovalAlways
		w.waits("version v1 was removed", w.upgrade, r)
	})
	t.Run("install", func(t *testing.T) {
		r := w.request("v2")
		r.Release = "other"
		rejects(t, func(r Request) error { return w.helm.Install(t.Context(), r) }, r)
	})
}
