// Package lint finds what is wrong with a chart, and above all what is harmless
// under a person's `helm install` and is not under an operator, which renders
// again with every edit and serves many custom resources by one chart.
//
// Rules lists what is looked for; Run looks. There are three kinds of evidence:
//
//   - the syntax of the templates (calls.go), for functions whose results
//     differ from one revision to the next, and for what is read elsewhere;
//   - renders for several releases (renders.go), for objects that two custom
//     resources would share, that are not allowed, or that stay behind;
//   - what others say: Helm's own lint, the CRD and the rights that are derived
//     from the chart.
//
// Each finding names a file and a line, where there is one, and its rule says
// why it matters and what to do. A chart silences rules (silence.go) where its
// author knows better.
package lint
