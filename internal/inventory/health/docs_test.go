package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/testenv"
)

// TestDocsHealth checks that the table in docs/guides/health.md matches the code. The page
// omits kinds that are ready as soon as they are stored, and suspended objects.
func TestDocsHealth(t *testing.T) {
	type part struct {
		kinds []string
		ready string
	}
	var products []string
	parts := map[string][]part{}
	for i := range table {
		e := &table[i]
		if e.always {
			continue
		}
		if parts[e.product] == nil {
			products = append(products, e.product)
		}
		ready := e.documentedReady()
		same := slices.IndexFunc(parts[e.product], func(p part) bool { return p.ready == ready })
		if same < 0 {
			parts[e.product] = append(parts[e.product], part{ready: ready})
			same = len(parts[e.product]) - 1
		}
		parts[e.product][same].kinds = append(parts[e.product][same].kinds, e.documentedKinds()...)
	}
	var text strings.Builder
	text.WriteString("\n| product | kinds, with the required conditions and status fields |\n|---|---|\n")
	for _, product := range products {
		var lines []string
		for _, p := range parts[product] {
			lines = append(lines, strings.Join(p.kinds, ", ")+": "+p.ready)
		}
		fmt.Fprintf(&text, "| %s | %s |\n", product, strings.Join(lines, "<br>"))
	}
	text.WriteString("\n")
	testenv.Part(t, "guides/health.md", "kinds", text.String())
}

func (e *entry) documentedKinds() []string {
	if len(e.kinds) == 0 {
		return []string{"other kinds in " + code(e.group)}
	}
	return e.kinds
}

func (e *entry) documentedReady() string {
	var all []string
	for _, condition := range e.ready {
		all = append(all, code(condition))
	}
	var notFalse []string
	for _, condition := range e.notFalse {
		notFalse = append(notFalse, code(condition))
	}
	if len(notFalse) > 0 {
		all = append(all, strings.Join(notFalse, " and ")+" not False")
	}
	for _, w := range e.words {
		all = append(all, code(short(w.path))+" "+strings.Join(w.ready, "/"))
	}
	for _, pair := range e.equal {
		all = append(all, code(short(pair[1])+" = "+short(pair[0])))
	}
	for _, path := range e.set {
		all = append(all, code(short(path))+" not empty")
	}
	text := strings.Join(all, ", ")
	if e.each != "" {
		text += " in all " + code(short(e.each))
	}
	return text
}

// short returns a field without "status.".
func short(path string) string { return strings.TrimPrefix(path, "status.") }

func code(text string) string { return "`" + text + "`" }
