package permissions_test

import (
	"context"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// waitAllowed waits until the API server goes by a user's new role, by a right
// that each has.
func waitAllowed(t *testing.T, config *rest.Config, user string) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Resource: "secrets", Verb: "list"},
	}}
	reviews := kubernetes.NewForConfigOrDie(config).AuthorizationV1().SubjectAccessReviews()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		t.Fatalf("wait for the rights of %s: %v", user, err)
	}
}
