// Package bundle makes bundles for the Operator Lifecycle Manager (OLM), in the
// format registry+v1, from which OLM installs an operator.
//
// Build reads config/manifests by kustomize. Make turns its objects into the
// files of a bundle, and is pure: equal inputs give equal files.
//
//	objects.go        Build, and the objects sorted by their kind
//	bundle.go         Make: manifests/*.yaml, metadata/annotations.yaml,
//	                  tests/scorecard/config.yaml, bundle.Dockerfile
//	csv.go            manifests/<name>.clusterserviceversion.yaml
//	permissions.go    its permissions: the rules of the deployments' accounts
//	descriptors.go    its descriptors: how consoles show the fields of a kind
//	check.go          everything that OLM would refuse, by the path of the field
//
// The ClusterServiceVersion in config/manifests/bases is written by the project's
// author. Make keeps its fields and adds the rest.
//
// The types of OLM's own API are not used: few of their fields are written here,
// and what the author writes in the base is passed through unchanged.
package bundle
