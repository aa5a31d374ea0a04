package migrate

import (
	"fmt"
	"io"
	"strings"
)

// maxNamed bounds how many custom resources a finding names in the report for
// people; the one for machines names all.
const maxNamed = 5

// titles head the parts of the report.
var titles = map[Verdict]string{
	Breaks:  "WOULD BREAK",
	Unknown: "COULD NOT BE LOOKED AT",
	ToDo:    "TO DO",
	Changes: "CHANGES",
	Works:   "WORKS AS IT IS",
}

// Text writes findings that were sorted, for people.
func Text(to io.Writer, findings []Finding) error {
	var text strings.Builder
	var verdict Verdict
	topic := ""
	for _, f := range findings {
		if f.Verdict != verdict {
			if verdict != "" {
				text.WriteString("\n")
			}
			verdict, topic = f.Verdict, ""
			fmt.Fprintf(&text, "%s (%d)\n", titles[verdict], Count(findings, verdict))
		}
		if f.Topic != topic {
			topic = f.Topic
			fmt.Fprintf(&text, "\n  %s\n", topic)
		}
		f.write(&text)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

func (f Finding) write(text *strings.Builder) {
	where := ""
	if f.Where != "" {
		where = f.Where + ": "
	}
	fmt.Fprintf(text, "  - %s%s\n", where, f.What)
	if len(f.Resources) > 0 {
		fmt.Fprintf(text, "    of %s\n", named(f.Resources))
	}
	if f.Do != "" {
		fmt.Fprintf(text, "    do: %s\n", f.Do)
	}
	for line := range strings.Lines(f.Lines) {
		text.WriteString("      " + strings.TrimRight(line, "\n") + "\n")
	}
}

// named names the first of some custom resources, and counts the others.
func named(resources []string) string {
	if len(resources) <= maxNamed {
		return strings.Join(resources, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(resources[:maxNamed], ", "), len(resources)-maxNamed)
}
