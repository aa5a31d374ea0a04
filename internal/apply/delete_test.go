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

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

func TestDelete(t *testing.T) {
	o := namespace(t)
	another := o
	another.UID, another.Name = "another-uid", "other"
	there := func() bool {
		t.Helper()
		live, err := apiServer.client.Get(t.Context(), configMap(t, o, "one"))
		if err != nil {
			t.Fatal(err)
		}
		return live != nil
	}
	remove := func(of apply.Owner) error {
		return apiServer.client.Delete(t.Context(), configMap(t, o, "one"), of, metav1.DeletePropagationBackground)
	}
	if err := remove(o); err != nil {
		t.Errorf("of what is not there: %v", err)
	}
	mustApply(t, configMap(t, o, "one"))
	if err := remove(another); !errors.Is(err, apply.ErrForeign) || !there() {
		t.Errorf("of another's: %v", err)
	}
	if err := remove(o); err != nil || there() {
		t.Errorf("of one's own: %v", err)
	}
	old := mustApply(t, configMap(t, o, "one"))
	if err := remove(o); err != nil {
		t.Fatal(err)
	}
	mustApply(t, configMap(t, o, "one"))
	if err := apiServer.client.DeleteUID(t.Context(), configMap(t, o, "one"), old.UID, metav1.DeletePropagationBackground); err != nil || !there() {
		t.Errorf("of what has taken the name: %v", err)
	}
}

// conflicting answers a deletion with a conflict, after something happens to what
// was to be deleted.
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
	return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, name, errors.New("it is in use"))
}

// TestDeleteThatConflicts: that another has taken the name is one cause of it,
// and no error; what is there still is not deleted.
func TestDeleteThatConflicts(t *testing.T) {
	for _, test := range []struct {
		name string
		// before happens before the answer.
		before func(t *testing.T, o apply.Owner)
		gone   bool
	}{
		{"it is there still", func(*testing.T, apply.Owner) {}, false},
		{"it is gone", remove, true},
		{"another has taken the name", func(t *testing.T, o apply.Owner) {
			remove(t, o)
			mustApply(t, configMap(t, o, "two"))
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := namespace(t)
			made := mustApply(t, configMap(t, o, "one"))
			client := apiServer.client
			client.Metadata = conflicting{client.Metadata, func() { test.before(t, o) }}
			err := client.DeleteUID(t.Context(), configMap(t, o, "one"), made.UID, metav1.DeletePropagationBackground)
			switch {
			case test.gone && err != nil:
				t.Error(err)
			case !test.gone && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), "delete ConfigMap "+o.Namespace+"/a")):
				t.Errorf("%v, want the conflict with the object", err)
			}
		})
	}
	t.Run("nobody can tell", func(t *testing.T) {
		o := namespace(t)
		made := mustApply(t, configMap(t, o, "one"))
		ctx, cancel := context.WithCancel(t.Context())
		client := apiServer.client
		client.Metadata = conflicting{client.Metadata, func() { remove(t, o); cancel() }}
		if err := client.DeleteUID(ctx, configMap(t, o, "one"), made.UID, metav1.DeletePropagationBackground); !apierrors.IsConflict(err) {
			t.Errorf("%v, want the conflict", err)
		}
	})
}

// remove deletes the ConfigMap of an owner.
func remove(t *testing.T, of apply.Owner) {
	t.Helper()
	if err := apiServer.plain.CoreV1().ConfigMaps(of.Namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func TestDeleteOfAHook(t *testing.T) {
	o := namespace(t)
	another := o
	another.UID, another.Name = "another-uid", "other"
	hook := configMap(t, o, "one")
	hook.Unstructured = apply.PrepareHook(hook.Unstructured, another)
	hook.SetLabels(map[string]string{api.LabelHookOwnerUID: "another-uid"})
	if _, err := apiServer.client.Create(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	if err := apiServer.client.Delete(t.Context(), hook, o, metav1.DeletePropagationBackground); !errors.Is(err, apply.ErrForeign) {
		t.Errorf("of another's hook: %v, want ErrForeign", err)
	}
}
