package stubs

var (
	serverOf16 = answer{When: "server_version_num", Say: "160009\n"}
	serverOf18 = answer{When: "server_version_num", Say: "180001\n"}
	noServer   = answer{When: "server_version_num", Exit: down}
)

var upgradeRuns = []run{
	{name: "an image of the same version", script: "check.sh", wantText: []string{"nothing to do"}},
	{name: "an image of a later version", script: "check.sh", answers: []answer{serverOf16}, wantText: []string{"PostgreSQL 16 can become PostgreSQL 17"}},
	{name: "an image of a later version after an upgrade", script: "check.sh", files: files("peer-0/restore", "done\n"), answers: []answer{serverOf16}, wantText: []string{"can become"}},
	{
		name: "a later version that is refused", script: "check.sh", env: []string{"MAJOR_UPGRADE=Refuse"}, answers: []answer{serverOf16},
		fails: true, wantText: []string{"majorUpgrade is Refuse"},
	},
	{
		name: "a later version whose dump would lack a database", script: "upgrade.sh", answers: []answer{serverOf16, {When: "WHERE NOT datallowconn", Say: "archive\n"}},
		fails: true, wantText: []string{"no connections are allowed to: archive"}, never: []string{"text=locked", "pg_dumpall"},
	},
	{
		name: "a later version of an older patch release", script: "check.sh",
		answers: []answer{serverOf16, {When: "pg_dump -w --schema-only", Say: "ALTER TABLE ONLY public.t ALTER COLUMN a SET (n_distinct=5, pg_attver=26457032);\nCREATE VIEW v;\n"}},
		fails:   true, wantText: []string{"use the newest patch release of PostgreSQL 17"}, never: []string{"text="},
	},
	{name: "an image of an earlier version", script: "check.sh", files: files("peer-0/restore", "restored upgrade/17-18-x\n"), answers: []answer{serverOf18}, fails: true, wantText: []string{"cannot read it"}},
	{name: "an earlier version before the restore", script: "check.sh", files: files("peer-0/restore", "upgrade/17-18-x\n"), answers: []answer{serverOf18}, wantText: []string{"going back"}},
	{
		name: "another upgrade before the restore", script: "check.sh", files: files("peer-0/restore", "upgrade/15-16-x\n"), answers: []answer{serverOf16},
		fails: true, wantText: []string{"is not finished"},
	},
	{name: "no server to query", script: "check.sh", answers: []answer{noServer}, wantText: []string{"its version is unknown"}},
	{name: "no server for a snapshot", script: "check.sh", args: []string{"answers"}, answers: []answer{noServer}, fails: true, wantText: []string{"snapshotOnDelete"}},
	{name: "a server for a snapshot", script: "check.sh", args: []string{"answers"}, answers: []answer{serverOf16}, wantText: []string{"PostgreSQL 16 answers"}},
	{name: "a rollback", script: "check.sh", args: []string{"rollback"}, wantText: []string{"nothing to do", "pod 0 is the primary"}, never: []string{"text=", "pg_promote"}},
	{
		name: "a rollback that is refused", script: "check.sh", args: []string{"rollback"}, env: []string{"PRIMARY=1"}, files: files("peer-1/role", "t"), answers: []answer{serverOf18},
		fails: true, wantText: []string{"cannot read it"}, never: []string{"text=", "pg_promote"},
	},
	{
		name: "a rollback to another primary", script: "check.sh", args: []string{"rollback"}, env: []string{"PRIMARY=1", "PGHOST=peer-1"}, files: files("peer-1/role", "t"),
		wantText: []string{"pod 0 is no longer the primary", "pod 1 is the primary"}, leaves: files("peer-1/role", "f\n"),
	},
	{
		name: "a rollback without a server", script: "check.sh", args: []string{"rollback"}, answers: []answer{{When: "psql", Exit: down}},
		wantText: []string{"its version is unknown", "no primary answers: nothing to switch"}, never: []string{"text=", "pg_promote"},
	},
	{
		name: "a rollback while only another primary answers", script: "check.sh", args: []string{"rollback"}, files: files("peer-1/role", "f\n"), answers: []answer{noOld},
		fails: true, wantText: []string{"the server of pod 0 does not answer, so it cannot become the primary"}, never: []string{"text=", "pg_promote"},
	},

	{name: "no upgrade", script: "upgrade.sh", wantText: []string{"nothing to upgrade"}, never: []string{"text=", "pg_dumpall"}},
	{name: "no server to upgrade", script: "upgrade.sh", answers: []answer{noServer}, wantText: []string{"nothing to upgrade"}},
	{
		name: "going back", script: "upgrade.sh", files: files("peer-0/restore", "upgrade/17-18-x\n", "peer-0/access", "closed\n"), answers: []answer{serverOf18},
		never: []string{"text=", "pg_dumpall"},
	},
	{
		name: "an upgrade", script: "upgrade.sh", files: files("backups/upgrade/14-16-x/roles.sql", "x"), answers: []answer{serverOf16},
		calls:  []string{"text=locked", "pg_reload_conf", "pg_terminate_backend", "pg_dumpall", "pg_dump", "file=upgrade -v text=17 upgrade/16-17-"},
		leaves: files("peer-0/access", "locked\n", "backups/upgrade/14-16-x", "", "backups/upgrade/*/oid-7.dump", "17\n"),
	},
	{
		name: "an upgrade whose dump fails", script: "upgrade.sh", files: files("backups/upgrade/14-16-x/roles.sql", "x"), answers: []answer{serverOf16, fails},
		fails: true, wantText: []string{"accepts no connections", "accepts connections of applications again"}, calls: []string{"text=locked", "pg_dumpall", "file=upgrade -v text=\n", "text=open"},
		never: []string{"text=17"}, leaves: files("peer-0/access", "open\n", "backups/upgrade/14-16-x/roles.sql", "x"),
	},
	{
		name: "an upgrade that is terminated", script: "upgrade.sh", answers: []answer{serverOf16, terminated},
		fails: true, never: []string{"text=17"}, leaves: files("peer-0/access", "open\n", "peer-0/upgrade", "\n"),
	},
	{
		name: "an upgrade that cannot unlock the server", script: "upgrade.sh", answers: []answer{serverOf16, fails, {When: "file=upgrade -v text=\n", Exit: 3}},
		fails: true, wantText: []string{"could not be unlocked: the next attempt, or a rollback, unlocks it"}, leaves: files("peer-0/access", "locked\n"),
	},
	{
		name: "an upgrade whose dump cannot be recorded", script: "upgrade.sh", answers: []answer{serverOf16, {When: "text=17", Exit: 3}},
		fails: true, leaves: files("peer-0/access", "open\n", "peer-0/upgrade", "\n"),
	},
	{
		name: "an upgrade that is refused", script: "upgrade.sh", env: []string{"MAJOR_UPGRADE=Refuse"}, answers: []answer{serverOf16},
		fails: true, never: []string{"text=", "pg_dumpall"},
	},
	{
		name: "an upgrade of an empty volume", script: "upgrade.sh", files: with(newData), answers: []answer{serverOf16},
		fails: true, wantText: []string{"would replace good backups"}, never: []string{"text=", "pg_dumpall"},
	},
	{
		name: "an upgrade without a claim", script: "upgrade.sh", env: []string{"BACKUPS=/nonexistent"}, answers: []answer{serverOf16},
		fails: true, wantText: []string{"needs the claim for backups"}, never: []string{"text="},
	},
}
