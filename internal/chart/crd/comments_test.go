package crd

import (
	"strings"
	"testing"
)

func TestProse_ExtractsDescription(t *testing.T) {
	for name, test := range map[string]struct{ comment, want string }{
		"one line":                   {"# How many", "How many"},
		"two lines":                  {"# How many\n# there are", "How many there are"},
		"several #":                  {"## How many", "How many"},
		"separator lines":            {"#######\n## How many\n#######", "How many"},
		"no text":                    {"#", ""},
		"helm-docs":                  {"# not this\n# -- How many\n# there are\n# @default -- some", "How many there are"},
		"helm-docs with a type":      {"# -- (int) How many", "How many"},
		"helm-docs, text below":      {"# --\n# How many", "How many"},
		"parentheses are not a type": {"# (how many)", "(how many)"},
		"tool marks":                 {"# @ignored\n# How many\n# @section -- Pods", "How many"},
		"a schema in the comment":    {"# @schema\n# type: integer\n# minimum: 1\n# @schema\n# How many", "How many"},
		"an example":                 {"# Where they run. For example:\n# nodes:\n#   - a\n#   - b", "Where they run."},
		"an example on its own":      {"# nodes: []", ""},
		"an example first":           {"# cpu: 1\n# How much", "How much"},
		"an indented example":        {"# How much\n#   limits:\n#     cpu: 1\n# and why", "How much and why"},
		"an example of items":        {"# Those that may\n# - name: a\n#   id: 1", "Those that may"},
		"an example of a variable":   {"# What is set\n# LOG_LEVEL: debug", "What is set"},
		"an example in a fence":      {"# What is set, as in\n# ```\n# Any: thing\n# ```\n# here", "What is set, as in here"},
		"prose with colons":          {"# Note: not too many\n# Warning: none is fine", "Note: not too many Warning: none is fine"},
		"a URL":                      {"# See https://example.com/a", "See https://example.com/a"},
		"a reference":                {"# ref: https://example.com\n# How many", "How many"},
		"choices":                    {"# One of:\n# - Always\n# - Never", "One of: - Always - Never"},
		"boilerplate":                {"# Default values for web.\n# This is a YAML-formatted file.\n# How many", "How many"},
		"too long":                   {"# " + strings.Repeat("many ", 300), strings.TrimSpace(strings.Repeat("many ", 200)) + " …"},
		"one word too long":          {"# " + strings.Repeat("m", 1100), ""},
	} {
		if got := prose(strings.Split(test.comment, "\n")); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
