// Package render executes chart templates as Helm's engine does, within limits:
// what one custom resource asks for costs the others nothing.
//
// A template of text/template cannot be ended from outside, and Helm's engine
// has no place for a check. So this is an engine of its own: it has text/template
// execute the same templates, with the same functions and the same results.
// internal/helm holds them against Helm's, for charts, snippets and templates
// that are drawn at random.
//
// Where to start: New makes a Renderer (render.go), Parse makes a Set of files
// (parse.go), and Renderer.Files renders it. What is added to text/template:
//
//   - Calls of ours stand in the parsed trees (instrument.go, passed.go): before
//     each turn of a range and around each template that is called, around what
//     an action writes and a range walks through, around methods that make a
//     text or a map. A tree of many actions within each other counts as deep.
//   - Every function takes a step (wrap.go). Steps are counted, and now and then
//     the clock and the context are looked at (budget.go). A long text is worth
//     more steps.
//   - Functions that make much of little (until, repeat, printf, …) say before
//     what they will make, and regular expressions how large they are
//     (guards.go, patterns.go).
//   - Functions that look into values (toYaml, print, …) are told before how
//     much that is (weigh.go): a few calls of list can make a value that is small
//     in memory and fills it when it is written, and one that contains itself
//     overflows the stack, which nobody can recover from. Most functions do so in
//     their errors: int, dict and eq, too (compare.go). So every function that
//     takes any value has it weighed, but those in the list shallow.
//   - What is read (as a template, YAML, JSON or TOML) is counted by what it may
//     become, with what aliases stand for (package boundedyaml).
//   - What is written and what functions return is added up.
//   - How deeply templates call each other is limited.
//
// A render that grows large waits until it is the only large one of the
// process. So the cost of all is that of one large and some small ones.
//
// To guard something more, write the template that gets round it into
// evasions_test.go first. Give functions that sprig or Helm add a guard, or a
// place in shallow where they look into nothing; methods of values that stand in
// templates are in the list makers.
package render
