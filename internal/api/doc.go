// Package api holds the names that users of Chartwright see. Every other package
// uses these names, and this package imports apimachinery only, so that every
// other package may import it.
//
//   - labels.go: the domain, finalizers, field managers and labels.
//   - annotations.go: the annotations that users set, and those on managed resources.
//   - operatorsdk.go: the names of the operator-sdk's Helm operator that are still
//     honored.
//   - conditions.go: condition types and reasons, and event reasons.
//   - status.go: the status of a custom resource.
//   - version.go: the version of this build.
//
// Package annotations parses the annotations of a custom resource.
package api
