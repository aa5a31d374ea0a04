package lint

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/chart/values"
)

var (
	// formatError matches what printf writes for an argument that its format does not expect, such as
	// %!d(float64=80).
	formatError = regexp.MustCompile(`%!(?:[a-zA-Z]\(\S*|\(EXTRA \S*|\(NOVERB\))`)
	// exponent matches a large whole number as templates print a float64.
	exponent = regexp.MustCompile(`(?:^|[^\w.])(\d(?:\.\d+)?e\+\d\d)(?:$|[^\w.])`)
)

// texts applies the rules on the texts in an object.
func (c *check) texts(o foundObject) {
	eachText(o.Object, "", func(path, text string) {
		if found := formatError.FindString(text); found != "" {
			c.findf(ruleFormat, o.at, "%s contains %s", path, found)
		}
		if found := exponent.FindStringSubmatch(text); found != nil {
			c.findf(ruleNumberFormat, o.at, "%s contains %s", path, found[1])
		}
	})
}

// eachText calls a function for each text in a value, with its path.
func eachText(value any, path string, do func(path, text string)) {
	switch v := value.(type) {
	case string:
		do(path, v)
	case []any:
		for _, item := range v {
			eachText(item, path+"[]", do)
		}
	case map[string]any:
		for key, inner := range v {
			eachText(inner, strings.TrimPrefix(path+"."+key, "."), do)
		}
	}
}

// numbers applies the rules on the numbers in values: it renders the chart with all values of
// the first trial written down, once as integers and once as the numbers of Helm.
func (c *check) numbers() error {
	defaults, err := c.Kind.Chart.Values()
	if err != nil || len(c.trials) == 0 {
		return err
	}
	all := values.Normalize(values.Coalesce(defaults, c.trials[0].values))
	c.rounded(all, "")
	results := &render.Reused{Random: true}
	rendered := func(integers bool) (map[string]chart.RenderedObject, error) {
		with := c.offline(trial{values: all, unchecked: c.trials[0].unchecked}, first)
		with.Numbers.Integers, with.Reused = integers, results
		found, err := c.Kind.Chart.Render(with)
		if err != nil {
			return nil, err
		}
		objects := map[string]chart.RenderedObject{}
		for _, o := range slices.Concat(found.Objects, found.Hooks) {
			objects[apply.Describe(o.Unstructured)] = o
		}
		return objects, nil
	}
	floats, err := rendered(false)
	if err != nil {
		// The chart refuses its own values, for example because of two exclusive ones.
		return nil //nolint:nilerr // the rules helm and not-rendered report errors
	}
	integers, err := rendered(true)
	if err != nil {
		c.findf(ruleNumberType, location{"values.yaml", 0}, "with integers, the chart cannot be rendered: %v", err)
		return nil
	}
	for what, o := range floats {
		var other map[string]any
		if same, found := integers[what]; found {
			other = same.Object
		}
		if fields := values.Differences(values.Normalize(o.Object), values.Normalize(other), ""); len(fields) > 0 {
			c.findf(ruleNumberType, c.locate(o, 0), "%s: %s", o.GetKind(), strings.Join(fields, ", "))
		}
	}
	return nil
}

// rounded finds whole numbers that a float64 does not represent.
func (c *check) rounded(value any, path string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			c.rounded(item, path+"[]")
		}
	case map[string]any:
		for key, inner := range v {
			c.rounded(inner, strings.TrimPrefix(path+"."+key, "."))
		}
	case int64:
		c.rounded(float64(v), path)
	case float64:
		if math.Abs(v) >= 1<<53 && v == math.Trunc(v) {
			c.findf(ruleNumberFormat, location{"values.yaml", 0}, "%s is rounded to %.0f", path, v)
		}
	}
}
