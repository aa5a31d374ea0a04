package stubs

// afterFailover are the answers of a primary whose timeline is 3, and which has
// no replication slot for this standby, whose timeline is 1.
var afterFailover = []answer{
	{When: "wal_status, 'unreserved'"},
	{When: "IDENTIFY_SYSTEM", Say: "77|3|0/9|\n"},
	{When: "TIMELINE_HISTORY 3", Say: "00000003.history|1\t0/4\tno recovery target specified\n\n2\t0/6\tno recovery target specified\n"},
	{When: "SELECT :'replayed'", Say: "t\n"},
}

var (
	standby = []string{"POD_NAME=db-2"}
	noPeer  = answer{When: "psql@peer", Exit: down}
)

// copied is the data of a standby.
func copied(more ...string) map[string]string {
	return files(append([]string{"home/data/PG_VERSION", "17\n", "home/data/standby.signal", ""}, more...)...)
}

// files returns a map of the given pairs.
func files(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

var prepareRuns = []run{
	{
		name: "a primary's first start", script: "prepare.sh",
		calls:  []string{"psql@peer-1", "psql@peer-2", "sleep", "psql@peer-1", "psql@peer-2", "initdb -D", "pg_ctl -D…pg_hba.closed.conf…start", "ALTER ROLE postgres PASSWORD :'superuser'", "stop"},
		never:  []string{"pg_basebackup"},
		leaves: files("home/data/PG_VERSION", "17\n", "home/data/fresh", "yes\n", "home/data/access", "closed\n", "home/data/restore", "", "run/role", "primary\n"),
	},
	{
		name: "a primary whose initdb fails", script: "prepare.sh", answers: []answer{{When: "initdb", Exit: 1}},
		fails: true, never: []string{"pg_ctl"}, leaves: files("home/data", ""),
	},
	{
		name: "a primary's next start", script: "prepare.sh", files: files("home/data/PG_VERSION", "17\n", "home/data/postmaster.pid", "1\n"),
		calls: []string{"start", "ALTER ROLE", "stop"}, never: []string{"initdb"}, leaves: files("home/data/postmaster.pid", "", "home/data/fresh", ""),
	},
	{
		name: "a primary's restarted container", script: "prepare.sh", files: files("home/data/PG_VERSION", "17\n", "run/roles-set", ""),
		never: []string{"initdb", "pg_ctl"},
	},
	{
		name: "a primary whose roles get no passwords", script: "prepare.sh", answers: []answer{{When: "ALTER ROLE", Exit: 3}},
		fails: true, wantText: []string{"the passwords of the roles could not be set"}, calls: []string{"start", "ALTER ROLE", "stop"}, leaves: files("run/roles-set", ""),
	},
	{
		name: "data of another version", script: "prepare.sh", files: files("home/data/PG_VERSION", "16\n", "home/data/upgrade", "\n"),
		fails: true, wantText: []string{"the data is of PostgreSQL 16 and the programs are of PostgreSQL 17", "left as it is"},
		never: []string{"initdb", "pg_ctl"}, leaves: files("home/data/PG_VERSION", "16\n"),
	},
	{
		name: "data whose dump is for another version", script: "prepare.sh", files: files("home/data/PG_VERSION", "16\n", "home/data/upgrade", "18 upgrade/16-18-x\n"),
		fails: true, never: []string{"initdb"},
	},
	{
		name: "data without a version", script: "prepare.sh", files: files("home/data/base", "x"),
		fails: true, wantText: []string{"left as it is"}, never: []string{"initdb"}, leaves: files("home/data/base", "x"),
	},
	{
		name: "data with a dump", script: "prepare.sh", files: files("home/data/PG_VERSION", "16\n", "home/data/upgrade", "17 upgrade/16-17-x\n", "home/data/predecessors", "76\n", "home/old/PG_VERSION", "15\n"),
		wantText: []string{"moving the data of PostgreSQL 16 aside"}, calls: []string{"initdb", "start"},
		leaves: files("home/data/PG_VERSION", "17\n", "home/data/restore", "upgrade/16-17-x\n", "home/data/access", "closed\n", "home/data/fresh", "", "home/data/predecessors", "76\n77\n", "home/old/PG_VERSION", "16\n"),
	},
	{
		name: "data that was being moved", script: "prepare.sh", files: files("home/old/PG_VERSION", "16\n", "home/old/upgrade", "17 upgrade/16-17-x\n", "home/data.new/PG_VERSION", "17\n", "home/data.new/access", "closed\n"),
		wantText: []string{"continuing with the data in old/"}, calls: []string{"initdb"},
		leaves: files("home/data/PG_VERSION", "17\n", "home/old/PG_VERSION", "16\n"),
	},
	{
		name: "rollback of an unfinished upgrade", script: "prepare.sh",
		files:    files("home/data/PG_VERSION", "18\n", "home/data/restore", "upgrade/17-18-x\n", "home/old/PG_VERSION", "17\n"),
		wantText: []string{"going back to the data of PostgreSQL 17"}, never: []string{"initdb"},
		leaves: files("home/data/PG_VERSION", "17\n", "home/old", "", "home/data.discarded", ""),
	},
	{
		name: "an interrupted rollback", script: "prepare.sh", files: files("home/data.discarded/PG_VERSION", "18\n", "home/old/PG_VERSION", "17\n"),
		never: []string{"initdb"}, leaves: files("home/data/PG_VERSION", "17\n", "home/old", "", "home/data.discarded", ""),
	},
	{
		name: "rollback of a finished upgrade", script: "prepare.sh",
		files: files("home/data/PG_VERSION", "18\n", "home/data/restore", "done\n", "home/old/PG_VERSION", "17\n"),
		fails: true, leaves: files("home/data/PG_VERSION", "18\n", "home/old/PG_VERSION", "17\n"),
	},
	{
		name: "after an upgrade", script: "prepare.sh", files: files("home/data/PG_VERSION", "17\n", "home/data/restore", "done\n", "home/old/PG_VERSION", "16\n"),
		leaves: files("home/old", ""),
	},
	{
		name: "old data is kept before the restore", script: "prepare.sh", files: files("home/data/PG_VERSION", "17\n", "home/data/restore", "upgrade/x\n", "home/old/PG_VERSION", "16\n"),
		leaves: files("home/old/PG_VERSION", "16\n"),
	},

	// The role.
	{
		name: "an empty volume while a standby becomes the primary", script: "prepare.sh", files: files("peer-1/role", "t\n"),
		answers: []answer{
			{When: "psql@peer-1…SELECT pg_is_in_recovery()", Say: "t\n", Times: 2},
			{When: "psql@peer-1…SELECT pg_is_in_recovery()", Say: "f\n"},
		},
		wantText: []string{"pod db-1 has the data: set the value primary to 1", "taking a copy of the data of peer-1"}, never: []string{"initdb"}, leaves: files("run/role", "standby\n"),
	},
	{
		name: "a primary that was replaced", script: "prepare.sh", files: files("home/data/PG_VERSION", "17\n", "peer-1/role", "f\n"),
		wantText: []string{"taking a copy", "is kept in"}, leaves: files("run/role", "standby\n", "home/aside-*/PG_VERSION", "17\n", "home/data/standby.signal", "\x00"),
	},
	{
		name: "a primary with standbys", script: "prepare.sh", files: files("home/data/PG_VERSION", "17\n", "peer-1/role", "t\n"),
		never: []string{"pg_basebackup"}, leaves: files("run/role", "primary\n"),
	},
	{
		name: "data of a standby in the pod that is to be the primary", script: "prepare.sh", files: copied(),
		wantText: []string{"starting with the existing data"}, never: []string{"pg_ctl", "initdb"}, leaves: files("run/role", "standby\n"),
	},
	{
		name: "data without a primary, but another pod is to be the primary", script: "prepare.sh", env: standby, files: files("home/data/PG_VERSION", "17\n"),
		answers:  []answer{{When: "SELECT pg_is_in_recovery()", Exit: down, Times: 20}},
		wantText: []string{"is kept in"}, never: []string{"pg_ctl"}, leaves: files("run/role", "standby\n"),
	},

	// A standby.
	{
		name: "a standby's first start", script: "prepare.sh", env: standby,
		files:  files("source/access", "open", "source/fresh", "", "source/restore", "done", "source/upgrade", "", "source/predecessors", "76\n"),
		calls:  []string{"server_version_num", "psql@peer-0…slot=standby_2…pg_create_physical_replication_slot", "pg_basebackup -w -D…-S standby_2"},
		never:  []string{"initdb", "pg_ctl"},
		leaves: files("home/data/PG_VERSION", "17\n", "home/data/standby.signal", "\x00", "home/data/predecessors", "76\n", "home/data/access", "", "home/data/fresh", "", "home/data/restore", "", "home/data/upgrade", "", "run/pgpass", "*:*:*:replicator:re\\:p\\\\l'ica\n"),
	},
	{
		name: "a standby whose primary is another pod", script: "prepare.sh", env: standby, files: files("peer-1/role", "f\n"),
		answers: []answer{{When: "psql@peer-0", Exit: down}}, calls: []string{"psql@peer-0", "psql@peer-1…pg_create_physical_replication_slot", "pg_basebackup"},
	},
	{
		name: "a standby whose primary starts later", script: "prepare.sh", env: standby, answers: []answer{{When: "SELECT pg_is_in_recovery()", Exit: down, Times: 7}},
		wantText: []string{"waiting for a primary to answer"}, calls: []string{"sleep 2", "sleep 2", "sleep 2", "pg_basebackup"},
	},
	{
		name: "a standby whose copy fails", script: "prepare.sh", env: standby, answers: []answer{{When: "pg_basebackup", Exit: 1}},
		fails: true, leaves: files("home/data", ""),
	},
	{
		name: "a standby whose new copy fails", script: "prepare.sh", env: standby, files: copied(),
		answers: []answer{{When: "wal_status, 'unreserved'", Say: "lost\n"}, {When: "pg_basebackup", Exit: 1}}, fails: true, leaves: files("home/data/PG_VERSION", "17\n", "home/data/standby.signal", "\x00"),
	},
	{
		name: "a standby without space for two copies", script: "prepare.sh", env: standby, files: copied(),
		answers:  []answer{{When: "wal_status, 'unreserved'", Say: "lost\n"}, {When: "df -Pk", Say: "Filesystem\n/dev/a 9 9 0 1% /\n"}, {When: "pg_basebackup", Exit: 1}},
		wantText: []string{"no space for two copies"}, fails: true, leaves: files("home/data", ""),
	},
	{
		name: "other data without space for two copies", script: "prepare.sh", env: standby, files: copied(),
		answers: []answer{{When: "system_identifier", Say: "78\n"}, {When: "df -Pk", Say: "Filesystem\n/dev/a 9 9 0 1% /\n"}, {When: "pg_basebackup", Exit: 1}},
		fails:   true, leaves: files("home/data/PG_VERSION", "17\n"),
	},
	{
		name: "a standby that can follow", script: "prepare.sh", env: standby, files: copied("home/data/access", "locked\n", "home/old/PG_VERSION", "16\n"),
		calls: []string{"wal_status"}, never: []string{"pg_basebackup"}, leaves: files("home/data/access", "", "home/old", ""),
	},
	{
		name: "a standby of another primary", script: "prepare.sh", env: standby, files: copied(),
		answers: []answer{{When: "system_identifier", Say: "78\n"}}, wantText: []string{"taking a copy", "is kept in"}, calls: []string{"pg_basebackup"},
		leaves: files("home/aside-*/PG_VERSION", "17\n"),
	},
	{
		name: "a standby before an upgrade of its primary", script: "prepare.sh", env: standby, files: files("home/data/PG_VERSION", "16\n", "home/data/standby.signal", "", "source/predecessors", "76\n77\n"),
		answers: []answer{{When: "system_identifier", Say: "78\n"}}, calls: []string{"pg_basebackup"}, leaves: files("home/data/PG_VERSION", "17\n", "home/aside-*", ""),
	},
	{
		name: "an earlier primary with data before an upgrade", script: "prepare.sh", env: standby, files: files("home/data/PG_VERSION", "16\n", "source/predecessors", "77\n"),
		answers: []answer{{When: "system_identifier", Say: "78\n"}}, wantText: []string{"is kept in"}, leaves: files("home/aside-*/PG_VERSION", "16\n"),
	},
	{
		name: "an empty server that another pod replaced", script: "prepare.sh", files: files("home/data/PG_VERSION", "17\n", "home/data/fresh", "yes\n", "peer-1/role", "f\n"),
		calls: []string{"pg_basebackup"}, leaves: files("home/aside-*", "", "home/data/fresh", ""),
	},
	{
		name: "a standby whose WAL was removed", script: "prepare.sh", env: standby, files: copied(),
		answers: []answer{{When: "wal_status, 'unreserved'", Say: "lost\n"}}, calls: []string{"pg_drop_replication_slot", "pg_basebackup"}, leaves: files("home/aside-*", ""),
	},
	{
		name: "a standby that received no more than the new primary", script: "prepare.sh", env: standby, files: copied(),
		answers: append([]answer{{When: "pg_waldump", Exit: 1}}, afterFailover...), calls: []string{"pg_basebackup"}, leaves: files("home/aside-*", ""),
	},
	{
		name: "a standby that received more than the new primary", script: "prepare.sh", env: standby, files: copied(),
		answers: append([]answer{{When: "pg_waldump -p…-t 1 -s 0/4"}, {When: "pg_waldump", Exit: 1}}, afterFailover...), calls: []string{"pg_basebackup"}, leaves: files("home/aside-*/PG_VERSION", "17\n"),
	},
	{
		name: "a standby that received more on a later timeline", script: "prepare.sh", env: standby, files: copied(),
		answers: append([]answer{{When: "pg_waldump -p…-t 2 -s 0/6"}, {When: "pg_waldump", Exit: 1}}, afterFailover...), calls: []string{"pg_basebackup"}, leaves: files("home/aside-*/PG_VERSION", "17\n"),
	},
	{
		name: "a standby that replayed more than the new primary", script: "prepare.sh", env: standby, files: copied(),
		answers: append([]answer{{When: "SELECT :'replayed'", Say: "f\n"}, {When: "pg_waldump", Exit: 1}}, afterFailover...), calls: []string{"pg_basebackup"}, leaves: files("home/aside-*/PG_VERSION", "17\n"),
	},
	{
		name: "a standby on a timeline that is not in the history of the primary", script: "prepare.sh", env: standby, files: copied(),
		answers: append([]answer{{When: "TIMELINE_HISTORY 3", Say: "00000003.history|2\t0/4\tno recovery target specified\n"}, {When: "pg_waldump", Exit: 1}}, afterFailover...), calls: []string{"pg_basebackup"}, leaves: files("home/aside-*/PG_VERSION", "17\n"),
	},
	{
		name: "a standby that received more, without space for two copies", script: "prepare.sh", env: standby, files: copied(),
		answers: append([]answer{{When: "df -Pk", Say: "Filesystem\n/dev/a 9 9 0 1% /\n"}, {When: "pg_basebackup", Exit: 1}}, afterFailover...),
		fails:   true, leaves: files("home/data/PG_VERSION", "17\n"),
	},
	{
		name: "a standby that cannot query its primary", script: "prepare.sh", env: standby, files: copied(),
		answers: []answer{{When: "wal_status", Exit: down}}, fails: true, never: []string{"pg_basebackup"}, leaves: files("home/data/PG_VERSION", "17\n"),
	},
	{
		name: "a standby without a primary", script: "prepare.sh", env: standby, files: copied(),
		answers: []answer{noPeer}, wantText: []string{"starting with the existing data"}, never: []string{"pg_basebackup"},
	},
	{
		name: "a standby before its primary's upgrade", script: "prepare.sh", env: standby, files: files("home/data/PG_VERSION", "16\n", "home/data/standby.signal", ""),
		answers: []answer{{When: "server_version_num", Say: "160009\n"}}, wantText: []string{"waiting until both have the same version"}, never: []string{"pg_basebackup"},
		leaves: files("home/data/PG_VERSION", "16\n", "run/waiting", "\x00"),
	},
}
