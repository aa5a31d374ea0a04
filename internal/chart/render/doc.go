// Package render executes chart templates as Helm's engine does, but within limits, so
// that a custom resource cannot exhaust time or memory of the operator.
//
// The package is an engine of its own, because Helm's engine has no hook for limits and
// nothing can stop a running text/template. It executes the same templates by
// text/template, with the same functions and the same results. Tests of package chart
// compare the results with Helm's, for charts, snippets and random templates.
//
// Start with New, which creates a Renderer (render.go), Parse, which parses files into a
// Set (parse.go), and Renderer.Files, which renders a Set. The engine adds to
// text/template:
//
//   - Calls of own functions in the parsed trees (instrument.go, passed.go): before each
//     iteration of a range, around each template call, around the values that actions
//     write and ranges iterate over, and around methods that create a string or a map.
//     Deeply nested actions count as nested template calls.
//   - Every function takes a step (wrap.go). The budget counts steps, and checks the clock
//     and the context from time to time (budget.go). A long string takes more steps.
//   - Functions whose results can be much larger than their arguments (until, repeat,
//     printf, …) check the size of the result in advance, and functions with regular
//     expressions the size of the compiled expression (guards.go, patterns.go).
//   - Functions that traverse values (toYaml, print, …) weigh them in advance (weigh.go).
//     A few calls of list can create a value that is small in memory and huge when
//     written, and traversing a recursive value overflows the stack, which terminates the
//     process. Most functions traverse values when they format an error, including int,
//     dict and eq (compare.go). Therefore every function that takes arbitrary values
//     weighs them, except the functions in the list shallow.
//   - A text that is parsed as a template, YAML, JSON or TOML counts by the size of its
//     possible result, with aliases replaced (package boundedyaml).
//   - The sizes of all outputs and function results are added up.
//   - The depth of nested template calls is limited.
//
// A Trace (trace.go) records which values each file reads, by further calls in the parsed
// trees (observe.go). Only the commands use it: it finds the templates that can change when
// values change.
//
// When a render becomes large, it waits until it is the only large render of the process.
// So the total cost is limited to one large render and some small ones.
//
// To add a guard, first write a template that evades the limits into evasions_test.go.
// When sprig or Helm adds a function, add a guard, or add the function to shallow if it
// does not traverse its arguments. When values in templates get new methods that create
// large results, add these to makers.
package render
