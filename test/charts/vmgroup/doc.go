// Package vmgroup tests charts/vmgroup: the rendered objects, and the script,
// with a stub of govc that stores its machines in files, and with govc itself
// against vSphere's simulator vcsim. make check builds both next to
// $CHARTWRIGHT_BINARY; without that variable, they must be installed.
package vmgroup
