// Package preview renders custom resources like the operator, but without a cluster, and
// reports whether the API server and the operator would accept them.
//
// File.Parse (file.go) reads files with custom resources, and with the Secrets and
// ConfigMaps of their values. File.Render (preview.go) runs the steps of the operator
// with the operator's own code: admission by the CRD, values, and Helm's render. Without
// a cluster, lookup returns nothing, and every render is a first install.
package preview
