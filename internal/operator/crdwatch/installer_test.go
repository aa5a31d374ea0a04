package crdwatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
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
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := catalog.OpenChart(folder)
	if err != nil {
		t.Fatal(err)
	}
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
