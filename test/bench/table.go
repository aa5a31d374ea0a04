package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// columns of the table. Missing values are shown as a dash.
var columns = []string{
	"scenario", "CRs", "time", "CRs/s", "of floor", "CPU", "CPU/CR", "of floor", "RSS", "peak", "requests/CR", "of floor", "API server CPU/CR",
}

const none = "–"

// cells returns the rows of the table, with the floor's result below each
// scenario that it has.
func (r Report) cells() [][]string {
	var rows [][]string
	for _, result := range r.Results {
		if result.Subject != operatorAccount {
			continue
		}
		floor, found := r.find(floorAccount, result.Scenario)
		rows = append(rows, result.cells(floor))
		if found {
			row := floor.cells(Result{})
			row[0] = "  the floor"
			rows = append(rows, row)
		}
	}
	return rows
}

func (r Result) cells(floor Result) []string {
	count := none
	if r.CRs > 0 {
		count = strconv.Itoa(r.CRs)
	}
	row := []string{
		r.Scenario, count, number(r.Seconds, "%.2f s"), number(r.rate(), "%.1f"), number(ratio(r.rate(), floor.rate()), "%.2f"),
		number(r.CPUSeconds, "%.2f s"), number(r.cpuPerCR(), "%.2f ms"), number(ratio(r.cpuPerCR(), floor.cpuPerCR()), "%.2f"),
		number(float64(r.RSS)/(1<<20), "%.1f MiB"), number(float64(r.Peak)/(1<<20), "%.1f MiB"),
		none, none, number(r.serverCPU(), "%.1f ms"),
	}
	if r.CRs > 0 && r.ObservedSeconds > 0 {
		row[10] = fmt.Sprintf("%.2f", r.requests())
		row[11] = number(ratio(r.requests(), floor.requests()), "%.2f")
	}
	// A scenario without an end has no rate.
	if !slices.Contains([]string{scenarioInstall, scenarioUpgrade, scenarioDelete, scenarioRollout, scenarioBehind}, r.Scenario) {
		row[3] = none
	}
	return row
}

// title returns the name of the scenario, with its subject.
func (r Result) title() string {
	if r.Subject == floorAccount {
		return "the floor: " + r.Scenario
	}
	return r.Scenario
}

// number formats a number, or a dash if it was not measured.
func number(value float64, format string) string {
	if value == 0 {
		return none
	}
	return fmt.Sprintf(format, value)
}

// verbs returns the requests per custom resource of each scenario.
func (r Report) verbs() [][]string {
	var rows [][]string
	for _, result := range r.Results {
		if result.CRs == 0 || result.ObservedSeconds == 0 {
			continue
		}
		var list []string
		for _, verb := range []string{"get", "list", "create", "update", "patch", "delete", "deletecollection"} {
			if n := result.Requests.Verbs[verb]; n > 0 {
				list = append(list, fmt.Sprintf("%s %.2f", verb, ratio(float64(n), float64(result.CRs))))
			}
		}
		if len(list) == 0 {
			list = []string{"nothing"}
		}
		rows = append(rows, []string{result.title(), strings.Join(list, ", "), strconv.Itoa(result.Requests.Writes), strconv.Itoa(result.Requests.Failed)})
	}
	return rows
}

// numbers returns the measurements of single scenarios.
func (r Report) numbers() [][]string {
	var rows [][]string
	for _, result := range r.Results {
		for _, n := range result.Numbers {
			rows = append(rows, []string{result.title(), n.Name, strings.TrimSpace(strconv.FormatFloat(n.Value, 'f', digits(n.Value), 64) + " " + n.Unit)})
		}
	}
	return rows
}

// digits returns the number of decimal places to print.
func digits(value float64) int {
	switch {
	case value == float64(int64(value)):
		return 0
	case value < 10 && value > -10:
		return 2
	default:
		return 1
	}
}

var (
	verbColumns   = []string{"scenario", "requests of one custom resource", "writes in all", "answered by an error"}
	numberColumns = []string{"scenario", "number", "value"}
)

// conditions describes the machine and the versions of the run.
func (r Report) conditions() string {
	return fmt.Sprintf("%s, %d CRs of %d objects. %d × %s, %.0f GiB, Linux %s, load %s at the start. %s, Kubernetes %s, measured by %s.",
		r.Date.Format("2006-01-02 15:04 MST"), r.CRs, r.Objects, r.Machine.CPUs, r.Machine.CPU, float64(r.Machine.Memory)/(1<<30), r.Machine.Kernel,
		r.Machine.LoadAvg, r.Versions.Operator, r.Versions.Kubernetes, r.Versions.Go)
}

// Text formats the report for a terminal.
func (r Report) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.conditions())
	for _, table := range r.tables() {
		text.WriteString("\n")
		writer := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{table.columns}, table.rows...) {
			fmt.Fprintln(writer, strings.Join(row, "\t")) //nolint:errcheck // written to memory
		}
		_ = writer.Flush() // see above
	}
	return text.String()
}

type table struct {
	columns []string
	rows    [][]string
}

func (r Report) tables() []table {
	return []table{{columns, r.cells()}, {numberColumns, r.numbers()}, {verbColumns, r.verbs()}}
}

// Markdown formats the report for the documentation.
func (r Report) Markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.conditions())
	for _, table := range r.tables() {
		fmt.Fprintf(&text, "\n| %s |\n|%s\n", strings.Join(table.columns, " | "), strings.Repeat("---|", len(table.columns)))
		for _, row := range table.rows {
			cells := slices.Clone(row)
			cells[0] = strings.TrimSpace(cells[0])
			fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	return text.String()
}

// Marks around the table in a file.
const (
	beginMark = "<!-- what bench has measured -->\n"
	endMark   = "<!-- end -->\n"
)

// between replaces the text between the marks.
func between(text, table string) (string, error) {
	before, rest, found := strings.Cut(text, beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !found || !ended {
		return "", fmt.Errorf("no place for the table: want a line %q, followed by a line %q", strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return before + beginMark + "\n" + table + "\n" + endMark + after, nil
}

func writeMarkdown(file string, report Report) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--markdown: %w", err)
	}
	changed, err := between(string(text), report.Markdown())
	if err != nil {
		return fmt.Errorf("--markdown: %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(changed), 0o644) //nolint:gosec // readable by everyone
}
