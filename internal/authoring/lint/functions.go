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

// random holds the functions of templates that give another result each time.
var random = []string{
	"randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randBytes", "randInt", "shuffle", "uuidv4",
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	// These put a salt or an initial vector into what they make.
	"bcrypt", "htpasswd", "encryptAES",
}

// clocks holds the functions that read the time.
var clocks = []string{"now", "ago"}

// readsFile holds the fields that read a file by its name.
var readsFile = []string{"Files.Get", "Files.GetBytes", "Files.Lines"}

// calls applies the rules that the syntax of the templates decides.
func (c *check) calls() error {
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
			c.findf(ruleRandom, at, "%s makes another value %s", call.Name, what)
		case slices.Contains(clocks, call.Name) && !all.Kept(call, set.has):
			c.findf(ruleTime, at, "%s gives another time in each revision", call.Name)
		case call.Name == "Release.Revision":
			c.findf(ruleRevision, at, ".%s differs in each revision", call.Name)
		case call.Name == "Release.IsInstall" || call.Name == "Release.IsUpgrade":
			c.findf(rulePhase, at, ".%s differs between the first revision and all that follow", call.Name)
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
	c.findf(ruleLookup, at, "lookup of %s: a change of what it finds is not seen at once", what)
	if len(call.Args) < 3 || c.Kind.Allow.LookupScope() == watches.LookupAll || c.ownNamespace(call.Args[2]) {
		return
	}
	severity, where := Warning, "a namespace that is computed"
	if namespace, fixed := analysis.Literal(call.Args[2]); fixed {
		where = "namespace " + namespace
		if namespace == "" {
			where = "no namespace, which is all of them, or a kind that has none"
		}
		if !c.Alone {
			severity = Error
		}
	}
	c.findAsf(severity, ruleLookupAway, at, "lookup of %s in %s needs allow.lookup: all", what, where)
}

// ownNamespace reports whether an argument is the release's namespace: as it is,
// or by a template that begins with it.
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
		c.findf(ruleNoFile, at, ".%s %q: there is no such file in the chart, or .helmignore leaves it out", call.Name, name)
	}
}

// setValues knows which values are set in every release.
type setValues struct {
	defaults map[string]any
	// required are the paths that the chart's schema requires.
	required map[string]bool
}

// has reports whether a value, by its path below .Values, is set wherever a file
// of the chart or of a subchart is rendered: it has a default that is not
// empty, or the schema requires it.
func (s setValues) has(file analysis.File, value string) bool {
	keys := append(file.Subcharts(), strings.Split(value, ".")...)
	byDefault, _, _ := unstructured.NestedFieldNoCopy(s.defaults, keys...)
	notEmpty, _ := template.IsTrue(byDefault)
	return notEmpty || s.required[strings.Join(keys, ".")]
}

// requiredValues returns the paths that a schema requires, as far as it says so
// plainly: by required beside properties, at every level above, too.
func requiredValues(schema []byte) map[string]bool {
	found := map[string]bool{}
	var root objectSchema
	// Subschemas that are not objects, such as true, are skipped.
	_ = json.Unmarshal(schema, &root)
	root.require("", found)
	return found
}

// objectSchema is the part of a schema that requires values.
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
