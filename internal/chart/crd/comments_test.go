package crd

import (
	"strings"
	"testing"
)

func TestProse(t *testing.T) {
	for name, test := range map[string]struct{ comment, want string }{
		"a line":                        {"# How many", "How many"},
		"two lines":                     {"# How many\n# there are", "How many there are"},
		"many signs":                    {"## How many", "How many"},
		"a line for the eye":            {"#######\n## How many\n#######", "How many"},
		"nothing":                       {"#", ""},
		"helm-docs":                     {"# not this\n# -- How many\n# there are\n# @default -- some", "How many there are"},
		"helm-docs with a type":         {"# -- (int) How many", "How many"},
		"helm-docs, text below":         {"# --\n# How many", "How many"},
		"words in brackets are no type": {"# (how many)", "(how many)"},
		"marks for tools":               {"# @ignored\n# How many\n# @section -- Pods", "How many"},
		"a schema in the comment":       {"# @schema\n# type: integer\n# minimum: 1\n# @schema\n# How many", "How many"},
		"an example":                    {"# Where they run. For example:\n# nodes:\n#   - a\n#   - b", "Where they run."},
		"an example on its own":         {"# nodes: []", ""},
		"an example first":              {"# cpu: 1\n# How much", "How much"},
		"an example deeper":             {"# How much\n#   limits:\n#     cpu: 1\n# and no more", "How much and no more"},
		"an example of items":           {"# Those that may\n# - name: a\n#   id: 1", "Those that may"},
		"an example of a variable":      {"# What is set\n# LOG_LEVEL: debug", "What is set"},
		"an example in a fence":         {"# What is set, as in\n# ```\n# Any: thing\n# ```\n# here", "What is set, as in here"},
		"words with colons":             {"# Note: not too many\n# Warning: none is fine", "Note: not too many Warning: none is fine"},
		"an address":                    {"# See https://example.com/a", "See https://example.com/a"},
		"a reference":                   {"# ref: https://example.com\n# How many", "How many"},
		"choices":                       {"# One of:\n# - Always\n# - Never", "One of: - Always - Never"},
		"boilerplate":                   {"# Default values for web.\n# This is a YAML-formatted file.\n# How many", "How many"},
		"too long":                      {"# " + strings.Repeat("many ", 300), strings.TrimSpace(strings.Repeat("many ", 200)) + " …"},
		"too long a word":               {"# " + strings.Repeat("m", 1100), ""},
	} {
		if got := prose(strings.Split(test.comment, "\n")); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
