// Package signingkey manages the key that signs release records. The key is in a
// Secret beside the leader election lease.
package signingkey
