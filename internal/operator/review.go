package operator

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// everywhere stands for all namespaces. Since none can have this name, no
// RoleBinding is in it, and a review of it lists what ClusterRoleBindings give.
const everywhere = "*"

// errIncomplete marks that the API server cannot list an account's rules: one of
// its authorizers, a webhook most often, answers single questions alone.
var errIncomplete = errors.New("the API server cannot list them all")

// reviewer asks which rules the operator has, by one request a namespace.
type reviewer func(ctx context.Context, namespace string) ([]rbacv1.PolicyRule, error)

// newReviewer returns a reviewer that asks the API server.
func newReviewer(reviews authorizationclient.SelfSubjectRulesReviewInterface) reviewer {
	return func(ctx context.Context, namespace string) ([]rbacv1.PolicyRule, error) {
		review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
		answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("ask for the operator's rules: %w", err)
		}
		if answer.Status.Incomplete {
			return nil, fmt.Errorf("%w: %s", errIncomplete, answer.Status.EvaluationError)
		}
		var rules []rbacv1.PolicyRule
		for _, r := range answer.Status.ResourceRules {
			rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames})
		}
		for _, r := range answer.Status.NonResourceRules {
			rules = append(rules, rbacv1.PolicyRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
		return rules, nil
	}
}
