package crd

import (
	"cmp"
	"fmt"
	"slices"
)

// Warning tells what of a chart's schema the API server does not check.
type Warning struct {
	// Path is the place in the custom resource, as spec.image.tag; items of
	// a list are "[*]" and entries of a map "*".
	Path string
	// Lost is the keyword, and what about it, that could not be expressed.
	Lost string
	// Checked tells whether Helm checks it all the same, before it renders.
	// Such a fault is reported in the status and not by kubectl apply.
	Checked bool
}

// String formats the warning for people.
func (w Warning) String() string {
	if w.Checked {
		return fmt.Sprintf("%s: %s: not checked by the API server, but by Helm before it renders", w.Path, w.Lost)
	}
	return fmt.Sprintf("%s: %s: checked by nobody", w.Path, w.Lost)
}

// sortWarnings puts the warnings in order and drops what is said twice.
func sortWarnings(warnings []Warning) []Warning {
	slices.SortFunc(warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Lost, b.Lost))
	})
	return slices.Compact(warnings)
}
