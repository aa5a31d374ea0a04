package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Verdict is what a finding means for the move.
type Verdict string

// Verdicts, in the order of the report.
const (
	// Breaks: something that runs today would be refused, lost or created twice.
	Breaks Verdict = "Breaks"
	// Unknown: it could not be checked.
	Unknown Verdict = "Unknown"
	// ToDo: a step of the move itself.
	ToDo Verdict = "ToDo"
	// Changes: it keeps working, but differently.
	Changes Verdict = "Changes"
	// Works: it keeps working as it is.
	Works Verdict = "Works"
)

// verdicts are all of them, in their order.
var verdicts = []Verdict{Breaks, Unknown, ToDo, Changes, Works}

// Topics of findings that are about no single kind. The topic of a kind is its
// name, such as Nginx.demo.example.com, and follows these.
const (
	topicProject  = "project"
	topicOperator = "operator"
	topicBehavior = "behavior"
)

func rank(topic string) int {
	if i := slices.Index([]string{topicProject, topicOperator, topicBehavior}, topic); i >= 0 {
		return i
	}
	return 3
}

// Finding is one thing that was found.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Topic is a part of the project, or a kind.
	Topic string `json:"topic"`
	// Where is a file, with its line where there is one.
	Where string `json:"where,omitempty"`
	// What describes the finding and its effect.
	What string `json:"what"`
	// Do describes what to do about it.
	Do string `json:"do,omitempty"`
	// Lines are what is to be written, or run, as it stands.
	Lines string `json:"lines,omitempty"`
	// Resources are the custom resources that it is about.
	Resources []string `json:"resources,omitempty"`
}

// Count returns how many findings have a verdict.
func Count(findings []Finding, verdict Verdict) int {
	n := 0
	for _, f := range findings {
		if f.Verdict == verdict {
			n++
		}
	}
	return n
}

// Blockers returns an error if the move would or may do harm.
func Blockers(findings []Finding) error {
	var counts []string
	if n := Count(findings, Breaks); n > 0 {
		counts = append(counts, Counted(n, "thing would break", "things would break"))
	}
	if n := Count(findings, Unknown); n > 0 {
		counts = append(counts, fmt.Sprintf("%d could not be looked at", n))
	}
	if len(counts) == 0 {
		return nil
	}
	return errors.New("migrate: " + strings.Join(counts, ", "))
}

// Sort puts findings into the order of the report, and merges those that are
// the same for several custom resources.
func Sort(findings []Finding) []Finding {
	var gathered []Finding
	for _, f := range findings {
		at := slices.IndexFunc(gathered, f.same)
		if at < 0 {
			gathered = append(gathered, f)
			continue
		}
		gathered[at].Resources = slices.Concat(gathered[at].Resources, f.Resources)
		if !strings.Contains(gathered[at].Lines, f.Lines) {
			gathered[at].Lines += f.Lines
		}
	}
	for i := range gathered {
		gathered[i].Resources = sets.List(sets.New(gathered[i].Resources...))
	}
	slices.SortStableFunc(gathered, func(a, b Finding) int {
		return cmp.Or(
			slices.Index(verdicts, a.Verdict)-slices.Index(verdicts, b.Verdict),
			rank(a.Topic)-rank(b.Topic), cmp.Compare(a.Topic, b.Topic))
	})
	return gathered
}

// same reports whether two findings differ at most in their resources.
func (f Finding) same(other Finding) bool {
	return f.Verdict == other.Verdict && f.Topic == other.Topic && f.Where == other.Where && f.What == other.What && f.Do == other.Do
}

// finder collects findings of one topic.
type finder struct {
	topic string
	// resources names the custom resource that the findings are about, if any.
	resources []string
	findings  []Finding
}

// addf adds a finding, which the caller may complete.
func (f *finder) addf(verdict Verdict, where, format string, args ...any) *Finding {
	f.findings = append(f.findings, Finding{
		Verdict: verdict, Topic: f.topic, Where: where, What: fmt.Sprintf(format, args...), Resources: f.resources,
	})
	return &f.findings[len(f.findings)-1]
}

// at names a line of a file, or the file where the line is not known.
func at(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

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

// Text writes sorted findings as text.
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

// Counted returns a number with its noun.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
