package stubs

// state returns an answer of the pod's own server to alive.sh.
func state(text string) answer { return answer{When: "SELECT CASE WHEN", Say: text + "\n"} }

var podRuns = []run{
	{name: "a primary starts", script: "start.sh", files: files("home/data/PG_VERSION", "17\n"), calls: []string{"postgres -D"}, never: []string{"primary_conninfo"}, leaves: files("run/pg_hba.conf", "open\n")},
	{name: "a new primary starts", script: "start.sh", calls: []string{"initdb", "postgres -D"}, leaves: files("run/pg_hba.conf", "closed\n", "run/preparing", "")},
	{name: "a locked primary starts", script: "start.sh", files: files("home/data/PG_VERSION", "17\n", "home/data/access", "locked\n"), leaves: files("run/pg_hba.conf", "locked\n")},
	{
		name: "a standby starts", script: "start.sh", env: standby, files: copied("home/data/access", "locked\n"), answers: []answer{noPeer},
		calls: []string{"primary_conninfo=host=peer-0,peer-1 port=5432 user=replicator passfile=…target_session_attrs=primary…primary_slot_name=standby_2"}, leaves: files("run/preparing", "", "run/pg_hba.conf", "open\n"),
	},
	{
		name: "a standby waits, then starts", script: "start.sh", env: standby, files: files("home/data/PG_VERSION", "16\n", "home/data/standby.signal", ""),
		answers: []answer{{When: "server_version_num", Say: "160009\n", Times: 2}}, calls: []string{"sleep 5", "sleep 5", "pg_basebackup", "postgres -D"},
		leaves: files("run/waiting", "", "run/preparing", ""),
	},
	{
		name: "a pod whose preparation fails", script: "start.sh", env: standby, answers: []answer{{When: "pg_basebackup", Exit: 1}},
		fails: true, never: []string{"postgres -D"}, leaves: files("run/preparing", "\x00"),
	},

	{name: "started", script: "startup.sh", calls: []string{"pg_isready"}, never: []string{"sleep"}},
	{name: "started later", script: "startup.sh", answers: []answer{{When: "pg_isready", Exit: 1, Times: 2}}, calls: []string{"sleep 1", "sleep 1"}},
	{name: "started with the preparation", script: "startup.sh", files: files("run/preparing", ""), never: []string{"pg_isready"}},
	{name: "not started", script: "startup.sh", answers: []answer{{When: "pg_isready", Exit: 1}}, fails: true, wantText: []string{"may be recovering"}},

	{name: "ready", script: "ready.sh", calls: []string{"pg_isready"}},
	{name: "not ready", script: "ready.sh", answers: []answer{{When: "pg_isready", Exit: 2}}, fails: true},
	{name: "not ready during the preparation", script: "ready.sh", files: files("run/preparing", ""), fails: true, wantText: []string{"the data is being prepared"}, never: []string{"pg_isready"}},
	{name: "ready while waiting", script: "ready.sh", files: files("run/preparing", "", "run/waiting", ""), never: []string{"pg_isready"}},
	{name: "ready with restored data", script: "ready.sh", files: files("home/data/fresh", "\n", "home/data/access", "open\n")},
	{name: "ready while locked", script: "ready.sh", files: files("home/data/access", "locked\n")},
	{name: "not ready with new data", script: "ready.sh", files: files("home/data/fresh", "yes\n"), fails: true, wantText: []string{"the volume was empty"}},
	{name: "not ready before a restore", script: "ready.sh", files: files("home/data/fresh", "\n", "home/data/access", "closed\n"), fails: true, wantText: []string{"a restore has not finished"}},
	{name: "a ready standby", script: "ready.sh", files: copied("home/data/access", "closed\n")},

	{name: "alive", script: "alive.sh", answers: []answer{state("primary")}, calls: []string{"pg_isready"}, never: []string{"psql@peer"}},
	{name: "alive during the start", script: "alive.sh", answers: []answer{{When: "pg_isready", Exit: 1}}, never: []string{"psql"}},
	{name: "alive during the preparation", script: "alive.sh", files: files("run/preparing", ""), never: []string{"pg_isready"}},
	{name: "alive without an answer", script: "alive.sh", answers: []answer{{When: "SELECT CASE WHEN", Exit: down}}},
	{name: "not alive", script: "alive.sh", answers: []answer{{When: "pg_isready", Exit: 2}}, fails: true, wantText: []string{"no server answers"}},
	{name: "a primary before the settings change", script: "alive.sh", env: standby, answers: []answer{state("primary"), {When: "psql@peer-0", Say: "t\n"}}, calls: []string{"psql@peer-0", "psql@peer-1"}},
	{name: "a primary that another pod replaced", script: "alive.sh", env: standby, answers: []answer{state("primary")}, fails: true, wantText: []string{"pod db-0 is the primary"}},
	{name: "an empty server", script: "alive.sh", files: files("home/data/fresh", "yes\n"), answers: []answer{state("primary")}},
	{
		name: "an empty server that another pod replaced", script: "alive.sh", files: files("home/data/fresh", "yes\n", "peer-1/role", "t\n", "peer-2/role", "f\n"),
		answers: []answer{state("primary")}, fails: true, wantText: []string{"pod db-2 is the primary"},
	},
	{name: "a standby that receives WAL", script: "alive.sh", env: standby, answers: []answer{state("streaming")}, never: []string{"psql@peer"}},
	{name: "a standby that waits for WAL", script: "alive.sh", env: standby, answers: []answer{state("")}, calls: []string{"psql@peer-0…slot=standby_2"}},
	{name: "a standby without a primary", script: "alive.sh", env: standby, answers: []answer{noPeer, state("")}},
	{name: "a standby whose primary stops", script: "alive.sh", env: standby, answers: []answer{state(""), {When: "wal_status", Exit: down}}},
	{
		name: "a standby that can never catch up", script: "alive.sh", env: standby, answers: []answer{state(""), {When: "wal_status", Say: "1\n"}},
		fails: true, wantText: []string{"the primary has removed WAL that this standby needs"},
	},
}
