// Package database tests charts/database: the rendered objects, and the scripts
// with a real PostgreSQL if it is installed.
//
// Tests of an upgrade to another major version need two versions of PostgreSQL.
// $CHARTWRIGHT_OLD_POSTGRES is the folder with the programs of the older one:
// initdb, pg_ctl and postgres. Without it, only the tests in stubs cover the
// upgrade.
package database
