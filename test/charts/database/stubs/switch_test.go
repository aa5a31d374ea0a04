package stubs

var to1 = []string{"PRIMARY=1", "PGHOST=peer-1", "OLD_PRIMARY=0", "OLD_STOPPED=no"}

var (
	stopped     = append(to1[:3:3], "OLD_STOPPED=yes")
	twoServers  = files("peer-0/role", "f\n", "peer-1/role", "t\n")
	twoStandbys = files("peer-1/role", "t\n", "peer-2/role", "t\n")
	noOld       = answer{When: "psql@peer-0", Exit: down}
)

var switchRuns = []run{
	{name: "the primary is right", script: "switch.sh", wantText: []string{"pod 0 is the primary: nothing to do"}, never: []string{"text=", "slot="}},
	{
		name: "a switch", script: "switch.sh", env: to1, files: twoServers,
		calls: []string{
			"psql@peer-1…slot=standby_0", "psql@peer-1…slot=standby_2", "psql@peer-0…text=locked", "psql@peer-0…pg_terminate_backend", "psql@peer-0…pg_current_wal_flush_lsn",
			"psql@peer-1…lsn=0/5", "psql@peer-0…file=standby.signal", "psql@peer-0…pg_ctl -D . -m fast", "psql@peer-1…pg_promote",
		},
		wantText: []string{"pod 0 is no longer the primary", "pod 1 is the primary"},
		leaves:   files("peer-0/role", "t\n", "peer-0/access", "locked\n", "peer-1/role", "f\n"),
	},
	{
		name: "a new primary that does not answer", script: "switch.sh", env: to1,
		fails: true, wantText: []string{"the server of pod 1 does not answer"}, never: []string{"text=", "slot=", "pg_promote"},
	},
	{
		name: "a standby of another server", script: "switch.sh", env: to1, files: twoServers, answers: []answer{{When: "psql@peer-0…system_identifier", Say: "78\n"}},
		fails: true, wantText: []string{"pod 1 is not a standby of pod 0"}, never: []string{"text=", "pg_promote"},
	},
	{
		name: "no slot for the previous primary", script: "switch.sh", env: to1, files: twoServers, answers: []answer{{When: "pg_create_physical_replication_slot", Exit: 3}},
		fails: true, never: []string{"text=", "pg_promote"},
	},
	{
		name: "a standby that replays later", script: "switch.sh", env: to1, files: twoServers, answers: []answer{{When: ">= :'lsn'", Say: "f\n", Times: 2}},
		calls: []string{"lsn=0/5", "sleep", "lsn=0/5", "sleep", "lsn=0/5", "file=standby.signal", "pg_promote"},
	},
	{
		name: "a standby that does not replay", script: "switch.sh", env: append([]string{"WAIT=3"}, to1...), files: twoServers, answers: []answer{{When: ">= :'lsn'", Say: "f\n"}},
		fails: true, wantText: []string{"did not replay the WAL of pod 0 within 3 seconds", "accepts connections of applications again"},
		never: []string{"file=standby.signal", "pg_promote"}, leaves: files("peer-0/access", "open\n", "peer-0/role", "f\n"),
	},
	{
		name: "a previous primary that cannot be locked", script: "switch.sh", env: to1, files: twoServers, answers: []answer{{When: "pg_reload_conf", Exit: 3, Times: 1}},
		fails: true, never: []string{"file=standby.signal", "pg_promote"}, leaves: files("peer-0/access", "open\n"),
	},
	{
		name: "a previous primary that cannot be unlocked", script: "switch.sh", env: append([]string{"WAIT=1"}, to1...), files: twoServers, answers: []answer{{When: ">= :'lsn'", Exit: down}, {When: "text=open", Exit: 3}},
		fails: true, wantText: []string{"could not be unlocked: the next attempt, or a rollback, unlocks it"}, never: []string{"pg_promote"}, leaves: files("peer-0/access", "locked\n"),
	},
	{
		name: "a previous primary without a state file", script: "switch.sh", env: to1, files: twoServers, answers: []answer{{When: "file=standby.signal", Exit: 3}},
		fails: true, never: []string{"TO PROGRAM…pg_ctl", "pg_promote"}, leaves: files("peer-0/access", "open\n", "peer-0/standby.signal", ""),
	},
	{
		name: "a previous primary that does not stop", script: "switch.sh", env: append([]string{"WAIT=3"}, to1...), files: twoServers, answers: []answer{{When: "TO PROGRAM…pg_ctl", Exit: 3}},
		fails: true, wantText: []string{"the server of pod 0 did not stop within 3 seconds"}, never: []string{"pg_promote"}, leaves: files("peer-0/standby.signal", "\n"),
	},
	{
		name: "a previous primary that still sends WAL", script: "switch.sh", env: to1, files: twoServers,
		answers: []answer{{When: "pg_stat_wal_receiver", Say: "1\n", Times: 1}, {When: "pg_stat_wal_receiver", Exit: down, Times: 1}},
		calls:   []string{"file=standby.signal", "psql@peer-1…pg_stat_wal_receiver", "sleep", "psql@peer-1…pg_stat_wal_receiver", "sleep", "psql@peer-1…pg_stat_wal_receiver", "pg_promote"},
	},
	{
		name: "a promotion that fails", script: "switch.sh", env: to1, files: twoServers, answers: []answer{{When: "pg_promote", Say: "f\n"}},
		fails: true, wantText: []string{"pod 1 was not promoted"}, leaves: files("peer-1/role", "t\n"),
	},
	{
		name: "an interrupted switch", script: "switch.sh", env: to1, files: files("peer-0/role", "t\n", "peer-1/role", "t\n", "peer-2/role", "t\n"),
		calls: []string{"psql@peer-1…pg_promote"}, never: []string{"text="}, leaves: files("peer-1/role", "f\n"),
	},
	{
		name: "an interrupted switch is rolled back", script: "switch.sh", files: files("peer-0/role", "t\n", "peer-1/role", "t\n", "peer-2/role", "t\n"),
		calls: []string{"psql@peer-0…pg_promote"}, leaves: files("peer-0/role", "f\n"),
	},

	// The previous primary does not answer.
	{
		name: "a lost primary", script: "switch.sh", env: stopped, files: twoStandbys, answers: []answer{noOld},
		calls: []string{"psql@peer-1…pg_last_wal_receive_lsn", "psql@peer-2…> :'lsn'", "psql@peer-1…pg_promote"}, leaves: files("peer-1/role", "f\n", "peer-2/role", "t\n"),
	},
	{
		name: "a lost primary that may still run", script: "switch.sh", env: to1, files: twoStandbys, answers: []answer{noOld},
		fails: true, wantText: []string{"pod 0 was the primary and does not answer, but its container may still run"}, never: []string{"pg_promote"},
	},
	{
		name: "an unknown primary", script: "switch.sh", env: []string{"PRIMARY=1", "PGHOST=peer-1"}, files: files("peer-1/role", "t\n"), answers: []answer{noOld},
		fails: true, wantText: []string{"its container may still run"}, never: []string{"pg_promote"},
	},
	{
		name: "a standby that has received more", script: "switch.sh", env: stopped, files: twoStandbys, answers: []answer{noOld, {When: "> :'lsn'", Say: "t\n"}},
		fails: true, wantText: []string{"pod 2 has received more than pod 1: set primary to 2"}, never: []string{"pg_promote"},
	},
	{
		name: "a standby that stops answering", script: "switch.sh", env: stopped, files: twoStandbys, answers: []answer{noOld, {When: "> :'lsn'", Exit: down}},
		fails: true, never: []string{"pg_promote"},
	},
	{
		name: "an empty server in place of the primary", script: "switch.sh", env: to1, files: files("peer-0/role", "f\n", "peer-0/fresh", "yes\n", "peer-1/role", "t\n", "peer-2/role", "t\n"),
		wantText: []string{"pod 0 is new and empty"}, never: []string{"text="}, leaves: files("peer-1/role", "f\n"),
	},
}
