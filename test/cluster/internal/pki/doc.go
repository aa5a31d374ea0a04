// Package pki makes the keys and certificates of one local cluster.
//
// They are made anew for every cluster and live as long as its folder, so
// there is nothing to renew, nothing to share and nothing worth stealing.
package pki
