// Package render executes chart templates as Helm's engine does, within limits:
// what one custom resource asks for costs the others nothing.
//
// A template of text/template cannot be ended from outside, and Helm's engine
// has no place for a check. So this is an engine of its own, for the same
// templates, the same functions and the same results; internal/helm holds them
// against Helm's. What it adds:
//
//   - Every body of a range, and every template that is called, begins with a
//     call of ours, which is put into the parsed tree. Every function takes a
//     step, too. Steps are counted, and now and then the clock and the context
//     are looked at. See instrument.go.
//   - Functions that make much of little (until, repeat, indent, …) say before
//     what they will make. Those that walk through values (toYaml, print, …)
//     are told before how much that is: a few calls of list can make a value
//     that is small in memory and fills it when it is written. See guards.go.
//   - What is written and what functions return is added up.
//   - How deeply templates call each other is limited, since a stack that
//     overflows ends the process.
//
// A render that grows large waits until it is the only large one of the
// process. So the cost of all is that of one large and some small ones.
package render
