package reconcile

import (
	"testing"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// TestRefuseNamespace_ProtectsClusterAndOperator: the author of a custom resource
// must not send a release to a namespace that the cluster or the operator runs in.
func TestRefuseNamespace_ProtectsClusterAndOperator(t *testing.T) {
	const template = "{{ .spec.target }}"
	for _, test := range []struct {
		name, releaseNamespace, target, of string
		allowed                            []string
		refused                            bool
	}{
		{"a namespace of users", template, "apps", "team", nil, false},
		{"kube-system", template, "kube-system", "", nil, true},
		{"kube-public", template, "kube-public", "team", nil, true},
		{"kube-node-lease", template, "kube-node-lease", "team", nil, true},
		{"the operator's namespace", template, "operator-system", "team", nil, true},
		{"an allowed one", template, "kube-system", "", []string{"kube-system"}, false},
		{"a namespace other than the allowed one", template, "operator-system", "", []string{"kube-system"}, true},
		{"named by the watches entry", "kube-system", "kube-system", "team", nil, false},
		{"the namespace of the custom resource", template, "kube-system", "kube-system", nil, false},
		{"no releaseNamespace", "", "operator-system", "operator-system", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind := catalog.Kind{Watch: watches.Watch{ReleaseNamespace: test.releaseNamespace, Allow: watches.Allow{SystemNamespaces: test.allowed}}}
			r := &Reconciler{Shared: Shared{OwnNamespace: "operator-system"}, Kind: kind}
			if err := r.refuseNamespace(sourcedView(test.of, nil), test.target); (err != nil) != test.refused {
				t.Errorf("got %v, refused: want %t", err, test.refused)
			}
		})
	}
	outside := &Reconciler{Kind: catalog.Kind{Watch: watches.Watch{ReleaseNamespace: template}}}
	if err := outside.refuseNamespace(sourcedView("", nil), "apps"); err != nil {
		t.Errorf("an operator outside a pod refuses a user's namespace: %v", err)
	}
}
