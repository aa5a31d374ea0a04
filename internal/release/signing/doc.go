// Package signing signs the content of release records with a secret key, and
// verifies the signatures.
//
// A release record is a Secret in the namespace of its release, so that everyone
// with write access to Secrets there can change it. The operator acts on a
// record's content only if the operator itself has signed that content.
package signing
