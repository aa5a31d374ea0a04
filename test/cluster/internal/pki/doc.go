// Package pki creates the keys and certificates of one local cluster.
//
// Each cluster has new certificates, which are valid as long as its folder
// exists, so that nothing has to be renewed or shared.
package pki
