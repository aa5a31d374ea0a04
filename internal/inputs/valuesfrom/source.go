package valuesfrom

import (
	"fmt"

	"github.com/chartwright/chartwright/internal/watches"
)

// Ref names an object.
type Ref struct {
	Kind            watches.SourceKind
	Namespace, Name string
}

// String names the object for people.
func (r Ref) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

// Source is one object as one custom resource uses it.
type Source struct {
	Ref
	// Key is the key of the object's data.
	Key string
	// TargetPath is where the key's content goes, as text; empty means that it
	// is YAML and is laid over the values.
	TargetPath string
	// Optional: the object need not be there.
	Optional bool
}

// Error is why a source cannot be used.
type Error struct {
	// Reason is that of the condition, see package api.
	Reason  string
	Message string
}

// Error returns the message, which holds nothing of the source's content.
func (e *Error) Error() string { return e.Message }

func failf(reason, format string, args ...any) error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
