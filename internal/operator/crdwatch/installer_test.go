package crdwatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/internal/watches"
)

// TestInstall_ChangesNoCRDOfSomeoneElse: someone else creates the CRD, or takes it over,
// right after the operator has read it.
func TestInstall_ChangesNoCRDOfSomeoneElse(t *testing.T) {
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	loaded := emptyChart(t)
	for name, exists := range map[string]bool{"created": false, "relabeled": true} {
		t.Run(name, func(t *testing.T) {
			kind := catalog.Kind{Watch: watches.Watch{Group: name + ".example.com", Version: "v1", Kind: "Web"}, Chart: loaded}
			other, _, err := crd.Generate(kind)
			if err != nil {
				t.Fatal(err)
			}
			if exists {
				if done, err := Install(t.Context(), server, kind, "mine", true); err != nil || done != "CustomResourceDefinition installed" {
					t.Fatalf("install: %q, %v", done, err)
				}
				if done, err := Install(t.Context(), server, kind, "mine", true); err != nil || done != "CustomResourceDefinition up to date" {
					t.Fatalf("install again: %q, %v", done, err)
				}
			}
			reads := 0
			racing := interceptor.NewClient(server, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key types.NamespacedName, object client.Object, options ...client.GetOption) error {
					err := c.Get(ctx, key, object, options...)
					reads++
					if reads > 1 {
						return err
					}
					other.Labels = map[string]string{api.LabelOperator: "other"}
					other.Spec.Names.ShortNames = []string{"other"}
					if exists {
						if err := c.Patch(ctx, other, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"`+api.LabelOperator+`": "other"}}}`))); err != nil {
							t.Error(err)
						}
					} else if err := c.Create(ctx, other); err != nil {
						t.Error(err)
					}
					return err
				},
			})
			if _, err := Install(t.Context(), racing, kind, "mine", true); !errors.Is(err, ErrForeign) || reads != 2 {
				t.Errorf("got error %v after %d reads, want ErrForeign after 2", err, reads)
			}
			live := &apiextensionsv1.CustomResourceDefinition{}
			if err := server.Get(t.Context(), types.NamespacedName{Name: other.Name}, live); err != nil || live.Labels[api.LabelOperator] != "other" {
				t.Errorf("the CRD has the labels %v, %v", live.Labels, err)
			}
		})
	}
}

// TestInstall_KeepsExistingPlural: the CRD of a kind has another plural than its entry.
func TestInstall_KeepsExistingPlural(t *testing.T) {
	env := testenv.Start(t)
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		group, owner, plural string
		want                 error
		generation           int64
	}{
		{"foreign", "other", "", ErrForeign, 1},
		{"own", "mine", "", nil, 2},
		{"renamed", "mine", "webs", ErrUnchanged, 1},
	} {
		t.Run(test.group, func(t *testing.T) {
			kind := catalog.Kind{Watch: watches.Watch{Group: test.group + ".example.com", Version: "v1", Kind: "Web", Plural: "webbies"}, Chart: emptyChart(t)}
			if _, err := Install(t.Context(), server, kind, test.owner, true); err != nil {
				t.Fatal(err)
			}
			definition := &apiextensionsv1.CustomResourceDefinition{}
			key := types.NamespacedName{Name: "webbies." + kind.Group}
			gk := kind.GVK().GroupKind()
			// The API server serves it a moment later.
			if err := wait.PollUntilContextCancel(t.Context(), 50*time.Millisecond, true, func(context.Context) (bool, error) {
				_, err := server.RESTMapper().RESTMapping(gk, kind.Version)
				return err == nil, nil
			}); err != nil {
				t.Fatal(err)
			}
			kind.Plural, kind.ShortNames = test.plural, []string{"wb"}
			if _, err := Install(t.Context(), server, kind, "mine", true); !errors.Is(err, test.want) {
				t.Errorf("got error %v, want %v", err, test.want)
			}
			if err := server.Get(t.Context(), key, definition); err != nil || definition.Generation != test.generation {
				t.Errorf("the CRD has generation %d, want %d (%v)", definition.Generation, test.generation, err)
			}
			if err := server.Get(t.Context(), types.NamespacedName{Name: "webs." + kind.Group}, definition); !apierrors.IsNotFound(err) {
				t.Errorf("a second CRD: %v", err)
			}
		})
	}
}

// emptyChart returns a chart without templates.
func emptyChart(t *testing.T) *chart.Chart {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := catalog.OpenChart(folder)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
