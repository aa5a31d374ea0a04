package analysis

import (
	"fmt"
	"slices"
	"strings"
)

// Unknown is a placeholder for a part of a text that depends on the values.
const Unknown = "\x00"

// Texts are the texts that an expression can print. If it is not Complete, the expression
// can print other texts, too.
type Texts struct {
	List     []string
	Complete bool
}

func known(list ...string) Texts { return Texts{List: list, Complete: true} }

// All returns the texts, and Unknown unless they are complete.
func (t Texts) All() []string {
	if t.Complete {
		return t.List
	}
	return append(slices.Clone(t.List), Unknown)
}

// or returns the texts of both.
func (t Texts) or(other Texts) Texts {
	joined := Texts{List: slices.Clone(t.List), Complete: t.Complete && other.Complete}
	if len(t.List) == 0 && !t.Complete {
		// The receiver is the zero value.
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

// each applies a function to the texts.
func (t Texts) each(change func(string) string) Texts {
	changed := Texts{Complete: t.Complete}
	for _, text := range t.List {
		changed.List = append(changed.List, change(text))
	}
	return changed
}

// call returns the result of a function that charts use in names.
func (e *Evaluator) call(name string, args []value, at scope) value {
	var first, last value
	if len(args) > 0 {
		first, last = args[0], args[len(args)-1]
	}
	switch name {
	case "fail":
		// The render fails.
		return value{Texts: known("")}
	case "include":
		return e.include(args, at)
	case "quote", "squote", "toString", "trim", "required", "toYaml", "fromYaml":
		return last
	case "tpl":
		return first
	case "indent", "nindent":
		if len(args) == 2 && len(args[0].List) == 1 {
			// Other texts leave the indent unchanged.
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
	// The result can contain a template that the arguments include.
	var v value
	for _, arg := range args {
		v.includes = append(v.includes, arg.includes...)
	}
	return v
}

// either returns the combination of the values.
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

// formatted returns the output of printf for the verb %s.
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
