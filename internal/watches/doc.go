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
// Parsing is strict: unknown keys, missing fields and duplicate kinds are errors. Parse
// reports all errors at once, each with its file and line. It accepts the keys of the
// operator-sdk's Helm operator. An entry that was written for that operator allows everything
// that the operator allowed, see OperatorSDKStyle.
package watches
