// Package database tests charts/database: what it renders, and its scripts with
// PostgreSQL itself where that is installed.
//
// An upgrade across major versions takes two of them. The older one's programs
// are those in the folder that $CHARTWRIGHT_OLD_POSTGRES names: initdb, pg_ctl
// and postgres. Without it, the tests in stubs alone show the upgrade.
package database
