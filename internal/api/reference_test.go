package api_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/testenv"
)

// constantName matches the name of a constant in the comment of another constant.
var constantName = regexp.MustCompile(`\b(Condition|Reason)[A-Z]\w+`)

// TestDocsStatus_ListsConditionsAndReasons compares the tables in docs/reference/status.md with the
// comments in conditions.go, from which they are generated.
func TestDocsStatus_ListsConditionsAndReasons(t *testing.T) {
	testenv.Part(t, "reference/status.md", "conditions and reasons", reference(t))
}

// reference returns a table of the conditions and, for each group of reasons, a table with
// the comment of the group as its heading.
func reference(t *testing.T) string {
	t.Helper()
	values, _ := constants(t)
	var conditions, reasons, single strings.Builder
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		headed := false
		for _, spec := range group.Specs {
			constant, _ := spec.(*ast.ValueSpec)
			name, comment := constant.Names[0].Name, constant.Doc
			if comment == nil && len(group.Specs) == 1 {
				comment = group.Doc
			}
			switch {
			case strings.HasPrefix(name, "Condition"):
				fmt.Fprintf(&conditions, "| `%s` | %s |\n", values[name], description(t, name, comment, values))
			case strings.HasPrefix(name, "Reason") && len(group.Specs) == 1:
				fmt.Fprintf(&single, "| `%s` | %s |\n", values[name], description(t, name, comment, values))
			case strings.HasPrefix(name, "Reason"):
				if !headed {
					fmt.Fprintf(&reasons, "\n### %s\n\n| reason | what happened |\n|---|---|\n", strings.TrimSuffix(oneLine(group.Doc.Text()), "."))
					headed = true
				}
				fmt.Fprintf(&reasons, "| `%s` | %s |\n", values[name], description(t, name, comment, values))
			}
		}
	}
	return "\n## Conditions\n\n| condition | meaning |\n|---|---|\n" + conditions.String() + "\n## Reasons\n" + reasons.String() +
		"\n### Other reasons\n\n| reason | what happened |\n|---|---|\n" + single.String() + "\n"
}

// description returns the comment of a constant, in which names of constants are replaced
// by their values.
func description(t *testing.T, name string, comment *ast.CommentGroup, values map[string]string) string {
	t.Helper()
	text, ok := strings.CutPrefix(oneLine(comment.Text()), name)
	if !ok {
		t.Errorf("the comment of %s does not begin with its name: docs/reference/status.md is generated from it", name)
	}
	text = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, ":"), " "), "is ")
	text = strings.ToUpper(text[:1]) + text[1:]
	text = constantName.ReplaceAllStringFunc(text, func(other string) string { return "`" + values[other] + "`" })
	return strings.TrimSuffix(text, ".")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
