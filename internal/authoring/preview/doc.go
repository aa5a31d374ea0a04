// Package preview renders custom resources without a cluster, as the operator
// would, and reports whether the API server and the operator would accept them.
//
// File.Parse (file.go) reads files with custom resources, and with the Secrets
// and ConfigMaps of their values. File.Render (preview.go) runs the steps of the
// operator: admission by the kind's CRD, the values, and Helm's render. It uses
// the operator's own code. Only the cluster is missing: a lookup finds nothing,
// and every render is a first install.
package preview
