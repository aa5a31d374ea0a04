package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Readyz returns the response of the readiness probe.
func (o *Operator) Readyz(ctx context.Context) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.probes+"/readyz", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, string(data), err
}

// WaitReadyz waits until the readiness probe answers with a status and a text
// that contains all of wantText, and returns the text.
func (o *Operator) WaitReadyz(status int, wantText ...string) (text string) {
	o.env.t.Helper()
	o.env.Wait(fmt.Sprintf("/readyz to return %d with %q", status, wantText), func(ctx context.Context) error {
		code, answer, err := o.Readyz(ctx)
		if err != nil {
			return err
		}
		for _, word := range wantText {
			if !strings.Contains(answer, word) {
				return fmt.Errorf("%q is missing: %s", word, answer)
			}
		}
		if code != status {
			return fmt.Errorf("status %d: %s", code, answer)
		}
		text = answer
		return nil
	})
	return text
}

// GrantListed grants an operator the rules that its own output lists, either
// one rule per line or several in a sentence, as an administrator does who
// copies them into a role. It returns their number.
func (e *Env) GrantListed(o *Operator, text string) int {
	e.t.Helper()
	rules := e.rulesIn(text)
	if len(rules) > 0 {
		e.bindClusterRole(o.options.Account, rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{GenerateName: o.options.Account.name + "-more-"}, Rules: rules,
		})
	}
	return len(rules)
}

// rulesIn parses the rules that a text lists.
func (e *Env) rulesIn(text string) []rbacv1.PolicyRule {
	e.t.Helper()
	var rules []rbacv1.PolicyRule
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "{apiGroups: ")
		if !found {
			return rules
		}
		item, left, found := strings.Cut(after, "}")
		if !found {
			e.t.Fatalf("unterminated rule: %s", after)
		}
		var rule rbacv1.PolicyRule
		e.must(yaml.UnmarshalStrict([]byte("{apiGroups: "+item+"}"), &rule))
		rules, rest = append(rules, rule), left
	}
}
