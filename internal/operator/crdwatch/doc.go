// Package crdwatch watches CustomResourceDefinitions, and installs those of the
// operator's kinds.
//
// watcher.go has the Watcher, which signals that a CRD was added, changed or
// deleted, and knows on which CRDs a user has paused the rollout of the kind's
// chart. installer.go has the Installer behind --install-crds.
package crdwatch
