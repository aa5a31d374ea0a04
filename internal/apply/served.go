package apply

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// served sends a request that names an object and contains none of its fields. If the API
// server does not serve the version of the object, served repeats the request once in a
// version that it serves. An object of a kind without any served version does not exist.
func served[T any](c Client, o Object, send func(Object) (T, error)) (T, error) {
	result, err := send(o)
	if AnswerOf(err) != Unserved || c.Served == nil {
		return result, err
	}
	mapping, unread := c.Served(o.GroupVersionKind().GroupKind())
	switch {
	case meta.IsNoMatchError(unread):
		return result, apierrors.NewNotFound(o.Mapping.Resource.GroupResource(), o.GetName())
	case unread != nil:
		return result, fmt.Errorf("find a version that the API server serves: %w", unread)
	case mapping.Resource == o.Mapping.Resource:
		return result, err
	}
	o.Mapping = mapping
	return send(o)
}

// explainUnserved replaces the error of an apply if the API server no longer serves the
// version. The content of an object is not applied in another version without the knowledge of
// the caller, who finds the served version in the next attempt.
func (c Client) explainUnserved(o Object, err error) error {
	if AnswerOf(err) != Unserved || c.Served == nil {
		return err
	}
	gvk := o.GroupVersionKind()
	mapping, unread := c.Served(gvk.GroupKind())
	if meta.IsNoMatchError(unread) || unread == nil && mapping.Resource != o.Mapping.Resource {
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return err
}

// inServedVersion returns the object with the version of its mapping, and reports whether that
// is another version. Fields that this version does not know are not dropped: the API server
// rejects them. The function warn may be nil.
func (o Object) inServedVersion(warn func(string)) (Object, bool) {
	if o.GroupVersionKind() == o.Mapping.GroupVersionKind {
		return o, false
	}
	o.Unstructured = o.DeepCopy()
	o.SetGroupVersionKind(o.Mapping.GroupVersionKind)
	if warn != nil {
		warn(fmt.Sprintf("%s: applied as %s, because the API server no longer serves the version in the release record", Describe(o), o.GetAPIVersion()))
	}
	return o, true
}
