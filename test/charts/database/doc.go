// Package database tests charts/database: the rendered objects, and the scripts
// with a real PostgreSQL if it is installed.
//
// The test of an upgrade to another major version needs the images that the
// tests with containers build, in the folder $CHARTWRIGHT_IMAGES. Without them,
// only the tests in stubs cover the upgrade.
package database
