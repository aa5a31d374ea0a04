package plugin

import (
	"errors"
	"fmt"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestLasting: what is tried again while somebody waits.
func TestLasting(t *testing.T) {
	resource := schema.GroupResource{Resource: "podsets"}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{errGone, true},
		{apierrors.NewUnauthorized("no"), true},
		{apierrors.NewNotFound(resource, "web"), true},
		{apierrors.NewTooManyRequests("later", 1), false},
		{apierrors.NewResourceExpired("old"), false},
		{apierrors.NewInternalError(errors.New("no")), false},
		{apierrors.NewServiceUnavailable("no"), false},
		{io.ErrUnexpectedEOF, false},
	} {
		if got := lasting(fmt.Errorf("watch: %w", test.err)); got != test.want {
			t.Errorf("%v lasts: %v", test.err, got)
		}
	}
}
