// Package watches reads watches.yaml, the file that binds kinds to charts.
//
// The file is a list; each entry names a group, version and kind and the chart
// that serves it:
//
//   - group: app.example.com
//     version: v1alpha1
//     kind: PodSet
//     chart: charts/podset
//
// Parsing is strict: a key that is not known, a field that is missing, a kind
// that appears twice are problems, and all of them are reported at once, each
// with its file and line. The keys of the operator-sdk's Helm operator are
// accepted by their names, and an entry that was written for it allows what was
// never refused there, see OperatorSDKStyle.
package watches
