// Package vmgroup tests charts/vmgroup: the rendered objects, and the script,
// with a stub of govc that stores its machines in files, and with govc itself
// against vSphere's simulator vcsim if both are installed.
package vmgroup
