package analysis

import (
	"fmt"
	"slices"
	"strings"
)

// Unknown stands, in a text, for a part that is not known before values are.
const Unknown = "\x00"

// Texts are what an expression can print: these if Complete, and otherwise other
// texts, too.
type Texts struct {
	List     []string
	Complete bool
}

func known(list ...string) Texts { return Texts{List: list, Complete: true} }

// All returns the texts, and Unknown if they are not complete.
func (t Texts) All() []string {
	if t.Complete {
		return t.List
	}
	return append(slices.Clone(t.List), Unknown)
}

// or returns what either can print.
func (t Texts) or(other Texts) Texts {
	joined := Texts{List: slices.Clone(t.List), Complete: t.Complete && other.Complete}
	if len(t.List) == 0 && !t.Complete {
		// Nothing was known of it so far.
		joined.Complete = other.Complete
	}
	for _, text := range other.List {
		if !slices.Contains(joined.List, text) {
			joined.List = append(joined.List, text)
		}
	}
	return joined.bounded()
}

// then returns every text followed by every text of the other.
func (t Texts) then(other Texts) Texts {
	joined := known()
	for _, a := range t.All() {
		for _, b := range other.All() {
			joined.List = append(joined.List, a+b)
		}
	}
	return joined.bounded()
}

func (t Texts) bounded() Texts {
	if len(t.List) > maxTexts {
		return Texts{}
	}
	return t
}

// each changes the texts that are known.
func (t Texts) each(change func(string) string) Texts {
	changed := Texts{Complete: t.Complete}
	for _, text := range t.List {
		changed.List = append(changed.List, change(text))
	}
	return changed
}

// call returns the result of a function, if it can be part of a name.
func (e *Evaluator) call(name string, args []value, at scope) value {
	var first, last value
	if len(args) > 0 {
		first, last = args[0], args[len(args)-1]
	}
	switch name {
	case "fail":
		// Nothing is rendered where it is called.
		return value{Texts: known("")}
	case "include":
		return e.include(args, at)
	case "quote", "squote", "toString", "trim", "required", "toYaml", "fromYaml":
		return last
	case "tpl":
		return first
	case "indent", "nindent":
		if len(args) == 2 && len(args[0].List) == 1 {
			// What is no number is no indent.
			_, _ = fmt.Sscan(args[0].List[0], &last.indent)
		}
		last.newline = name == "nindent"
		return last
	case "lower":
		return value{Texts: last.each(strings.ToLower)}
	case "upper":
		return value{Texts: last.each(strings.ToUpper)}
	case "title":
		return value{Texts: last.each(func(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] })}
	case "default", "coalesce":
		return either(args)
	case "ternary":
		return either(args[:min(2, len(args))])
	case "list", "tuple":
		items := known()
		for _, arg := range args {
			items = items.or(arg.Texts)
		}
		return value{items: items}
	case "print":
		printed := known("")
		for _, arg := range args {
			printed = printed.then(arg.Texts)
		}
		return value{Texts: printed}
	case "printf":
		return value{Texts: formatted(args)}
	}
	// A template that is named among the arguments may be the result.
	var v value
	for _, arg := range args {
		v.includes = append(v.includes, arg.includes...)
	}
	return v
}

// either returns what any of the values is.
func either(args []value) value {
	if len(args) == 0 {
		return value{}
	}
	v := args[0]
	for _, arg := range args[1:] {
		v.Texts = v.or(arg.Texts)
		v.includes = append(v.includes, arg.includes...)
	}
	if len(v.List) == 1 && v.List[0] == "" {
		return value{includes: v.includes}
	}
	return v
}

// formatted returns what printf prints: it fills the %s of the format.
func formatted(args []value) Texts {
	if len(args) == 0 || len(args[0].List) != 1 {
		return Texts{}
	}
	printed := known("")
	for i, piece := range strings.Split(args[0].List[0], "%s") {
		if i > 0 {
			var arg Texts
			if i < len(args) {
				arg = args[i].Texts
			}
			printed = printed.then(arg)
		}
		if strings.Contains(piece, "%") {
			piece = Unknown
		}
		printed = printed.then(known(piece))
	}
	return printed
}
