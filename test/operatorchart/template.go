package operatorchart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// template creates YAML with expressions. Objects contain marks instead of expressions,
// because these are not valid in YAML. text replaces the marks.
type template struct {
	inlines, lines []string
}

// inline returns a mark for a part of a value.
func (t *template) inline(expression string) string {
	t.inlines = append(t.inlines, expression)
	return fmt.Sprintf("xINLINE%dx", len(t.inlines)-1)
}

// line returns a mark for lines: it is an item of a list, or a value with any key.
// The lines replace the whole line of the mark. In expressions, INDENT is the indentation
// of that line; INDENT2 is two more.
func (t *template) line(format string, args ...any) string {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
	return fmt.Sprintf("xLINE%dx", len(t.lines)-1)
}

// when returns the items of a list, which are rendered on a condition.
func (t *template) when(condition string, items ...any) []any {
	return append(append([]any{t.line("{{- if %s }}", condition)}, items...), t.line("{{- end }}"))
}

// wrap renders an entry of a map only on a condition. The keys of the marks are sorted
// directly before and after the key of the entry.
func (t *template) wrap(parent map[string]any, key, condition string) {
	parent[key[:len(key)-1]+"A"] = t.line("{{- if %s }}", condition)
	parent[key+"A"] = t.line("{{- end }}")
}

var (
	inlineMark = regexp.MustCompile(`xINLINE(\d+)x`)
	lineMark   = regexp.MustCompile(`(?m)^( *)(?:- )?(?:\S+: )?xLINE(\d+)x\n`)
)

// text returns an object as YAML with expressions.
func (t *template) text(object any) (string, error) {
	data, err := yaml.Marshal(object)
	if err != nil {
		return "", err
	}
	// Text in alerts that is not an expression of this chart.
	text := strings.ReplaceAll(string(data), "{{", `{{ "{{" }}`)
	text = lineMark.ReplaceAllStringFunc(text, func(line string) string {
		match := lineMark.FindStringSubmatch(line)
		number, _ := strconv.Atoi(match[2])
		indent := match[1]
		lines := strings.NewReplacer("INDENT2", strconv.Itoa(len(indent)+2), "INDENT", strconv.Itoa(len(indent))).Replace(t.lines[number])
		return indent + strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\n", "\n"+indent) + "\n"
	})
	text = inlineMark.ReplaceAllStringFunc(text, func(mark string) string {
		number, _ := strconv.Atoi(inlineMark.FindStringSubmatch(mark)[1])
		return t.inlines[number]
	})
	if strings.Contains(text, "xLINE") {
		return "", fmt.Errorf("a mark for lines is not on a line of its own:\n%s", text)
	}
	return text, nil
}

// replaceStrings replaces strings in an object, in place.
func replaceStrings(value any, replace func(string) string) any {
	switch value := value.(type) {
	case string:
		return replace(value)
	case map[string]any:
		for key := range value {
			value[key] = replaceStrings(value[key], replace)
		}
	case []any:
		for i := range value {
			value[i] = replaceStrings(value[i], replace)
		}
	}
	return value
}
