// Package bundle makes bundles for the Operator Lifecycle Manager (OLM): what it
// installs an operator from, in the format registry+v1.
//
// Build reads config/manifests by kustomize. Make turns what that holds into the
// files of a bundle, and is pure: equal inputs give equal files.
//
//	manifests/<name>.clusterserviceversion.yaml   csv.go
//	manifests/*.yaml                              the definitions, and objects beside them
//	metadata/annotations.yaml                     metadata.go
//	tests/scorecard/config.yaml                   config/scorecard, as it is
//	bundle.Dockerfile                             metadata.go
//
// The ClusterServiceVersion is the one of config/manifests/bases, which is a
// person's, with what follows from the rest: the deployments, the rights of
// their accounts (rights.go), of each kind the descriptors (descriptors.go), an
// example, and what that is made of (examples.go). What OLM would refuse is told
// here already (check.go), by the path of the field.
//
// The types of OLM's own API are not used. What is written of them here is few
// fields, and what a person writes in the base goes through as it is.
package bundle
