package harness

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Operator runs the operator's program as a command-line tool.
func (p *User) Operator(args ...string) Output {
	p.env.t.Helper()
	return p.run(shared.operator, "", args)
}

// Audit starts to collect the user's requests.
func (p *User) Audit() *Audit { return p.env.Audit(p.account.User()) }

// GrantListed grants the user the rules that a text lists, in all namespaces,
// and returns their number.
func (p *User) GrantListed(text string) int {
	p.env.t.Helper()
	rules := p.env.rulesIn(text)
	if len(rules) > 0 {
		p.Grant(rules...)
	}
	return len(rules)
}

// Control makes a custom resource the controller of a release's records, as
// operator-sdk does.
func (e *Env) Control(cr *unstructured.Unstructured, release string) {
	e.t.Helper()
	live := e.Get(cr)
	for _, record := range e.Records(release) {
		record.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(live, live.GroupVersionKind())}
		_, err := e.Typed.CoreV1().Secrets(e.Namespace).Update(e.t.Context(), &record, metav1.UpdateOptions{})
		e.must(err)
	}
}
