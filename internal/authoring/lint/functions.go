package lint

import (
	"path"
	"slices"
	"strings"
	"text/template/parse"

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
	set := settled{chart: defaults, required: requiredValues(c.Kind.Chart.Schema())}
	all := readCalls(c.files)
	for _, call := range all.calls {
		if !all.live(call.in) {
			continue
		}
		switch {
		case slices.Contains(random, call.name):
			c.random(all, call, set)
		case slices.Contains(clocks, call.name) && !all.guarded(call, set.has):
			c.findf(ruleTime, call.place(), "%s gives another time in each revision", call.name)
		case call.name == "Release.Revision":
			c.findf(ruleRevision, call.place(), ".%s differs in each revision", call.name)
		case call.name == "Release.IsInstall" || call.name == "Release.IsUpgrade":
			c.findf(rulePhase, call.place(), ".%s differs between the first revision and all that follow", call.name)
		case call.name == "lookup":
			c.lookup(call)
		case slices.Contains(readsFile, call.name):
			c.readsFile(call)
		}
	}
	return nil
}

func (c *check) random(all *called, call call, set settled) {
	if all.guarded(call, set.has) {
		return
	}
	if unless := call.guard.unless; len(unless) > 0 {
		c.findf(ruleRandom, call.place(), "%s makes another value in each revision of a release that does not set %s", call.name, strings.Join(unless, " or "))
		return
	}
	c.findf(ruleRandom, call.place(), "%s makes another value in each revision", call.name)
}

// lookup applies the rules on lookup APIVERSION KIND NAMESPACE NAME.
func (c *check) lookup(call call) {
	what := "objects"
	if len(call.args) > 1 {
		if kind, ok := call.args[1].(*parse.StringNode); ok {
			what = kind.Text
		}
	}
	if c.Kind.Allow.LookupScope() == watches.LookupNone {
		c.findAsf(Error, ruleLookupAway, call.place(), "lookup of %s fails: the entry has allow.lookup: none", what)
		return
	}
	c.findf(ruleLookup, call.place(), "lookup of %s: a change of what it finds is not seen at once", what)
	if len(call.args) < 3 || c.Kind.Allow.LookupScope() == watches.LookupAll {
		return
	}
	severity := Warning
	namespace, fixed := call.args[2].(*parse.StringNode)
	switch {
	case c.ownNamespace(call.args[2]):
		return
	case fixed && !c.Alone:
		severity = Error
	}
	where := "a namespace that is computed"
	if fixed {
		where = "namespace " + namespace.Text
	}
	if fixed && namespace.Text == "" {
		where = "no namespace, which is all of them, or a kind that has none"
	}
	c.findAsf(severity, ruleLookupAway, call.place(), "lookup of %s in %s needs allow.lookup: all", what, where)
}

// ownNamespace tells whether an argument is the release's namespace: as it is,
// or by a template that begins with it.
func (c *check) ownNamespace(arg parse.Node) bool {
	if field(arg) == "Release.Namespace" {
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
	if len(args) < 2 || ident(args[0]) != "include" {
		return false
	}
	name, ok := args[1].(*parse.StringNode)
	if !ok {
		return false
	}
	for _, file := range c.files {
		for _, tree := range file.Trees {
			if tree.Name == name.Text {
				return strings.Contains(tree.Root.String(), ".Release.Namespace")
			}
		}
	}
	return false
}

func (c *check) readsFile(call call) {
	if len(call.args) == 0 {
		return
	}
	name, ok := call.args[0].(*parse.StringNode)
	if !ok {
		return
	}
	if !slices.Contains(c.Kind.Chart.Files(), path.Join(chartOf(call.file.Path), name.Text)) {
		c.findf(ruleNoFile, call.place(), ".%s %q: there is no such file in the chart, or .helmignore leaves it out", call.name, name.Text)
	}
}

// chartOf returns the folder of the chart, or subchart, that a file is of.
func chartOf(file string) string {
	parts := strings.Split(file, "/")
	n := 0
	for n+1 < len(parts) && parts[n] == "charts" {
		n += 2
	}
	return path.Join(parts[:n]...)
}
