package plugin

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// right is a right that a verb needs.
type right struct {
	verb     string
	resource schema.GroupResource
	// namespace is empty for all of them, and for what has none.
	namespace string
	// purpose completes "you need it …": "to read the revisions of the release".
	purpose string
}

// missingRightError is the sentence about a right that is missing.
type missingRightError struct {
	right
	cause error
}

// Error names the right, what it is for, and the rule that gives it.
func (e *missingRightError) Error() string {
	where := ""
	if e.namespace != "" {
		where = fmt.Sprintf(" in namespace %s", e.namespace)
	}
	return fmt.Sprintf("you may not %s %s%s, which you need %s. The rule that allows it: {apiGroups: [%q], resources: [%q], verbs: [%q]}",
		e.verb, e.resource, where, e.purpose, e.resource.Group, e.resource.Resource, e.verb)
}

// Unwrap returns what the API server said.
func (e *missingRightError) Unwrap() error { return e.cause }

// explain turns the API server's refusal into a sentence that names the right.
// Any other error is told with what it kept from being done.
func (r right) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return &missingRightError{right: r, cause: err}
	}
	return fmt.Errorf("%s %s: %w", r.verb, r.resource, err)
}

// lacking tells whether an error is about a right that is missing, so that the
// rest can be shown all the same.
func lacking(err error) bool {
	_, is := errors.AsType[*missingRightError](err)
	return is
}
