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

// reasonsFor matches the comment of a group of reasons.
var reasonsFor = regexp.MustCompile(`^Reasons for (\w+)`)

// TestDocsStatus_ListsConditionsAndReasons compares the tables in docs/reference/status.md with the
// comments in conditions.go. The tables are generated from these comments.
func TestDocsStatus_ListsConditionsAndReasons(t *testing.T) {
	testenv.Part(t, "reference/status.md", "conditions and reasons", reference(t))
}

// reference returns a table of the conditions, and lists of the reasons of each condition.
// The comment of a group of reasons names the condition. The comment of a condition names
// its reason if it has only one.
func reference(t *testing.T) string {
	t.Helper()
	values, _ := constants(t)
	var conditions, ready, others strings.Builder
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		var reasons meanings
		for _, spec := range group.Specs {
			constant, _ := spec.(*ast.ValueSpec)
			name := constant.Names[0].Name
			switch {
			case strings.HasPrefix(name, "Condition"):
				fmt.Fprintf(&conditions, "| `%s` | %s |\n", values[name], description(t, name, constant.Doc, values))
			case strings.HasPrefix(name, "Reason") && len(group.Specs) > 1:
				reasons.add(values[name], description(t, name, constant.Doc, values))
			}
		}
		switch about := reasonsFor.FindStringSubmatch(group.Doc.Text()); {
		case about == nil:
		case about[1] == "Ready":
			ready.WriteString(reasons.list())
		default:
			fmt.Fprintf(&others, "\nReasons for `%s`:\n\n%s", about[1], reasons.list())
		}
	}
	return "\n## Conditions\n\n| condition | True if |\n|---|---|\n" + conditions.String() +
		"\n## Reasons\n\n`Ready`, `Reconciling` and `Stalled` have these reasons:\n\n" + ready.String() + others.String() + "\n"
}

// meanings are descriptions in the order of their first reasons.
type meanings struct {
	texts   []string
	reasons map[string][]string
}

func (m *meanings) add(reason, text string) {
	if m.reasons == nil {
		m.reasons = map[string][]string{}
	}
	if m.reasons[text] == nil {
		m.texts = append(m.texts, text)
	}
	m.reasons[text] = append(m.reasons[text], "`"+reason+"`")
}

// list returns an item for each description.
func (m *meanings) list() string {
	var list strings.Builder
	for _, text := range m.texts {
		fmt.Fprintf(&list, "* %s: %s\n", strings.Join(m.reasons[text], ", "), strings.ToLower(text[:1])+text[1:])
	}
	return list.String()
}

// description returns the comment of a constant. Values replace the names of constants.
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
