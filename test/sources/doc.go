// Package sources tests internal/chart/source, and the commands that use it, with a real
// OCI registry and a real chart repository.
package sources
