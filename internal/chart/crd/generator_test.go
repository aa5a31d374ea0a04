package crd

import "math/rand/v2"

// generator creates schemas and values from few words, so that they often have the same
// keys.
type generator struct{ *rand.Rand }

func (g generator) pick(words ...any) any { return words[g.IntN(len(words))] }

func (g generator) key() string { return string(rune('a' + g.IntN(4))) }

func (g generator) some(add func()) {
	for range g.IntN(3) {
		add()
	}
}

func (g generator) schema(depth int) any {
	switch {
	case depth == 0:
		return map[string]any{"type": g.pick("string", "integer", "boolean", "object", "null")}
	case g.IntN(12) == 0:
		return g.pick(true, map[string]any{})
	}
	s := map[string]any{}
	switch g.IntN(4) {
	case 0:
		g.scalar(s)
	case 1:
		g.list(s, depth)
	default:
		g.object(s, depth)
	}
	if g.IntN(5) == 0 {
		delete(s, "type")
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if g.IntN(4) == 0 {
			s[keyword] = []any{g.schema(depth - 1), g.schema(depth - 1)}
		}
	}
	if g.IntN(8) == 0 {
		s["not"] = g.schema(depth - 1)
	}
	return s
}

func (g generator) scalar(s map[string]any) {
	s["type"] = g.pick("string", "integer", "number", "boolean", []any{"string", "null"}, []any{"integer", "string"}, []any{"boolean", "number"})
	g.some(func() { s["minimum"] = g.pick(0, 1, 2, -0.5, 0.5) })
	g.some(func() { s["exclusiveMinimum"] = g.pick(0, -1, -0.5, 0.5) })
	g.some(func() { s["exclusiveMaximum"] = g.pick(1, 2, 3, 1.5, 0.5) })
	if g.IntN(5) == 0 {
		s["multipleOf"] = g.pick(1, 2, 0.5, 1.5)
	}
	g.some(func() { s["pattern"] = g.pick("^a", "b$", ".") })
	g.some(func() { s["maxLength"] = g.IntN(3) })
	if g.IntN(3) == 0 {
		s["enum"] = []any{g.pick("a", "b", 1), g.pick(nil, true, 2, "ab"), g.pick(1.5, "c", 0)}
	}
	if g.IntN(6) == 0 {
		s["const"] = g.pick("a", 1, true)
	}
}

func (g generator) list(s map[string]any, depth int) {
	s["type"] = g.pick("array", []any{"array", "null"})
	g.some(func() { s["items"] = g.schema(depth - 1) })
	g.some(func() { s["minItems"] = g.IntN(2) })
	g.some(func() { s["maxItems"] = 1 + g.IntN(2) })
	if g.IntN(5) == 0 {
		s["uniqueItems"] = true
	}
}

func (g generator) object(s map[string]any, depth int) {
	s["type"] = "object"
	properties := map[string]any{}
	g.some(func() { properties[g.key()] = g.schema(depth - 1) })
	g.some(func() { properties[g.key()] = g.schema(depth - 1) })
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if g.IntN(3) == 0 {
		s["required"] = []any{g.key()}
	}
	switch g.IntN(5) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = g.schema(depth - 1)
	}
	switch g.IntN(8) {
	case 0:
		s["minProperties"] = g.IntN(2)
	case 1:
		s["maxProperties"] = 1 + g.IntN(2)
	case 2:
		s["patternProperties"] = map[string]any{g.pick("^a", "b$").(string): g.schema(depth - 1)}
	case 3:
		s["dependencies"] = map[string]any{g.key(): []any{g.key()}}
	case 4:
		s["if"], s["then"] = g.schema(depth-1), g.schema(depth-1)
	}
}

func (g generator) value(depth int) any {
	n := 8
	if depth == 0 {
		n = 4
	}
	switch g.IntN(n) {
	case 0:
		return g.pick("a", "b", "ab", "c", "")
	case 1:
		return int64(g.IntN(4))
	case 2:
		return g.pick(true, false, 1.5, 0.5)
	case 3:
		return g.pick(nil, "a", int64(1))
	case 4:
		list := []any{}
		g.some(func() { list = append(list, g.value(depth-1)) })
		return list
	default:
		object := map[string]any{}
		g.some(func() { object[g.key()] = g.value(depth - 1) })
		g.some(func() { object[g.key()] = g.value(depth - 1) })
		return object
	}
}
