package crd

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// node is one JSON Schema object. It may be part of the document, which never
// changes once it is parsed; what resolve returns is a copy.
type node = map[string]any

// document is a whole values.schema.json.
type document struct {
	root any
	// siblings tells that keywords beside a $ref count, as they do since draft
	// 2019-09, which is also what a schema without $schema is read as.
	siblings bool
	// loops remembers of references whether they contain themselves.
	loops map[string]bool
}

func parse(data []byte) (document, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	// Large numbers in an enum stay what they are.
	decoder.UseNumber()
	doc := document{siblings: true, loops: map[string]bool{}}
	if err := decoder.Decode(&doc.root); err != nil {
		return doc, err
	}
	if root, ok := doc.root.(node); ok {
		draft, _ := root["$schema"].(string)
		doc.siblings = !strings.Contains(draft, "json-schema.org/draft-0")
		id := "$id"
		if strings.Contains(draft, "json-schema.org/draft-04") {
			id = "id"
		}
		settle(root, id, doc.siblings)
	}
	return doc, nil
}

// lookup follows a $ref inside the document, which is a JSON pointer.
func (d document) lookup(ref string) (any, bool) {
	fragment, isLocal := strings.CutPrefix(ref, "#")
	if !isLocal {
		return nil, false
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, false
	}
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		return nil, false
	}
	at := d.root
	for token := range strings.SplitSeq(strings.TrimPrefix(fragment, "/"), "/") {
		if fragment == "" {
			break
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch in := at.(type) {
		case node:
			next, found := in[token]
			if !found {
				return nil, false
			}
			at = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			at = in[i]
		default:
			return nil, false
		}
	}
	return at, true
}

// recursive tells whether what a $ref leads to leads there again.
func (d document) recursive(ref string) bool {
	if _, known := d.loops[ref]; !known {
		target, _ := d.lookup(ref)
		d.loops[ref] = d.leadsTo(target, ref, map[string]bool{})
	}
	return d.loops[ref]
}

// leadsTo tells whether a schema has a $ref in it, at any depth. Those in seen
// were followed already.
func (d document) leadsTo(schema any, ref string, seen map[string]bool) bool {
	switch s := schema.(type) {
	case []any:
		return slices.ContainsFunc(s, func(item any) bool { return d.leadsTo(item, ref, seen) })
	case node:
		if next, ok := s["$ref"].(string); ok && !seen[next] {
			seen[next] = true
			target, _ := d.lookup(next)
			if next == ref || d.leadsTo(target, ref, seen) {
				return true
			}
		}
		for _, inner := range s {
			if d.leadsTo(inner, ref, seen) {
				return true
			}
		}
	}
	return false
}

// normalize brings older spellings to the newest: const becomes an enum of one,
// and draft 4's exclusive limits, booleans beside the limit, become numbers.
func normalize(n node) node {
	n = maps.Clone(n)
	if value, ok := n["const"]; ok {
		n["enum"] = []any{value}
		delete(n, "const")
	}
	for exclusive, limit := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if is, isBool := n[exclusive].(bool); isBool {
			delete(n, exclusive)
			if value, ok := n[limit]; is && ok {
				n[exclusive] = value
				delete(n, limit)
			}
		}
	}
	return n
}

// assertedFormats holds the formats that Helm checks in drafts that want it.
var assertedFormats = []string{
	"date", "date-time", "time", "duration", "period", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference",
	"json-pointer", "regex", "relative-json-pointer", "semver", "uri", "uri-reference", "uri-template", "uuid",
}

// asserts tells whether Helm checks a format. Since draft 2019-09 formats are
// remarks.
func (d document) asserts(format string) bool {
	return !d.siblings && slices.Contains(assertedFormats, format)
}

func isTrue(schema any) bool {
	is, ok := schema.(bool)
	return ok && is
}

func isFalse(schema any) bool {
	is, ok := schema.(bool)
	return ok && !is
}
