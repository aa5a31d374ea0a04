package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/chartwright/chartwright/internal/apply"
)

func TestDeleteUID_DeletesOnlyThatObject(t *testing.T) {
	o := namespace(t)
	first := mustApply(t, configMap(t, o, "one"))
	remove := func() error {
		return apiServer.client.DeleteUID(t.Context(), configMap(t, o, "one"), first.UID, metav1.DeletePropagationBackground)
	}
	there := func() bool {
		t.Helper()
		live, err := apiServer.client.Get(t.Context(), configMap(t, o, "one"))
		if err != nil {
			t.Fatal(err)
		}
		return live != nil
	}
	if err := remove(); err != nil || there() {
		t.Errorf("existing object: %v", err)
	}
	if err := remove(); err != nil {
		t.Errorf("missing object: %v", err)
	}
	mustApply(t, configMap(t, o, "one"))
	if err := remove(); err != nil || !there() {
		t.Errorf("successor with the same name: %v", err)
	}
}

// conflicting calls before and then responds with a conflict to a deletion.
type conflicting struct {
	metadata.Interface
	before func()
}

func (c conflicting) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return conflictingResource{c.Interface.Resource(resource), c.before}
}

type conflictingResource struct {
	metadata.Getter
	before func()
}

func (c conflictingResource) Namespace(namespace string) metadata.ResourceInterface {
	return conflictingObjects{c.Getter.Namespace(namespace), c.before}
}

type conflictingObjects struct {
	metadata.ResourceInterface
	before func()
}

func (c conflictingObjects) Delete(_ context.Context, name string, _ metav1.DeleteOptions, _ ...string) error {
	c.before()
	return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, name, errors.New("in use"))
}

// A conflict is no error if the object was deleted or replaced in the meantime.
func TestDeleteUID_Conflict(t *testing.T) {
	for _, test := range []struct {
		name string
		// before is called before the response.
		before  func(t *testing.T, o apply.Owner)
		deleted bool
	}{
		{"object still exists", func(*testing.T, apply.Owner) {}, false},
		{"object deleted", remove, true},
		{"object replaced", func(t *testing.T, o apply.Owner) {
			remove(t, o)
			mustApply(t, configMap(t, o, "two"))
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := namespace(t)
			created := mustApply(t, configMap(t, o, "one"))
			client := apiServer.client
			client.Metadata = conflicting{client.Metadata, func() { test.before(t, o) }}
			err := client.DeleteUID(t.Context(), configMap(t, o, "one"), created.UID, metav1.DeletePropagationBackground)
			switch {
			case test.deleted && err != nil:
				t.Error(err)
			case !test.deleted && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), "delete ConfigMap "+o.Namespace+"/a")):
				t.Errorf("got error %v, want a conflict that names the object", err)
			}
		})
	}
	t.Run("object cannot be read", func(t *testing.T) {
		o := namespace(t)
		created := mustApply(t, configMap(t, o, "one"))
		ctx, cancel := context.WithCancel(t.Context())
		client := apiServer.client
		client.Metadata = conflicting{client.Metadata, func() { remove(t, o); cancel() }}
		if err := client.DeleteUID(ctx, configMap(t, o, "one"), created.UID, metav1.DeletePropagationBackground); !apierrors.IsConflict(err) {
			t.Errorf("got error %v, want a conflict", err)
		}
	})
}

// remove deletes the ConfigMap in the namespace of an owner.
func remove(t *testing.T, of apply.Owner) {
	t.Helper()
	if err := apiServer.plain.CoreV1().ConfigMaps(of.Namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
