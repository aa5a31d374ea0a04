package monitoring

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Matcher is a label matcher of an expression.
type Matcher struct {
	Label string
	// Values are the values that it names, unless they are a pattern.
	Values []string
}

// Expression contains the metrics and labels of an expression in PromQL.
type Expression struct {
	Series   []string
	Matchers []Matcher
	// Labels are the labels that distinguish its results.
	Labels []string
}

// Read parses an expression. It fails for unknown metrics or labels.
func Read(text string, known map[string][]string) (Expression, error) {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return Expression{}, err
	}
	r := reader{known: known}
	r.expression.Labels = r.walk(parsed)
	return r.expression, r.err
}

type reader struct {
	known      map[string][]string
	expression Expression
	err        error
}

func (r *reader) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// walk visits a node, and returns the labels of its results.
func (r *reader) walk(node parser.Node) []string {
	switch n := node.(type) {
	case *parser.VectorSelector:
		return r.selector(n)
	case *parser.AggregateExpr:
		return r.aggregate(n)
	case *parser.BinaryExpr:
		return r.binary(n)
	}
	var all []string
	for child := range parser.ChildrenIter(node) {
		all = append(all, r.walk(child)...)
	}
	if call, ok := node.(*parser.Call); ok && call.Func.Name == "histogram_quantile" {
		if !slices.Contains(all, "le") {
			r.failf("%s: the buckets have no label le", node)
		}
		all = slices.DeleteFunc(all, func(label string) bool { return label == "le" })
	}
	return all
}

func (r *reader) selector(n *parser.VectorSelector) []string {
	of, ok := labelsOf(r.known, n.Name)
	if !ok {
		r.failf("no metric %s", n.Name)
	}
	r.expression.Series = append(r.expression.Series, n.Name)
	for _, m := range n.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if !slices.Contains(of, m.Name) {
			r.failf("%s has no label %s, want one of %v", n.Name, m.Name, of)
		}
		values := []string{m.Value}
		if m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp {
			values = slices.DeleteFunc(strings.Split(m.Value, "|"), func(v string) bool { return strings.ContainsAny(v, ".*+$") })
		}
		r.expression.Matchers = append(r.expression.Matchers, Matcher{m.Name, values})
	}
	return of
}

func (r *reader) aggregate(n *parser.AggregateExpr) []string {
	of := r.walk(n.Expr)
	for _, label := range n.Grouping {
		if !slices.Contains(of, label) {
			r.failf("%s: no operand has a label %s", n, label)
		}
	}
	if !n.Without {
		return n.Grouping
	}
	return slices.DeleteFunc(slices.Clone(of), func(label string) bool { return slices.Contains(n.Grouping, label) })
}

func (r *reader) binary(n *parser.BinaryExpr) []string {
	left, right := r.walk(n.LHS), r.walk(n.RHS)
	if n.VectorMatching == nil {
		return append(left, right...)
	}
	if n.VectorMatching.On {
		for _, label := range n.VectorMatching.MatchingLabels {
			if !slices.Contains(left, label) || !slices.Contains(right, label) {
				r.failf("%s: not both sides have a label %s", n, label)
			}
		}
		return left
	}
	// Otherwise all labels must be equal, or nothing ever matches.
	l, m := slices.Sorted(slices.Values(left)), slices.Sorted(slices.Values(right))
	if n.VectorMatching.Card != parser.CardOneToOne && n.VectorMatching.Card != parser.CardManyToMany || !slices.Equal(l, m) {
		r.failf("%s: the sides have different labels, %v and %v", n, l, m)
	}
	return left
}
