package crd

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"

	"github.com/chartwright/chartwright/internal/chart/references"
)

// node is one JSON Schema object. A node of the document must not be changed;
// resolve returns a copy.
type node = map[string]any

// jsonSchema is a whole values.schema.json.
type jsonSchema struct {
	root any
	// siblings is true if keywords next to a $ref apply: since draft 2019-09, and in
	// schemas without $schema.
	siblings bool
	// loops caches whether references are recursive.
	loops map[string]bool
}

func parse(data []byte) (jsonSchema, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	// Large numbers in an enum remain exact.
	decoder.UseNumber()
	doc := jsonSchema{siblings: true, loops: map[string]bool{}}
	if err := decoder.Decode(&doc.root); err != nil {
		return doc, err
	}
	if root, ok := doc.root.(node); ok {
		doc.siblings = references.Siblings(root)
		references.Settle(root)
	}
	return doc, nil
}

// lookup returns the schema that a $ref within the document points to. The $ref is a
// JSON pointer.
func (d jsonSchema) lookup(ref string) (any, bool) {
	fragment, isLocal := strings.CutPrefix(ref, "#")
	if !isLocal {
		return nil, false
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, false
	}
	pointer, err := jsonpointer.New(fragment)
	if err != nil {
		return nil, false
	}
	target, _, err := pointer.Get(d.root)
	return target, err == nil
}

// recursive reports whether the target of a $ref refers to itself, directly or not.
func (d jsonSchema) recursive(ref string) bool {
	if _, known := d.loops[ref]; !known {
		target, _ := d.lookup(ref)
		d.loops[ref] = d.leadsTo(target, ref, map[string]bool{})
	}
	return d.loops[ref]
}

// leadsTo reports whether a schema contains a $ref at any depth, or refers to a schema
// that does. References in seen were already followed.
func (d jsonSchema) leadsTo(schema any, ref string, seen map[string]bool) bool {
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

// normalize converts a const to an enum of one value, and the boolean exclusive limits
// of draft 4 to numbers.
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

// assertedFormats holds the formats that Helm checks in drafts before 2019-09.
var assertedFormats = []string{
	"date", "date-time", "time", "duration", "period", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference",
	"json-pointer", "regex", "relative-json-pointer", "semver", "uri", "uri-reference", "uri-template", "uuid",
}

// asserts reports whether Helm checks a format. Since draft 2019-09, formats are only
// annotations.
func (d jsonSchema) asserts(format string) bool {
	return !d.siblings && slices.Contains(assertedFormats, format)
}

func isTrue(schema any) bool { return schema == any(true) }

func isFalse(schema any) bool { return schema == any(false) }
