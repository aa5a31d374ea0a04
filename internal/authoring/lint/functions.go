package lint

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/watches"
)

// random lists the template functions that return another result with each call.
var random = []string{
	"randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randBytes", "randInt", "shuffle", "uuidv4",
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	// These use a random salt or initialization vector.
	"bcrypt", "htpasswd", "encryptAES",
}

// clocks lists the functions that read the time.
var clocks = []string{"now", "ago"}

// readsFile lists the methods that read a file by its name.
var readsFile = []string{"Files.Get", "Files.GetBytes", "Files.Lines"}

// calls applies the rules on function calls in the templates.
func (c *check) calls() error {
	c.loops()
	defaults, err := c.Kind.Chart.Values()
	if err != nil {
		return err
	}
	set := setValues{defaults: defaults, required: requiredValues(c.Kind.Chart.Schema())}
	all := analysis.ReadCalls(c.files)
	for _, call := range all.All {
		if !all.Executed(call.Template) {
			continue
		}
		at := location{call.File.Path, call.Line()}
		switch {
		case slices.Contains(random, call.Name) && !all.Kept(call, set.has):
			what := "in each revision"
			if len(call.Unless) > 0 {
				what = "in each revision of a release that does not set " + strings.Join(call.Unless, " or ")
			}
			c.findf(ruleRandom, at, "%s generates another value %s", call.Name, what)
		case slices.Contains(clocks, call.Name) && !all.Kept(call, set.has):
			c.findf(ruleTime, at, "%s returns another time in each revision", call.Name)
		case call.Name == "Release.Revision":
			c.findf(ruleRevision, at, ".%s differs in each revision", call.Name)
		case call.Name == "Release.IsInstall" || call.Name == "Release.IsUpgrade":
			c.findf(rulePhase, at, ".%s differs between the first revision and all later ones", call.Name)
		case call.Name == "lookup":
			c.lookup(call, at)
		case slices.Contains(readsFile, call.Name):
			c.readsFile(call, at)
		}
	}
	return nil
}

// lookup applies the rules on lookup APIVERSION KIND NAMESPACE NAME.
func (c *check) lookup(call analysis.Call, at location) {
	what := "objects"
	if len(call.Args) > 1 {
		if kind, ok := analysis.Literal(call.Args[1]); ok {
			what = kind
		}
	}
	if c.Kind.Allow.LookupScope() == watches.LookupNone {
		c.findAsf(Error, ruleLookupAway, at, "lookup of %s fails: the entry has allow.lookup: none", what)
		return
	}
	c.findf(ruleLookup, at, "lookup of %s: a change of the objects does not take effect at once", what)
	if len(call.Args) < 3 || c.Kind.Allow.Lookup == watches.LookupAll || c.ownNamespace(call.Args[2]) {
		return
	}
	severity, where := Warning, "a computed namespace"
	if namespace, fixed := analysis.Literal(call.Args[2]); fixed {
		if c.allowsEverything() {
			c.need.Lookup = watches.LookupAll
			return
		}
		where = "namespace " + namespace
		if namespace == "" {
			where = "no namespace, which selects all namespaces or a cluster-scoped kind"
		}
		if !c.Standalone {
			severity = Error
		}
	}
	c.findAsf(severity, ruleLookupAway, at, "lookup of %s in %s needs allow.lookup: all", what, where)
}

// ownNamespace reports whether an argument is the release's namespace, or includes
// a template that contains it.
func (c *check) ownNamespace(arg parse.Node) bool {
	if analysis.Field(arg) == "Release.Namespace" {
		return true
	}
	pipe, ok := arg.(*parse.PipeNode)
	if !ok || len(pipe.Cmds) == 0 {
		return false
	}
	args := pipe.Cmds[0].Args
	if len(args) == 1 && len(pipe.Cmds) == 1 {
		return c.ownNamespace(args[0])
	}
	if len(args) < 2 || analysis.Function(args[0]) != "include" {
		return false
	}
	name, ok := analysis.Literal(args[1])
	if !ok {
		return false
	}
	for _, file := range c.files {
		for _, tree := range file.Trees {
			if tree.Name == name {
				return strings.Contains(tree.Root.String(), ".Release.Namespace")
			}
		}
	}
	return false
}

func (c *check) readsFile(call analysis.Call, at location) {
	if len(call.Args) == 0 {
		return
	}
	name, ok := analysis.Literal(call.Args[0])
	if !ok {
		return
	}
	folder := ""
	for _, subchart := range call.File.Subcharts() {
		folder = path.Join(folder, "charts", subchart)
	}
	if !slices.Contains(c.Kind.Chart.Files(), path.Join(folder, name)) {
		c.findf(ruleNoFile, at, ".%s %q: the chart has no such file, or .helmignore excludes it", call.Name, name)
	}
}

// setValues describes which values are set in every release.
type setValues struct {
	defaults map[string]any
	// required contains the paths of the values that the chart's schema requires.
	required map[string]bool
}

// has reports whether a value is set in every render of a file of the chart or of a
// subchart: it has a default that is not empty, or the schema requires it. The path
// of the value is relative to .Values.
func (s setValues) has(file analysis.File, value string) bool {
	keys := append(file.Subcharts(), strings.Split(value, ".")...)
	byDefault, _, _ := unstructured.NestedFieldNoCopy(s.defaults, keys...)
	notEmpty, _ := template.IsTrue(byDefault)
	return notEmpty || s.required[strings.Join(keys, ".")]
}

// requiredValues returns the paths of the values that a schema requires by the
// keyword required at every level. It ignores other keywords, such as anyOf.
func requiredValues(schema []byte) map[string]bool {
	found := map[string]bool{}
	var root objectSchema
	// Subschemas that are not objects, such as true, are skipped.
	_ = json.Unmarshal(schema, &root)
	root.require("", found)
	return found
}

// objectSchema contains the keywords that requiredValues reads.
type objectSchema struct {
	Required   []string
	Properties map[string]objectSchema
}

func (s objectSchema) require(prefix string, found map[string]bool) {
	for _, key := range s.Required {
		found[prefix+key] = true
		s.Properties[key].require(prefix+key+".", found)
	}
}
