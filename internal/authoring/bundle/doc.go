// Package bundle creates bundles in the format registry+v1. The Operator Lifecycle
// Manager (OLM) installs operators from bundles.
//
// Build runs kustomize in config/manifests. Make converts the objects into the files of
// a bundle. It is deterministic: equal inputs result in equal files.
//
//	objects.go        Build, and the objects sorted by their kind
//	bundle.go         Make: manifests/*.yaml, metadata/annotations.yaml,
//	                  tests/scorecard/config.yaml, bundle.Dockerfile
//	csv.go            manifests/<name>.clusterserviceversion.yaml
//	permissions.go    its permissions: the rules of the deployments' service accounts
//	descriptors.go    its descriptors: how consoles show the fields of a kind
//	check.go          validation of what OLM would reject
//
// The author of the project maintains the ClusterServiceVersion in
// config/manifests/bases. Make preserves its fields and adds the others.
//
// The package does not use the types of OLM's API: it only writes few of their fields,
// and does not change the fields in the base.
package bundle
