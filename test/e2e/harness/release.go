package harness

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chartwright/chartwright/internal/api"
)

// Revision contains the fields of a release record that tests need.
type Revision struct {
	Name     string
	Version  int
	Manifest string
	// Config are the values.
	Config map[string]any
	Info   struct{ Status, Description string }
	// Hooks are the hooks with their manifests.
	Hooks []struct{ Manifest string }
}

// ReadRevision decodes a record in Helm's format, without code of Chartwright.
func ReadRevision(record *corev1.Secret) (Revision, error) {
	var revision Revision
	packed, err := base64.StdEncoding.DecodeString(string(record.Data["release"]))
	if err != nil {
		return revision, fmt.Errorf("record %s: %w", record.Name, err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return revision, fmt.Errorf("record %s: %w", record.Name, err)
	}
	if err := json.NewDecoder(unpacked).Decode(&revision); err != nil {
		return revision, fmt.Errorf("record %s: %w", record.Name, err)
	}
	return revision, nil
}

// Objects returns the objects of the manifest.
func (r Revision) Objects() ([]*unstructured.Unstructured, error) {
	objects, err := ReadObjects(r.Manifest)
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", r.Name, err)
	}
	return objects, nil
}

// HookObjects returns the objects of the hooks.
func (r Revision) HookObjects() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, hook := range r.Hooks {
		objects, err := ReadObjects(hook.Manifest)
		if err != nil {
			return nil, fmt.Errorf("hooks of %s: %w", r.Name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// ReadObjects decodes a stream of YAML documents.
func ReadObjects(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// AtRest returns the deployed revision of a release. It returns an error if an
// action is in progress, which means that a revision is pending or being
// uninstalled, or if not exactly one revision is deployed.
func (e *Env) AtRest(ctx context.Context, release string) (Revision, error) {
	records, err := e.records(ctx, release)
	if err != nil {
		return Revision{}, err
	}
	var deployed []*corev1.Secret
	for i := range records {
		switch status := records[i].Labels["status"]; {
		case status == api.StatusDeployed:
			deployed = append(deployed, &records[i])
		case api.Pending(status), status == api.StatusUninstalling:
			return Revision{}, fmt.Errorf("release %s is not at rest: %s", release, revisions(records))
		}
	}
	if len(deployed) != 1 {
		return Revision{}, fmt.Errorf("release %s has %d deployed revisions: %s", release, len(deployed), revisions(records))
	}
	return ReadRevision(deployed[0])
}

// CompareObjects compares the objects of a custom resource's release with the
// manifest of a revision. No object of the manifest may be missing, belong to
// another custom resource or differ in its data or type, and the release may have
// no other objects of the given kinds.
func (e *Env) CompareObjects(ctx context.Context, cr *unstructured.Unstructured, revision Revision, kinds ...schema.GroupVersionKind) error {
	wanted, err := revision.Objects()
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		live, err := e.in(kind).List(ctx, metav1.ListOptions{LabelSelector: api.LabelOwnerUID + "=" + string(cr.GetUID())})
		if err != nil {
			return err
		}
		for i := range live.Items {
			// Release records carry the labels of the release's objects.
			if live.Items[i].Object["type"] == "helm.sh/release.v1" {
				continue
			}
			if !slices.ContainsFunc(wanted, func(o *unstructured.Unstructured) bool {
				return o.GetKind() == kind.Kind && o.GetName() == live.Items[i].GetName()
			}) {
				return fmt.Errorf("%s is not part of revision %d", named(&live.Items[i]), revision.Version)
			}
		}
	}
	for _, object := range wanted {
		live, err := e.At(object).Get(ctx, object.GetName(), metav1.GetOptions{})
		if _, expires, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished"); expires && apierrors.IsNotFound(err) {
			continue // a Job that has finished and was deleted by its TTL
		}
		if err != nil {
			return err
		}
		if live.GetLabels()[api.LabelOwnerUID] != string(cr.GetUID()) {
			return fmt.Errorf("%s has the owner UID %q", named(object), live.GetLabels()[api.LabelOwnerUID])
		}
		for _, field := range []string{"data", "type"} {
			if want := object.Object[field]; want != nil && !reflect.DeepEqual(want, live.Object[field]) {
				return fmt.Errorf("%s has %s %v, revision %d has %v", named(object), field, live.Object[field], revision.Version, want)
			}
		}
	}
	return nil
}
