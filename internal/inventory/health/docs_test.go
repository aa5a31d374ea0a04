package health

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/testenv"
)

// TestDocsHealth checks that the table in docs/guides/health.md matches the code.
func TestDocsHealth(t *testing.T) {
	var text strings.Builder
	text.WriteString("\n| product | kinds | ready when | failed when |\n|---|---|---|---|\n")
	for i := range table {
		e := &table[i]
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", e.product, e.documentedKinds(), e.documentedReady(), e.documentedFailed())
	}
	text.WriteString("\n")
	testenv.Part(t, "guides/health.md", "kinds", text.String())
}

func (e *entry) documentedKinds() string {
	group := e.group
	if group == "" {
		group = "v1"
	}
	if len(e.kinds) == 0 {
		return "all other kinds of `" + group + "`"
	}
	return strings.Join(e.kinds, ", ") + " (`" + group + "`)"
}

func (e *entry) documentedReady() string {
	if e.always {
		return "stored"
	}
	var all []string
	if len(e.ready) > 0 {
		conditions := strings.Join(e.ready, " and ") + " True"
		if e.each != "" {
			conditions += " in each item of `" + e.each + "`"
		}
		all = append(all, conditions)
	}
	if len(e.notFalse) > 0 {
		all = append(all, strings.Join(e.notFalse, " and ")+" not False")
	}
	for _, w := range e.words {
		all = append(all, code(w.path)+" is "+strings.Join(w.ready, " or "))
	}
	for _, pair := range e.equal {
		all = append(all, code(pair[1])+" equals "+code(pair[0]))
	}
	for _, path := range e.set {
		all = append(all, "`"+path+"` is set")
	}
	all = []string{strings.Join(all, "; ")}
	for _, f := range e.suspended {
		all = append(all, code(f.path+": "+f.value))
	}
	for _, c := range e.paused {
		all = append(all, c.documented())
	}
	if e.stored != nil {
		all = append(all, code(e.stored.path+": "+e.stored.value))
	}
	return strings.Join(all, "; or ")
}

func code(text string) string { return "`" + text + "`" }

func (e *entry) documentedFailed() string {
	var all []string
	for _, c := range e.failed {
		all = append(all, c.documented())
	}
	for _, w := range e.words {
		if len(w.failed) > 0 {
			all = append(all, code(w.path)+" is "+strings.Join(w.failed, " or "))
		}
	}
	return strings.Join(all, "; ")
}

func (c conditionMatch) documented() string {
	if c.reason != "" {
		return fmt.Sprintf("%s %s for %s", c.kind, c.status, c.reason)
	}
	return c.kind + " " + c.status
}
