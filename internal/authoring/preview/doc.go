// Package preview tells, without a cluster, what the operator would render for a
// custom resource, and whether it would be taken at all.
//
// Parse reads a file with custom resources, and with the Secrets and ConfigMaps
// that their values come from. Render takes each the way that it would go: what
// the API server does with it by the kind's CRD (admit.go), the values as the
// operator computes them, and Helm's own render. All of that is the operator's
// own code, but for the cluster: a lookup finds nothing, and every render is a
// first install.
package preview
