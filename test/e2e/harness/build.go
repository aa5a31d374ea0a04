package harness

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// CR builds a custom resource.
type CR struct{ object *unstructured.Unstructured }

// MakeCR returns a builder for a custom resource.
func MakeCR(kind Kind, name string) CR {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetName(name)
	return CR{object}
}

// Set sets a field of the spec by its dotted path. An int becomes an int64.
// Integers in maps and lists must be int64.
func (c CR) Set(path string, value any) CR {
	if number, ok := value.(int); ok {
		value = int64(number)
	}
	fields := append([]string{"spec"}, strings.Split(path, ".")...)
	if err := unstructured.SetNestedField(c.object.Object, value, fields...); err != nil {
		panic(err)
	}
	return c
}

// Label sets a label.
func (c CR) Label(key, value string) CR {
	labels := c.object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	c.object.SetLabels(labels)
	return c
}

// Obj returns the custom resource.
func (c CR) Obj() *unstructured.Unstructured { return c.object }

// PodSetCR builds a PodSet.
type PodSetCR struct{ CR }

// MakePodSet returns a builder for a PodSet.
func MakePodSet(name string) PodSetCR { return PodSetCR{MakeCR(PodSet, name)} }

// Replicas sets the number of pods.
func (p PodSetCR) Replicas(n int) PodSetCR { return PodSetCR{p.Set("replicas", n)} }

// OvhNginxCR builds an OvhNginx.
type OvhNginxCR struct{ CR }

// MakeOvhNginx returns a builder for an OvhNginx with its required fields.
func MakeOvhNginx(name string) OvhNginxCR {
	return OvhNginxCR{MakeCR(OvhNginx, name).Set("port", 80).Set("replicaCount", 1)}
}

// Replicas sets the number of pods.
func (o OvhNginxCR) Replicas(n int) OvhNginxCR { return OvhNginxCR{o.Set("replicaCount", n)} }
