package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/chartwright/chartwright/internal/api"
)

// Verdict is the meaning of a finding for the migration.
type Verdict string

// Verdicts, in the order of the report.
const (
	// Breaks: something that works today would be rejected, lost or created twice.
	Breaks Verdict = "Breaks"
	// Unknown: a check could not be completed.
	Unknown Verdict = "Unknown"
	// ToDo: a step of the migration.
	ToDo Verdict = "ToDo"
	// Changes: something continues to work, but differently.
	Changes Verdict = "Changes"
	// Works: something continues to work unchanged.
	Works Verdict = "Works"
)

// verdicts lists all verdicts in the order of the report.
var verdicts = []Verdict{Breaks, Unknown, ToDo, Changes, Works}

// Topics of findings that do not belong to a kind. The topic of a kind is its name,
// such as Nginx.demo.example.com, and comes after these in the report.
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

// Finding is one result of a check.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Topic is a part of the project, or a kind.
	Topic string `json:"topic"`
	// Where is a file, with the line if it is known.
	Where string `json:"where,omitempty"`
	// What describes the finding and its effect.
	What string `json:"what"`
	// Do describes what to do.
	Do string `json:"do,omitempty"`
	// Lines are lines to write into a file, or commands to run.
	Lines string `json:"lines,omitempty"`
	// Resources are the affected custom resources.
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

// Blockers returns an error if there are findings that break or are unknown.
func Blockers(findings []Finding) error {
	var counts []string
	if n := Count(findings, Breaks); n > 0 {
		counts = append(counts, api.Counted(n, "breaking finding", "breaking findings"))
	}
	if n := Count(findings, Unknown); n > 0 {
		counts = append(counts, api.Counted(n, "incomplete check", "incomplete checks"))
	}
	if len(counts) == 0 {
		return nil
	}
	return errors.New("migrate: " + strings.Join(counts, ", "))
}

// Sort sorts findings in the order of the report, and merges findings that differ only
// in their custom resources.
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

// same reports whether two findings differ at most in Resources and Lines.
func (f Finding) same(other Finding) bool {
	return f.Verdict == other.Verdict && f.Topic == other.Topic && f.Where == other.Where && f.What == other.What && f.Do == other.Do
}

// finder collects findings of one topic.
type finder struct {
	topic string
	// resources contains the custom resource that is checked, if any.
	resources []string
	findings  []Finding
}

// addf adds a finding and returns it, so that the caller can set more fields.
func (f *finder) addf(verdict Verdict, where, format string, args ...any) *Finding {
	f.findings = append(f.findings, Finding{
		Verdict: verdict, Topic: f.topic, Where: where, What: fmt.Sprintf(format, args...), Resources: f.resources,
	})
	return &f.findings[len(f.findings)-1]
}

// at returns a file and line, or only the file if the line is 0.
func at(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// maxNamed is the maximum number of custom resources that Text lists per finding. The
// JSON output lists all.
const maxNamed = 5

// titles are the headings of the report.
var titles = map[Verdict]string{
	Breaks:  "WOULD BREAK",
	Unknown: "COULD NOT BE CHECKED",
	ToDo:    "TO DO",
	Changes: "CHANGES",
	Works:   "WORKS UNCHANGED",
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
		fmt.Fprintf(text, "    custom resources: %s\n", api.First(f.Resources, maxNamed))
	}
	if f.Do != "" {
		fmt.Fprintf(text, "    do: %s\n", f.Do)
	}
	for line := range strings.Lines(f.Lines) {
		text.WriteString("      " + strings.TrimRight(line, "\n") + "\n")
	}
}
