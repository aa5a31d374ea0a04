package permissions

import (
	"fmt"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// document is one YAML document of a template, with what stands in all branches.
type document struct {
	file analysis.File
	// kinds and versions are the lines that name them, wherever they stand, and
	// hooks those that make a hook of the object.
	kinds, versions, hooks []line
	// opaque are places of its top level whose text is not known.
	opaque []opaque
	logged bool
	// flow: it is written in braces.
	flow bool
}

// line is the value of one line, and where that stands.
type line struct {
	text string
	file string
	line int
	// column is how far in the key stands.
	column int
	// item counts the items of a list.
	item int
	in   branch
}

type opaque struct {
	text string
	file string
	line int
}

// found is an object of a document.
type found struct {
	apiVersion, kind string
	file             string
	line             int
	plain, hook      bool
}

// objects pairs kinds with the apiVersions that they can stand beside.
func (d *document) objects() []found {
	var all []found
	column := d.column()
	for _, kind := range d.kinds {
		if kind.column != column {
			continue
		}
		o := found{kind: kind.text, file: kind.file, line: kind.line}
		o.hook = slices.ContainsFunc(d.hooks, func(h line) bool { return h.in.meets(kind.in) })
		o.plain = !slices.ContainsFunc(d.hooks, func(h line) bool { return h.in.holds(kind.in) })
		paired := false
		for _, version := range d.versions {
			if version.column == column && version.item == kind.item && version.in.meets(kind.in) {
				o.apiVersion, paired = version.text, true
				all = append(all, o)
			}
		}
		if !paired {
			all = append(all, o)
		}
	}
	return all
}

// column is how far in the keys of the objects stand: the first of a line, but
// for the items of a List and what is in braces.
func (d *document) column() int {
	isList := slices.ContainsFunc(d.kinds, func(k line) bool { return k.column == 0 && k.text == "List" })
	if !isList && !d.flow {
		return 0
	}
	least := 0
	for _, kind := range d.kinds {
		if kind.column > 0 && (least == 0 || kind.column < least) {
			least = kind.column
		}
	}
	return least
}

// branch is the way to a place, through the branches of ifs: none of them twice.
type branch []arm

// arm is one side of an if, a with or a range.
type arm struct {
	node parse.Node
	side int
}

// meets tells whether two places can be reached in one render.
func (b branch) meets(other branch) bool {
	for _, one := range b {
		for _, two := range other {
			if one.node == two.node && one.side != two.side {
				return false
			}
		}
	}
	return true
}

// holds tells whether the place is reached wherever the other one is.
func (b branch) holds(other branch) bool {
	for _, one := range b {
		if !slices.Contains(other, one) {
			return false
		}
	}
	return true
}

func (b branch) and(node parse.Node, side int) branch {
	return append(slices.Clone(b), arm{node, side})
}

// unknown stands for a text that is not known, and inner for one that is known
// to be further in than the first column.
const (
	unknown = "\x00"
	inner   = "\x01"
)

func readable(text string) string {
	return fmt.Sprintf("%q", strings.ReplaceAll(text, unknown, "{{…}}"))
}
