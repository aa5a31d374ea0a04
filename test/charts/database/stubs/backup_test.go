package stubs

import "syscall"

var (
	fails      = answer{When: "pg_dumpall", Exit: 1}
	terminated = answer{When: "pg_dumpall", Signal: syscall.SIGTERM}
)

var backupRuns = []run{
	{
		name: "a scheduled backup", script: "backup.sh", args: []string{"scheduled"}, env: []string{"KEEP=2"},
		files: files(
			"backups/scheduled/20250101T000000Z/roles.sql", "x", "backups/scheduled/20250102T000000Z/roles.sql", "x", "backups/requested/20240101T000000Z/roles.sql", "x",
			"backups/final/20240102T000000Z/roles.sql", "x", "backups/identity", "first\n",
		),
		calls: []string{"pg_dumpall -w --roles-only", "pg_dump -w -Fc", "pg_restore --list"}, wantText: []string{"dumped database a b", "removed 20250101T000000Z"}, never: []string{"text="},
		leaves: files(
			"backups/scheduled/20250101T000000Z", "", "backups/scheduled/20250102T000000Z/roles.sql", "x", "backups/requested/20240101T000000Z/roles.sql", "x",
			"backups/final/20240102T000000Z/roles.sql", "x", "backups/identity", "first\n",
		),
	},
	{
		name: "a requested backup", script: "backup.sh", args: []string{"requested"}, env: []string{"KEEP=1"},
		files:  files("backups/scheduled/20250101T000000Z/roles.sql", "x", "backups/requested/20240101T000000Z/roles.sql", "x"),
		leaves: files("backups/scheduled/20250101T000000Z/roles.sql", "x", "backups/requested/20240101T000000Z", "", "backups/requested/*/oid-7.dump", "17\n"),
	},
	{
		name: "a backup that cannot be reported", script: "backup.sh", args: []string{"scheduled"}, env: []string{"TERMINATION_LOG=/nonexistent/file"}, wantText: []string{"could not be reported"},
	},
	{
		name: "a backup that fails", script: "backup.sh", args: []string{"scheduled"}, env: []string{"KEEP=1"}, answers: []answer{{When: "--version", Say: "pg (PostgreSQL) 17.5\n"}, {When: "pg_dump ", Exit: 1}},
		files: files("backups/scheduled/20250101T000000Z/roles.sql", "x", "backups/scheduled/20250102T000000Z/roles.sql", "x", "termination-log", ""),
		fails: true, leaves: files("backups/scheduled/20250101T000000Z/roles.sql", "x", "termination-log", "\x00"),
	},
	{
		name: "an unreadable backup", script: "backup.sh", args: []string{"scheduled"}, answers: []answer{{When: "pg_restore --list", Exit: 1}},
		fails: true, leaves: files("backups/scheduled/*Z", ""),
	},
	{
		name: "a list of databases that cannot be read", script: "backup.sh", args: []string{"scheduled"}, answers: []answer{{When: "datallowconn", Exit: 3}},
		fails: true, leaves: files("backups/scheduled/*Z", ""),
	},
	{name: "no databases", script: "backup.sh", args: []string{"scheduled"}, answers: []answer{{When: "datallowconn"}}, fails: true, wantText: []string{"there is no database to dump"}},
	{name: "a backup of no kind", script: "backup.sh", fails: true, never: []string{"psql"}},
	{
		name: "a scheduled backup of an empty volume", script: "backup.sh", args: []string{"scheduled"}, env: []string{"KEEP=1"}, files: with(newData, backups),
		fails: true, wantText: []string{"would replace good backups"}, never: []string{"pg_dumpall"}, leaves: files("backups/scheduled/20260303T000000Z/databases.txt", "app|app\n"),
	},

	{
		name: "a final backup", script: "backup.sh", args: []string{"final"}, env: []string{"KEEP=1"},
		files:    files("backups/final/20240101T000000Z/roles.sql", "x", "backups/identity", "first\n"),
		calls:    []string{"file=access -v text=locked", "pg_reload_conf", "pg_terminate_backend", "pg_terminate_backend", "pg_terminate_backend", "pg_dumpall"},
		wantText: []string{"the backup is final/"}, leaves: files("backups/final/20240101T000000Z/roles.sql", "x", "backups/identity", "", "peer-0/access", "locked\n", "backups/final/*/databases.txt", "postgres|postgres\napp|app\noid-7|a b\n"),
	},
	{
		name: "a final backup that would lack a database", script: "backup.sh", args: []string{"final"}, answers: []answer{{When: "WHERE NOT datallowconn", Say: "archive\n"}},
		fails: true, wantText: []string{"no connections are allowed to: archive"}, never: []string{"text=locked", "pg_dumpall"},
	},
	{
		name: "a final backup while sessions remain", script: "backup.sh", args: []string{"final"}, answers: []answer{{When: "pg_terminate_backend", Say: "3\n", Times: 2}, {When: "pg_terminate_backend", Say: "0\n", Times: 2}, {When: "pg_terminate_backend", Say: "1\n", Times: 1}},
		calls: []string{"pg_terminate", "pg_terminate", "pg_terminate", "pg_terminate", "pg_terminate", "pg_terminate", "pg_terminate", "pg_terminate", "pg_dumpall"},
	},
	{
		name: "a final backup that fails", script: "backup.sh", args: []string{"final"}, files: files("backups/identity", "first\n"), answers: []answer{fails},
		fails: true, calls: []string{"text=locked", "pg_dumpall", "file=upgrade -v text=\n", "text=open"}, wantText: []string{"accepts connections of applications again"},
		leaves: files("peer-0/access", "open\n", "backups/final/*Z", "", "backups/identity", "first\n"),
	},
	{
		name: "an unreadable final backup", script: "backup.sh", args: []string{"final"}, answers: []answer{{When: "pg_restore --list", Exit: 1}},
		fails: true, leaves: files("backups/final/*Z", "", "peer-0/access", "open\n"),
	},
	{
		name: "a final backup that is terminated", script: "backup.sh", args: []string{"final"}, answers: []answer{terminated},
		fails: true, leaves: files("backups/final/*Z", "", "peer-0/access", "open\n"),
	},
	{
		name: "a final backup that cannot lock the server", script: "backup.sh", args: []string{"final"}, answers: []answer{{When: "pg_terminate_backend", Exit: 3}},
		fails: true, never: []string{"pg_dumpall"}, leaves: files("peer-0/access", "open\n"),
	},
	{
		name: "a final backup that cannot unlock the server", script: "backup.sh", args: []string{"final"}, answers: []answer{fails, {When: "text=open", Exit: 3}},
		fails: true, wantText: []string{"could not be unlocked: the next attempt unlocks it"}, leaves: files("peer-0/access", "locked\n"),
	},
	{
		name: "a final backup of a lost volume", script: "backup.sh", args: []string{"final"}, files: with(newData, []string{"backups/identity", "first\n"}),
		fails: true, wantText: []string{"restore the database first"}, never: []string{"pg_dumpall", "text="},
	},
	{
		name: "a final backup before the first configuration", script: "backup.sh", args: []string{"final"}, files: with(newData, []string{"backups/identity", "earlier\n"}),
		wantText: []string{"nothing to back up"}, never: []string{"pg_dumpall", "text="},
	},
	{
		name: "a final backup without a server", script: "backup.sh", args: []string{"final"}, env: []string{"WAIT=4"}, answers: []answer{{When: "server_version_num", Exit: down}},
		fails: true, wantText: []string{"does not answer"}, never: []string{"pg_dumpall", "text="},
	},
	{
		name: "a final backup after a restart of the server", script: "backup.sh", args: []string{"final"}, answers: []answer{{When: "server_version_num", Exit: down, Times: 1}},
		calls: []string{"sleep", "pg_dumpall"},
	},

	{
		name: "helm test", script: "test.sh", env: []string{"PGDATABASE=app", "READ_HOST=db-read", "READ_PORT=5432"}, answers: []answer{{When: "psql", Say: "42\n"}},
		calls: []string{"psql@peer-0", "psql@db-read"}, wantText: []string{"app accepts writes and answers"},
	},
	{name: "helm test without a response", script: "test.sh", env: []string{"PGDATABASE=app", "READ_HOST=db-read", "READ_PORT=5432"}, answers: []answer{{When: "psql", Exit: down}}, fails: true},
	{name: "helm test with lost data", script: "test.sh", env: []string{"PGDATABASE=app", "READ_HOST=db-read", "READ_PORT=5432"}, answers: []answer{{When: "psql", Say: "\n"}}, fails: true, wantText: []string{"wrote 42"}},
}
