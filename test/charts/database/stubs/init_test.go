package stubs

var (
	newData = []string{"peer-0/fresh", "yes\n", "peer-0/access", "closed\n"}
	backups = []string{
		"backups/scheduled/20260303T000000Z/databases.txt", "app|app\n", "backups/scheduled/20260303T000000Z/roles.sql", "CREATE ROLE app;\nALTER ROLE postgres PASSWORD 'x';\n",
	}
	dump = []string{"backups/upgrade/16-17-x/databases.txt", "postgres|postgres\noid-7|a b\n", "backups/upgrade/16-17-x/roles.sql", "", "peer-0/restore", "upgrade/16-17-x\n", "peer-0/access", "closed\n"}
)

func with(sets ...[]string) map[string]string {
	var all []string
	for _, set := range sets {
		all = append(all, set...)
	}
	return files(all...)
}

var initRuns = []run{
	{
		name: "a first configuration", script: "init.sh", env: []string{"EXTENSIONS=pg_trgm hstore", "INIT_SQL=/init/init.sql"}, files: with(newData), answers: []answer{{When: "shobj_description", Say: "0\n"}},
		calls: []string{
			"CREATE ROLE %I…ALTER ROLE :\"owner\"…CREATE DATABASE %I", "extension=pg_trgm", "extension=hstore", "file=/init/init.sql",
			"pods=3 -v primary=0…pg_drop_replication_slot", "file=fresh -v text=\n", "file=access -v text=open", "pg_reload_conf", "pg_conf_load_time", "pg_dumpall", "pg_dump",
		},
		wantText: []string{"database app was created; its owner is app", "the backup is scheduled/", "is configured"}, never: []string{"pg_restore -w"},
		leaves: files("backups/identity", "first\n", "peer-0/fresh", "\n", "peer-0/access", "open\n"),
	},
	{
		name: "already configured", script: "init.sh", files: with(backups, []string{"peer-0/access", "open\n", "peer-0/restore", "done\n"}),
		calls: []string{"CREATE DATABASE %I"}, never: []string{"SET ROLE", "pg_dumpall", "pg_restore", "text=", "vacuumdb"},
	},
	{name: "nothing is needed", script: "init.sh", args: []string{"if-needed"}, env: []string{"RESTORE_FROM=latest"}, wantText: []string{"nothing to restore"}, never: []string{"CREATE", "text="}},
	{
		name: "nothing is needed while the server is locked", script: "init.sh", args: []string{"if-needed"}, files: files("peer-0/access", "locked\n", "peer-0/upgrade", "18 x\n", "peer-0/restore", "done\n"),
		never: []string{"text="}, leaves: files("peer-0/access", "locked\n", "peer-0/upgrade", "18 x\n"),
	},
	{
		name: "a restore is needed", script: "init.sh", args: []string{"if-needed"}, env: []string{"RESTORE_FROM=latest"}, files: with(newData, backups, []string{"backups/identity", "first"}),
		wantText: []string{"restoring scheduled/20260303T000000Z"}, leaves: files("peer-0/access", "open\n"),
	},
	{
		name: "a server that starts later", script: "init.sh", answers: []answer{{When: "server_version_num", Exit: down, Times: 2}},
		wantText: []string{"waiting for peer-0 to answer as PostgreSQL 17", "is configured"}, calls: []string{"sleep", "sleep", "CREATE DATABASE"},
	},
	{
		name: "a server before its upgrade", script: "init.sh", answers: []answer{{When: "server_version_num", Say: "160009\n", Times: 2}},
		calls: []string{"sleep", "sleep", "CREATE DATABASE"},
	},
	{
		name: "a server that does not start", script: "init.sh", env: []string{"WAIT=10"}, answers: []answer{{When: "server_version_num", Exit: down}},
		fails: true, wantText: []string{"peer-0 does not answer as PostgreSQL 17: waited 10 seconds"}, never: []string{"CREATE DATABASE"},
	},
	{
		name: "a configuration that fails", script: "init.sh", files: with(newData), answers: []answer{{When: "CREATE DATABASE %I", Exit: 3}},
		fails: true, never: []string{"shobj_description"}, leaves: files("peer-0/fresh", "yes\n", "peer-0/access", "closed\n", "backups/identity", ""),
	},
	{
		name: "initial statements that fail", script: "init.sh", files: with(newData), answers: []answer{{When: "shobj_description", Say: "0\n"}, {When: "SET ROLE", Exit: 3}},
		fails: true, leaves: files("peer-0/fresh", "yes\n", "peer-0/access", "closed\n", "backups/identity", ""),
	},
	{
		name: "rules that are not loaded at once", script: "init.sh", files: with(newData), answers: []answer{{When: "pg_conf_load_time", Say: "f\n", Times: 2}},
		calls: []string{"pg_reload_conf", "pg_conf_load_time", "sleep", "pg_conf_load_time", "sleep", "pg_conf_load_time", "vacuumdb"},
	},
	{
		name: "a server that cannot be opened", script: "init.sh", files: with(newData), answers: []answer{{When: "pg_reload_conf", Exit: 3}},
		fails: true, never: []string{"pg_dumpall"}, leaves: files("peer-0/fresh", "\n"),
	},
	{
		name: "an interrupted run before the server was opened", script: "init.sh", files: with(backups, []string{"peer-0/fresh", "\n", "peer-0/access", "closed\n"}),
		never: []string{"pg_restore -w"}, leaves: files("peer-0/access", "open\n"),
	},
	{
		name: "no claim for backups", script: "init.sh", env: []string{"BACKUPS=/nonexistent"}, files: with(newData),
		never: []string{"pg_dumpall"}, leaves: files("peer-0/access", "open\n"),
	},
	{
		name: "a first backup that fails", script: "init.sh", files: with(newData), answers: []answer{{When: "pg_dumpall", Exit: 1}},
		fails: true, leaves: files("peer-0/access", "open\n", "backups/identity", "first\n", "backups/scheduled/*Z", ""),
	},
	{
		name: "only standbys after an interrupted switch", script: "init.sh", files: files("peer-0/role", "t\n", "peer-0/access", "locked\n", "peer-1/role", "t\n", "peer-2/role", "t\n"),
		calls: []string{"psql@peer-0…pg_promote", "CREATE DATABASE"}, leaves: files("peer-0/role", "f\n", "peer-0/access", "open\n"),
	},
	{
		name: "only standbys, of which one does not answer", script: "init.sh", files: files("peer-0/role", "t\n", "peer-1/role", "t\n"),
		fails: true, wantText: []string{"pod 2 was the primary and does not answer"}, never: []string{"CREATE DATABASE", "pg_promote"},
	},

	// An empty volume.
	{
		name: "a lost volume", script: "init.sh", files: with(newData, backups, []string{"backups/identity", "first"}),
		fails: true, wantText: []string{"configured before: set restoreFrom to latest"}, never: []string{"CREATE", "text="}, leaves: files("peer-0/fresh", "yes\n", "peer-0/access", "closed\n"),
	},
	{
		name: "a lost volume with restoreFrom latest", script: "init.sh", env: []string{"RESTORE_FROM=latest"}, files: with(newData, backups, []string{"backups/identity", "first"}),
		calls: []string{"pg_restore -w…--create…app.dump", "CREATE DATABASE", "file=fresh -v text=\n", "file=access -v text=open", "file=restore -v text=done", "vacuumdb"}, leaves: files("peer-0/access", "open\n"),
	},
	{
		name: "a lost volume with restoreFrom none", script: "init.sh", env: []string{"RESTORE_FROM=none"}, files: with(newData, backups, []string{"backups/identity", "first", "peer-1/role", "t"}),
		never: []string{"pg_restore -w"}, leaves: files("peer-0/access", "open\n", "peer-0/fresh", "\n"),
	},
	{
		name: "a new database with backups of an earlier one", script: "init.sh", files: with(newData, backups, []string{"backups/identity", "earlier"}),
		never: []string{"pg_restore -w"}, leaves: files("peer-0/access", "open\n", "backups/identity", "first\n"),
	},
	{
		name: "a lost volume while a standby has the data", script: "init.sh", env: []string{"RESTORE_FROM=latest"}, files: with(newData, backups, []string{"peer-2/role", "t"}),
		fails: true, wantText: []string{"pod 2 has data as a standby: set primary to 2"}, never: []string{"pg_restore -w", "text="},
	},
	{
		name: "no backup to restore", script: "init.sh", env: []string{"RESTORE_FROM=latest"}, files: with(newData),
		fails: true, wantText: []string{"the claim contains no backup"}, leaves: files("peer-0/access", "closed\n"),
	},
	{
		name: "a missing backup", script: "init.sh", env: []string{"RESTORE_FROM=final/20260101T000000Z"}, files: with(newData, backups),
		fails: true, wantText: []string{"the backup final/20260101T000000Z is not in the claim"}, leaves: files("peer-0/access", "closed\n"),
	},
	{
		name: "the latest backup of all kinds", script: "init.sh", env: []string{"RESTORE_FROM=latest"},
		files: with(newData, backups, []string{
			"backups/requested/20260404T000000Z/databases.txt", "app|app\n", "backups/requested/20260404T000000Z/roles.sql", "", "backups/final/20260101T000000Z/databases.txt", "app|app\n",
			"backups/scheduled/20260505T000000Z.partial/databases.txt", "app|app\n", "backups/upgrade/17-18-20260606T000000Z/databases.txt", "app|app\n",
		}),
		wantText: []string{"restoring requested/20260404T000000Z"},
	},

	// A restore.
	{
		name: "a dump to restore", script: "init.sh", files: with(dump),
		calls: []string{
			"psql@peer-0…-f…\n", "pg_restore -w --clean --if-exists --exit-on-error -d postgres…postgres.dump", "pg_restore -w --clean --if-exists --create…oid-7.dump",
			"file=restore -v text=restored upgrade/16-17-x", "CREATE DATABASE", "file=access -v text=open", "file=restore -v text=done", "vacuumdb",
		},
		leaves: files("peer-0/restore", "done\n", "peer-0/access", "open\n"),
	},
	{
		name: "a restore that fails", script: "init.sh", files: with(dump), answers: []answer{{When: "pg_restore", Exit: 1}},
		fails: true, never: []string{"text=", "CREATE DATABASE"}, leaves: files("peer-0/restore", "upgrade/16-17-x\n", "peer-0/access", "closed\n"),
	},
	{
		name: "a restore into new data that fails", script: "init.sh", env: []string{"RESTORE_FROM=latest"}, files: with(newData, backups), answers: []answer{{When: "pg_restore", Exit: 1}},
		fails: true, leaves: files("peer-0/fresh", "restoring scheduled/20260303T000000Z\n", "peer-0/access", "closed\n"),
	},
	{
		name: "roles that cannot be restored", script: "init.sh", files: with(dump), answers: []answer{{When: "VERBOSITY=sqlstate", Exit: 2}},
		fails: true, never: []string{"pg_restore"},
	},
	{
		name: "roles that exist", script: "init.sh", files: with(dump), answers: []answer{{When: "VERBOSITY=sqlstate", Say: "psql: ERROR:  42710\n"}},
		leaves: files("peer-0/restore", "done\n"),
	},
	{
		name: "a missing dump", script: "init.sh", files: files("peer-0/restore", "upgrade/16-17-x\n"),
		fails: true, wantText: []string{"the backup upgrade/16-17-x is not in the claim"}, never: []string{"text="},
	},
	{
		name: "restored, but closed", script: "init.sh", files: files("peer-0/restore", "restored upgrade/16-17-x\n", "peer-0/access", "closed\n"),
		calls: []string{"text=open", "text=done", "vacuumdb"}, never: []string{"pg_restore -w"}, leaves: files("peer-0/access", "open\n"),
	},
	{
		name: "no statistics", script: "init.sh", files: with(dump), answers: []answer{{When: "vacuumdb", Exit: 1}}, wantText: []string{"autovacuum will create them"},
	},
	{
		name: "an aborted upgrade", script: "init.sh", files: files("peer-0/access", "locked\n", "peer-0/upgrade", "18 x\n", "peer-0/standby.signal", "\n"),
		calls: []string{"file=upgrade -v text=\n", "rm -f standby.signal", "text=open"}, wantText: []string{"accepts connections of applications again"},
		leaves: files("peer-0/access", "open\n", "peer-0/upgrade", "\n", "peer-0/standby.signal", ""),
	},
	{
		name: "an aborted upgrade whose state file remains", script: "init.sh", files: files("peer-0/access", "locked\n"), answers: []answer{{When: "file=upgrade -v text=", Exit: 3}},
		fails: true, leaves: files("peer-0/access", "locked\n"),
	},
}
