package permissions

import (
	"fmt"
	"strings"
)

// call returns what a function gives, as far as it has to do with names.
func (r *reader) call(name string, args []value, at place) value {
	last := value{}
	if len(args) > 0 {
		last = args[len(args)-1]
	}
	switch name {
	case "fail":
		// Nothing is rendered where it is called.
		return value{texts: of("")}
	case "include":
		return r.include(args, at)
	case "quote", "squote", "toString", "trim", "required", "toYaml", "fromYaml", "tpl":
		if name == "tpl" && len(args) > 0 {
			last = args[0]
		}
		return last
	case "indent", "nindent":
		if len(args) == 2 && len(args[0].list) == 1 {
			// What is no number is no indent.
			_, _ = fmt.Sscan(args[0].list[0], &last.indent)
		}
		last.newline = name == "nindent"
		return last
	case "lower":
		return value{texts: last.each(strings.ToLower)}
	case "upper":
		return value{texts: last.each(strings.ToUpper)}
	case "title":
		return value{texts: last.each(func(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] })}
	case "default", "coalesce":
		return either(args)
	case "ternary":
		return either(args[:min(2, len(args))])
	case "list", "tuple":
		items := of()
		for _, arg := range args {
			items = items.or(arg.texts)
		}
		return value{items: items}
	case "print", "printf":
		return value{texts: printed(name, args)}
	}
	// A template that is named among the arguments may be what comes out.
	var includes []string
	for _, arg := range args {
		includes = append(includes, arg.includes...)
	}
	return value{includes: includes}
}

// either returns what any of the values is.
func either(args []value) value {
	var v value
	for i, arg := range args {
		if i == 0 {
			v = arg
			continue
		}
		v.texts = v.or(arg.texts)
		v.includes = append(v.includes, arg.includes...)
	}
	if len(v.list) == 1 && v.list[0] == "" {
		return value{includes: v.includes}
	}
	return v
}

// printed joins the texts of arguments.
func printed(name string, args []value) texts {
	if name == "printf" {
		if len(args) == 0 || len(args[0].list) != 1 {
			return texts{}
		}
		return formatted(args[0].list[0], args[1:])
	}
	joined := of("")
	for _, arg := range args {
		joined = product(joined, arg.texts)
	}
	return joined
}

// formatted fills the %s of a format.
func formatted(format string, args []value) texts {
	joined := of("")
	for i, piece := range strings.Split(format, "%s") {
		if i > 0 {
			arg := value{}
			if i <= len(args) {
				arg = args[i-1]
			}
			joined = product(joined, arg.texts)
		}
		if strings.Contains(piece, "%") {
			piece = unknown
		}
		joined = product(joined, of(piece))
	}
	return joined
}
