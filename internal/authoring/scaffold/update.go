package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// Update describes another version of the chart of a kind.
type Update struct {
	// Kind is a kind such as Web, or with its group Web.shop.example.com.
	Kind    string
	Fetched Fetched
	// Force allows to overwrite files of the copy of the chart that the user has edited.
	Force bool
	// AllowBreaking allows changes of the CRD that break existing custom resources.
	AllowBreaking bool
	// Allow is as in Add.
	Allow *bool
}

// Changes are what another version of a chart changes for a kind.
type Changes struct {
	// From and To are the versions of the chart.
	From string `json:"from"`
	To   string `json:"to"`
	// CRD is the difference between the CRDs.
	CRD crd.Difference `json:"crd"`
	// Values are the default values, Permissions the rules of the operator's role, and
	// Images the images of the chart with its default and example values. The lines start
	// with + for added, - for removed and ~ for changed.
	Values      []string `json:"values,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
	Images      []string `json:"images,omitempty"`
}

// Update plans the files of a kind with another version of its chart, with what changes.
func (p Project) Update(u Update) (*Plan, error) {
	file, index, err := p.entry(u.Kind)
	if err != nil {
		return nil, err
	}
	kind := file.entries[index].GVK().GroupKind()
	served, err := catalog.FromFile(p.Watches)
	if err != nil {
		return nil, err
	}
	plan, err := p.Add(Add{
		Fetched: &u.Fetched, Group: kind.Group, Kind: kind.Kind, Version: file.entries[index].Version,
		Force: u.Force, Allow: u.Allow,
	})
	if err != nil {
		return nil, err
	}
	from, to := only(served, kind), only(plan.kinds, kind)
	if err := p.updateSample(plan, from, to); err != nil {
		return nil, err
	}
	if plan.Changes, err = p.changes(from, to); err != nil {
		return nil, err
	}
	if breaking := plan.Changes.CRD.Breaking(); breaking > 0 && !u.AllowBreaking {
		var lines []string
		for _, change := range plan.Changes.CRD.Changes {
			if line := "  " + change.String(); change.Breaking && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		plan.refuse(fmt.Sprintf("the CRD of chart version %s breaks existing custom resources of %s:\n%s", plan.Changes.To, u.Kind, strings.Join(lines, "\n")),
			"To update nevertheless, set --allow-breaking. To use another version, set --chart-version", "")
	}
	return plan, nil
}

// updateSample plans the sample for another version of a chart, unless the user has edited
// the sample.
func (p Project) updateSample(plan *Plan, from, to catalog.Kind) error {
	name, err := p.Name()
	if err != nil {
		return err
	}
	path, data, err := p.sampleOf(plan, to.GVK().GroupKind())
	if err != nil || path == "" || !bytes.Equal(unixLines(data), unixLines(p.generatedSample(name, from))) {
		return err
	}
	if text := p.generatedSample(name, to); text != nil {
		return plan.write(path, text)
	}
	return nil
}

// only returns the kind among others.
func only(kinds []catalog.Kind, kind schema.GroupKind) catalog.Kind {
	for _, k := range kinds {
		if k.GVK().GroupKind() == kind {
			return k
		}
	}
	return catalog.Kind{}
}

// changes compares a kind before and after an update of its chart.
func (p Project) changes(from, to catalog.Kind) (*Changes, error) {
	c := &Changes{From: from.Chart.Version(), To: to.Chart.Version()}
	was, _, err := crd.GenerateWith(from, p.Finder)
	if err != nil {
		return nil, err
	}
	is, _, err := crd.GenerateWith(to, p.Finder)
	if err != nil {
		return nil, err
	}
	c.CRD = crd.Diff([]*apiextensionsv1.CustomResourceDefinition{was}, []*apiextensionsv1.CustomResourceDefinition{is})[0]
	before, err := defaults(from.Chart)
	if err != nil {
		return nil, err
	}
	after, err := defaults(to.Chart)
	if err != nil {
		return nil, err
	}
	c.Values = compareMaps(before, after)
	if c.Permissions, err = p.permissionChanges(from, to); err != nil {
		return nil, err
	}
	c.Images = compareMaps(images(from.Chart), images(to.Chart))
	return c, nil
}

// maxValue is the maximum length of a value in Changes.Values.
const maxValue = 60

// defaults returns the default values of a chart by their paths.
func defaults(c *chart.Chart) (map[string]string, error) {
	values, err := c.Values()
	if err != nil {
		return nil, err
	}
	flat := map[string]string{}
	return flat, flatten(flat, "", values)
}

func flatten(flat map[string]string, at string, value any) error {
	if inner, isMap := value.(map[string]any); isMap && len(inner) > 0 {
		for key, value := range inner {
			if err := flatten(flat, strings.TrimPrefix(at+"."+key, "."), value); err != nil {
				return err
			}
		}
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	flat[at] = string(data)
	return nil
}

// compareMaps returns a line for each key that was added, removed or changed.
func compareMaps(before, after map[string]string) []string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(after)) {
		was, had := before[key]
		switch is := after[key]; {
		case !had:
			lines = append(lines, "+ "+key+colon(short(is)))
		case was != is:
			lines = append(lines, "~ "+key+colon(short(was)+" -> "+short(is)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, has := after[key]; !has {
			lines = append(lines, "- "+key)
		}
	}
	return lines
}

func colon(value string) string {
	if value == "" {
		return ""
	}
	return ": " + value
}

func short(value string) string {
	if runes := []rune(value); len(runes) > maxValue {
		return string(runes[:maxValue]) + "…"
	}
	return value
}

// permissionChanges compares the rules that the operator needs for a kind.
func (p Project) permissionChanges(from, to catalog.Kind) ([]string, error) {
	rules := func(k catalog.Kind) ([]rbacv1.PolicyRule, error) {
		report, err := permissions.Derive([]catalog.Kind{k}, permissions.Options{Analyzer: p.Analyzer})
		if err != nil {
			return nil, err
		}
		list := make([]rbacv1.PolicyRule, len(report.Rules))
		for i, rule := range report.Rules {
			list[i] = rule.PolicyRule
		}
		return list, nil
	}
	before, err := rules(from)
	if err != nil {
		return nil, err
	}
	after, err := rules(to)
	if err != nil {
		return nil, err
	}
	return slices.Concat(uncovered("+ ", before, after), uncovered("- ", after, before)), nil
}

// uncovered returns the parts of rules that others do not allow.
func uncovered(mark string, have, need []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range need {
		for _, missing := range permissions.Allowed(have, rule) {
			lines = append(lines, mark+permissions.RuleText(missing))
		}
	}
	return lines
}

// images returns the images of the objects that a chart renders with its default and its
// example values, as the keys of a map. Values that the chart rejects have no images.
func images(c *chart.Chart) map[string]string {
	found := map[string]string{}
	trials, err := c.Examples()
	if err != nil {
		trials = map[string]map[string]any{}
	}
	trials[""] = nil
	for _, values := range trials {
		rendered, err := c.Render(chart.Offline{Release: trialRelease, Namespace: trialNamespace, Values: values, Unchecked: true, APIVersions: c.Features.APIs})
		if err != nil {
			continue
		}
		for _, object := range slices.Concat(rendered.Objects, rendered.Hooks) {
			collectImages(found, object.Object)
		}
	}
	return found
}

// collectImages adds the values of all keys named image.
func collectImages(found map[string]string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if image, isText := inner.(string); isText && key == "image" && image != "" {
				found[image] = ""
			}
			collectImages(found, inner)
		}
	case []any:
		for _, inner := range value {
			collectImages(found, inner)
		}
	}
}
