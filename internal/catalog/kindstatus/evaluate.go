package kindstatus

import (
	"errors"
	"fmt"
	"slices"

	"github.com/chartwright/chartwright/internal/watches/expression"
)

// Result is the result of an evaluation.
type Result struct {
	// Values holds for each field its JSON value, nil for null and for a field that failed.
	// A field that is not in the map must be left unchanged: it reads values, which are not
	// available now.
	Values   map[string]any
	Failures []expression.Error
}

// Unknown returns the names of the fields that failed, or that must be left unchanged.
func (r Result) Unknown(of Fields) (names []string) {
	for _, name := range of.Names() {
		_, computed := r.Values[name]
		failed := slices.ContainsFunc(r.Failures, func(e expression.Error) bool { return e.Field == name })
		if !computed || failed {
			names = append(names, name)
		}
	}
	return names
}

// Evaluate computes all fields. A field that fails does not affect the others.
func (f Fields) Evaluate(in Input) Result {
	result := Result{Values: map[string]any{}}
	if in.Redact == nil {
		in.Redact = func(text string) string { return text }
	}
	variables := in.variables()
	left := maxStatus
	for _, field := range f {
		if field.values && in.Values == nil {
			continue
		}
		value, err := field.evaluate(in, variables, &left)
		if unread, is := errors.AsType[*ReadError](err); is {
			result.Failures = append(result.Failures, expression.Error{Field: field.name, Message: unread.Message})
		} else if err != nil {
			result.Failures = append(result.Failures, expression.Error{Field: field.name, Message: in.Redact(err.Error())})
		}
		result.Values[field.name] = value
	}
	return result
}

// evaluate subtracts the size of the result from the bytes that are left for the status.
func (f field) evaluate(in Input, variables map[string]any, left *int) (value any, err error) {
	for _, name := range f.observed {
		if why, missing := in.Unobserved[name]; missing {
			return nil, errors.New(why)
		}
	}
	// Iterating over the result can run CEL code.
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("internal error: %v", p)
		}
	}()
	given, err := expression.Evaluate(f.program, variables)
	if err != nil {
		return nil, err
	}
	if in.Sensitive {
		// A Secret holds the outputs.
		return (&encoder{left: maxResult, perValue: 1, redact: func(text string) string { return text }}).encode(given, f.shape)
	}
	e := &encoder{left: *left, perValue: statusValue, redact: in.Redact}
	value, err = e.encode(given, f.shape)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, errStatusTooLarge
	case err == nil:
		*left = e.left
	}
	return value, err
}
