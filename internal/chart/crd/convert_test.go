package crd

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestConvert_Constructs(t *testing.T) {
	for _, c := range constructs(t) {
		t.Run(c.Name, func(t *testing.T) {
			spec, warnings := c.convert(t)
			got, err := json.Marshal(spec.Properties["v"])
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(decode(t, c.Want), decode(t, got)) {
				t.Errorf("got  %s\nwant %s", got, c.Want)
			}
			var lost, gone []string
			for _, w := range warnings {
				text := w.Path + ": " + w.Lost
				if w.Checked {
					lost = append(lost, text)
				} else {
					gone = append(gone, text)
				}
			}
			if !reflect.DeepEqual(lost, c.Lost) || !reflect.DeepEqual(gone, c.Gone) {
				t.Errorf("got lost %q and gone %q, want %q and %q", lost, gone, c.Lost, c.Gone)
			}
			root := object("", props{"spec": spec})
			if err := validate(&root); err != nil {
				t.Errorf("the schema is not structural: %v", err)
			}
			if c.NoHelm {
				return
			}
			validate := c.validator(t)
			for _, value := range c.Valid {
				if err := validate(value); err != nil {
					t.Errorf("Helm rejects %s: %v", value, err)
				}
			}
			for _, value := range c.Invalid {
				if validate(value) == nil {
					t.Errorf("Helm accepts %s", value)
				}
			}
		})
	}
}

// The result must not depend on the iteration order of maps.
func TestConvert_IsDeterministic(t *testing.T) {
	for _, c := range constructs(t) {
		first, firstWarnings := c.convert(t)
		for range 5 {
			again, warnings := c.convert(t)
			if !reflect.DeepEqual(first, again) || !reflect.DeepEqual(firstWarnings, warnings) {
				t.Fatalf("%s: two conversions differ", c.Name)
			}
		}
	}
}

func TestConvert_Root(t *testing.T) {
	kept := map[string]string{"global": "Shared.", "redis": "Values of the subchart redis."}
	for name, tc := range map[string]struct {
		schema, defaults string
		want             string
	}{
		"true": {
			schema: `true`,
			want: `{"description": "Values of the chart. Omitted values default to those of the chart.", "type": "object", "nullable": true,
				"x-kubernetes-preserve-unknown-fields": true}`,
		},
		"no type": {
			schema: `{"description": "All.", "properties": {"a": {"type": "string"}}}`,
			want: `{"description": "All.", "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true,
				"properties": {"a": {"type": "string", "nullable": true}}}`,
		},
		"closed keeps keys of Helm": {
			schema: `{"description": "All.", "type": "object", "additionalProperties": false, "properties": {"redis": {"type": "boolean"}}}`,
			want: `{"description": "All.", "type": "object", "nullable": true, "properties": {
				"global": {"description": "Shared.", "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true},
				"redis": {"type": "boolean", "nullable": true}}}`,
		},
		"required without a default": {
			schema:   `{"description": "All.", "type": "object", "required": ["a", "b"]}`,
			defaults: `{"a": 1}`,
			want:     `{"description": "All.", "type": "object", "required": ["b"], "x-kubernetes-preserve-unknown-fields": true}`,
		},
		"$ref at the root": {
			schema: `{"$ref": "#/$defs/root", "$defs": {"root": {"description": "All.", "type": "object"}}}`,
			want:   `{"description": "All.", "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var defaults map[string]any
			if tc.defaults != "" {
				defaults, _ = decode(t, json.RawMessage(tc.defaults)).(map[string]any)
			}
			spec, _, err := convertSpec([]byte(tc.schema), defaults, kept)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(decode(t, json.RawMessage(tc.want)), decode(t, got)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Each inlined reference copies its target. Without a limit, a schema of thirty definitions
// would exhaust the memory.
func TestConvert_LimitsSize(t *testing.T) {
	var defs []string
	for i := range 30 {
		ref := fmt.Sprintf(`{"$ref": "#/$defs/d%d"}`, i+1)
		defs = append(defs, fmt.Sprintf(`"d%d": {"type": "object", "properties": {"a": %s, "b": %s}}`, i, ref, ref))
	}
	defs = append(defs, `"d30": {"type": "string"}`)
	schema := fmt.Sprintf(`{"$ref": "#/$defs/d0", "$defs": {%s}}`, strings.Join(defs, ","))
	spec, warnings, err := convertSpec([]byte(schema), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 1<<20 {
		t.Errorf("the schema has %d bytes, which exceeds the limit of etcd", len(data))
	}
	if len(warnings) == 0 || !strings.Contains(warnings[0].String(), "too large") {
		t.Errorf("got warnings %v, want one that the schema is too large", warnings[:min(len(warnings), 1)])
	}
	root := object("", props{"spec": spec})
	if err := validate(&root); err != nil {
		t.Error(err)
	}
}

func TestConvert_RejectsInvalidJSON(t *testing.T) {
	if _, _, err := convertSpec([]byte("{"), nil, nil); err == nil {
		t.Error("got no error for invalid JSON")
	}
}
