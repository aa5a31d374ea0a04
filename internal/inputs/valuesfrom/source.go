package valuesfrom

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/watches"
)

// Kinds of sources that have keys.
var (
	SecretKind    = schema.GroupVersionKind{Version: "v1", Kind: watches.SourceSecret}
	ConfigMapKind = schema.GroupVersionKind{Version: "v1", Kind: watches.SourceConfigMap}
)

// Ref identifies an object. The namespace of an object of a cluster-scoped kind is empty.
type Ref struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
}

// String returns the kind, namespace and name.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind.Kind + " " + r.Name
	}
	return fmt.Sprintf("%s %s/%s", r.Kind.Kind, r.Namespace, r.Name)
}

// isSecret reports whether the content of the object must be redacted.
func (r Ref) isSecret() bool { return r.Kind.GroupKind() == SecretKind.GroupKind() }

func (r Ref) namespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// Source is a part of an object that a custom resource takes values from.
type Source struct {
	// At is the path of the source in the watches entry, such as valuesFrom[0].
	At string
	Ref
	// Key is the key in the data of a Secret or ConfigMap. It is empty if Expression is set.
	Key        string
	Expression *Expression
	// TargetPath is the value to set to the content of the key, as a string, or to the result
	// of the expression. If it is empty, the content is YAML, or the result a map, that is
	// merged into the values.
	TargetPath string
	// Optional: the object may be missing, and the expression may have no value.
	Optional bool
}

// part describes the part of the object that is used.
func (s Source) part() string {
	if s.Expression != nil {
		return "the expression " + s.Expression.String()
	}
	return "key " + s.Key
}

// failf returns a problem of the source.
func (s Source) failf(reason, format string, args ...any) error {
	return &Error{Reason: reason, Message: s.At + ": " + fmt.Sprintf(format, args...), Ref: s.Ref}
}

// Error is a problem of a source.
type Error struct {
	// Reason is a condition reason, see package api.
	Reason  string
	Message string
	// Ref is the object.
	Ref Ref
}

// Error returns the message, which never contains content of a Secret.
func (e *Error) Error() string { return e.Message }
