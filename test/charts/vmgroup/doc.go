// Package vmgroup tests charts/vmgroup: what it renders, and its script, by a
// stub of govc that keeps its machines in files, and with govc itself against
// vSphere's simulator vcsim where both are installed.
package vmgroup
