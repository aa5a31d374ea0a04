package stubs

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// run is one run of a script: its environment and the expected result.
type run struct {
	name, script string
	args         []string
	env          []string
	// files exist before the run, relative to the pod's folder.
	files   map[string]string
	answers []answer
	// fails: the script exits with an error. wantText are parts of its output.
	fails    bool
	wantText []string
	// calls are parts of the expected calls in order; never are parts that no
	// call may contain.
	calls, never []string
	// leaves are files with their expected content; "" means that the file must
	// not exist.
	leaves map[string]string
}

// down is psql's exit code if no server responds.
const down = 2

var runs = []run{
	{
		name: "a primary's first start", script: "prepare.sh",
		calls:  []string{"initdb -D", "pg_ctl -D", "start", "ALTER ROLE postgres PASSWORD :'superuser'", "CREATE ROLE replicator", "stop"},
		never:  []string{"pg_basebackup"},
		leaves: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/restore": ""},
	},
	{
		name: "a primary to restore", script: "prepare.sh", env: []string{"RESTORE_FROM=latest"},
		calls: []string{"initdb"}, leaves: map[string]string{"home/data/restore": "latest\n"},
	},
	{
		name: "a primary whose initdb fails", script: "prepare.sh", answers: []answer{{When: "initdb", Exit: 1}},
		fails: true, never: []string{"pg_ctl"}, leaves: map[string]string{"home/data": ""},
	},
	{
		name: "a primary's next start", script: "prepare.sh", files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/postmaster.pid": "1\n"},
		calls: []string{"start", "ALTER ROLE", "stop"}, never: []string{"initdb"}, leaves: map[string]string{"home/data/postmaster.pid": ""},
	},
	{
		name: "a primary whose roles get no passwords", script: "prepare.sh", answers: []answer{{When: "ALTER ROLE", Exit: 3}},
		fails: true, wantText: []string{"could not be given their passwords"}, calls: []string{"start", "ALTER ROLE", "stop"},
	},
	{
		name: "data of another version", script: "prepare.sh", files: map[string]string{"home/data/PG_VERSION": "16\n", "home/data/upgrade": "\n"},
		fails: true, wantText: []string{"the data are of PostgreSQL 16 and the programs of PostgreSQL 17", "left as they are"},
		never: []string{"initdb", "pg_ctl"}, leaves: map[string]string{"home/data/PG_VERSION": "16\n"},
	},
	{
		name: "data whose dump is for another version", script: "prepare.sh", files: map[string]string{"home/data/PG_VERSION": "16\n", "home/data/upgrade": "18 upgrade/16-18-x\n"},
		fails: true, never: []string{"initdb"},
	},
	{
		name: "data that have been dumped", script: "prepare.sh", files: map[string]string{"home/data/PG_VERSION": "16\n", "home/data/upgrade": "17 upgrade/16-17-x\n"},
		wantText: []string{"putting the data of PostgreSQL 16 aside"}, calls: []string{"initdb", "start"},
		leaves: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/restore": "upgrade/16-17-x\n", "home/old/PG_VERSION": "16\n"},
	},
	{
		name: "data that were being moved", script: "prepare.sh", files: map[string]string{"home/old/PG_VERSION": "16\n", "home/old/upgrade": "17 upgrade/16-17-x\n", "home/data.new/PG_VERSION": "17\n"},
		wantText: []string{"going on with the data in old/"}, calls: []string{"initdb"},
		leaves: map[string]string{"home/data/PG_VERSION": "17\n", "home/old/PG_VERSION": "16\n"},
	},
	{
		name: "rollback of an unfinished upgrade", script: "prepare.sh",
		files:    map[string]string{"home/data/PG_VERSION": "18\n", "home/data/restore": "upgrade/17-18-x\n", "home/old/PG_VERSION": "17\n"},
		wantText: []string{"going back to the data of PostgreSQL 17"}, never: []string{"initdb"},
		leaves: map[string]string{"home/data/PG_VERSION": "17\n", "home/old": ""},
	},
	{
		name: "rollback of a finished upgrade", script: "prepare.sh",
		files: map[string]string{"home/data/PG_VERSION": "18\n", "home/data/restore": "done\n", "home/old/PG_VERSION": "17\n"},
		fails: true, leaves: map[string]string{"home/data/PG_VERSION": "18\n", "home/old/PG_VERSION": "17\n"},
	},
	{
		name: "after an upgrade", script: "prepare.sh", files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/restore": "done\n", "home/old/PG_VERSION": "16\n"},
		leaves: map[string]string{"home/old": ""},
	},
	{
		name: "old data are kept before the restore", script: "prepare.sh", files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/restore": "upgrade/x\n", "home/old/PG_VERSION": "16\n"},
		leaves: map[string]string{"home/old/PG_VERSION": "16\n"},
	},
	{
		name: "a standby's first start", script: "prepare.sh", env: []string{"POD_NAME=db-2"},
		calls:  []string{"server_version_num", "slot=standby_2", "pg_create_physical_replication_slot", "pg_basebackup -w -D", "-S standby_2"},
		never:  []string{"initdb", "pg_ctl"},
		leaves: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/standby.signal": "\x00", "run/pgpass": "*:*:*:replicator:re\\:p\\\\l'ica\n"},
	},
	{
		name: "a standby whose primary starts later", script: "prepare.sh", env: []string{"POD_NAME=db-2"}, answers: []answer{{When: "server_version_num", Exit: down, Times: 3}},
		wantText: []string{"waiting for primary to answer"}, calls: []string{"sleep 2", "sleep 2", "sleep 2", "pg_basebackup"},
	},
	{
		name: "a standby whose copy fails", script: "prepare.sh", env: []string{"POD_NAME=db-2"}, answers: []answer{{When: "pg_basebackup", Exit: 1}},
		fails: true, leaves: map[string]string{"home/data": ""},
	},
	{
		name: "a standby that follows", script: "prepare.sh", env: []string{"POD_NAME=db-2"}, files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/standby.signal": ""},
		calls: []string{"wal_status"}, never: []string{"pg_basebackup"},
	},
	{
		name: "a standby of another primary", script: "prepare.sh", env: []string{"POD_NAME=db-2"}, files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/standby.signal": ""},
		answers: []answer{{When: "system_identifier", Say: "78\n"}}, wantText: []string{"taking a copy"}, calls: []string{"pg_basebackup"},
	},
	{
		name: "a standby that is too far behind", script: "prepare.sh", env: []string{"POD_NAME=db-2"}, files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/standby.signal": ""},
		answers: []answer{{When: "wal_status, 'unreserved'", Say: "lost\n"}}, calls: []string{"pg_drop_replication_slot", "pg_basebackup"},
	},
	{
		name: "a standby that cannot query its primary", script: "prepare.sh", env: []string{"POD_NAME=db-2"}, files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/standby.signal": ""},
		answers: []answer{{When: "wal_status", Exit: down}}, fails: true, never: []string{"pg_basebackup"}, leaves: map[string]string{"home/data/PG_VERSION": "17\n"},
	},
	{
		name: "a standby without a primary", script: "prepare.sh", env: []string{"POD_NAME=db-2"}, files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/standby.signal": ""},
		answers: []answer{{When: "server_version_num", Exit: down}}, wantText: []string{"starting with what is here"}, never: []string{"pg_basebackup"},
	},
	{
		name: "a standby before its primary's upgrade", script: "prepare.sh", env: []string{"POD_NAME=db-2"}, files: map[string]string{"home/data/PG_VERSION": "16\n", "home/data/standby.signal": ""},
		answers: []answer{{When: "server_version_num", Say: "160009\n"}}, wantText: []string{"it follows once they are of one version"}, never: []string{"pg_basebackup"},
		leaves: map[string]string{"home/data/PG_VERSION": "16\n", "run/waiting": "\x00"},
	},

	{name: "a primary starts", script: "start.sh", calls: []string{"postgres -D"}, never: []string{"primary_conninfo", "psql"}},
	{
		name: "a standby starts", script: "start.sh", env: []string{"POD_NAME=db-2"}, files: map[string]string{"home/data/PG_VERSION": "17\n", "home/data/standby.signal": ""},
		calls: []string{"primary_conninfo=host=primary port=5432 user=replicator passfile="}, leaves: map[string]string{"run/preparing": ""},
	},
	{
		name: "a standby waits, then starts", script: "start.sh", env: []string{"POD_NAME=db-2"}, files: map[string]string{"home/data/PG_VERSION": "16\n", "home/data/standby.signal": ""},
		answers: []answer{{When: "server_version_num", Say: "160009\n", Times: 2}}, calls: []string{"sleep 5", "sleep 5", "pg_basebackup", "postgres -D"},
		leaves: map[string]string{"run/waiting": "", "run/preparing": ""},
	},

	{name: "ready", script: "ready.sh", calls: []string{"pg_isready"}},
	{name: "not ready", script: "ready.sh", answers: []answer{{When: "pg_isready", Exit: 2}}, fails: true},
	{name: "ready while waiting", script: "ready.sh", files: map[string]string{"run/waiting": ""}, never: []string{"pg_isready"}},
	{name: "alive", script: "alive.sh", calls: []string{"pg_isready"}, never: []string{"psql"}},
	{name: "alive during the start", script: "alive.sh", answers: []answer{{When: "pg_isready", Exit: 1}}},
	{name: "alive during the preparation", script: "alive.sh", files: map[string]string{"run/preparing": ""}, never: []string{"pg_isready"}},
	{name: "not alive", script: "alive.sh", answers: []answer{{When: "pg_isready", Exit: 2}}, fails: true, wantText: []string{"no server answers"}},
	{name: "a standby is alive", script: "alive.sh", env: []string{"POD_NAME=db-1"}, calls: []string{"slot=standby_1"}},
	{name: "a standby is alive without its primary", script: "alive.sh", env: []string{"POD_NAME=db-1"}, answers: []answer{{When: "psql", Exit: down}}},
	{
		name: "a standby that can never follow", script: "alive.sh", env: []string{"POD_NAME=db-1"}, answers: []answer{{When: "lost", Say: "1\n"}},
		fails: true, wantText: []string{"has let go of what this standby would need"},
	},

	{
		name: "a first configuration", script: "init.sh", env: []string{"EXTENSIONS=pg_trgm hstore", "INIT_SQL=/init/init.sql"}, answers: []answer{{When: "shobj_description", Say: "0\n"}},
		calls:    []string{"CREATE ROLE %I", "ALTER ROLE :\"owner\"", "CREATE DATABASE %I", "extension=pg_trgm", "extension=hstore", "file=/init/init.sql", "pg_drop_replication_slot", "pg_dumpall", "pg_dump"},
		wantText: []string{"database app is made, and belongs to app", "the dump is scheduled/", "as asked for"}, never: []string{"pg_restore -w"},
	},
	{
		name: "already configured", script: "init.sh", files: map[string]string{"backups/scheduled/20260101T000000Z/databases.txt": "app|app\n"},
		calls: []string{"CREATE DATABASE %I"}, never: []string{"SET ROLE", "pg_dumpall", "pg_restore", "CONNECTION LIMIT"},
	},
	{
		name: "a server that starts later", script: "init.sh", answers: []answer{{When: "server_version_num", Exit: down, Times: 2}},
		wantText: []string{"waiting for primary to answer as PostgreSQL 17", "as asked for"}, calls: []string{"sleep", "sleep", "CREATE DATABASE"},
	},
	{
		name: "a server before its upgrade", script: "init.sh", answers: []answer{{When: "server_version_num", Say: "160009\n", Times: 2}},
		calls: []string{"sleep", "sleep", "CREATE DATABASE"},
	},
	{
		name: "a server that does not start", script: "init.sh", env: []string{"WAIT=10"}, answers: []answer{{When: "server_version_num", Exit: down}},
		fails: true, wantText: []string{"primary does not answer as PostgreSQL 17: waited 10 seconds"}, never: []string{"CREATE DATABASE"},
	},
	{
		name: "a configuration that fails", script: "init.sh", answers: []answer{{When: "CREATE DATABASE %I", Exit: 3}},
		fails: true, never: []string{"shobj_description"},
	},
	{
		name: "a dump to restore", script: "init.sh", files: map[string]string{"backups/upgrade/16-17-x/databases.txt": "postgres|postgres\noid-7|a b\n", "backups/limits.sql": "ALTER"},
		answers: []answer{{When: "pg_read_file", Say: "upgrade/16-17-x\n", Times: 1}, {When: "pg_read_file", Say: "restored upgrade/16-17-x\n"}},
		calls: []string{
			"roles.sql", "pg_restore -w --clean --if-exists --exit-on-error -d postgres", "pg_restore -w --clean --if-exists --create",
			"text=restored upgrade/16-17-x", "limits.sql", "text=done", "vacuumdb", "CREATE DATABASE",
		},
		leaves: map[string]string{"backups/limits.sql": ""},
	},
	{
		name: "a restore that fails", script: "init.sh", files: map[string]string{"backups/upgrade/16-17-x/databases.txt": "app|app\n", "backups/limits.sql": "ALTER"},
		answers: []answer{{When: "pg_read_file", Say: "upgrade/16-17-x\n"}, {When: "pg_restore", Exit: 1}},
		fails:   true, never: []string{"text=restored", "limits.sql", "CREATE DATABASE"}, leaves: map[string]string{"backups/limits.sql": "ALTER"},
	},
	{
		name: "roles that cannot be restored", script: "init.sh", files: map[string]string{"backups/upgrade/16-17-x/databases.txt": "app|app\n"},
		answers: []answer{{When: "pg_read_file", Say: "upgrade/16-17-x\n"}, {When: "roles.sql", Exit: 2}},
		fails:   true, never: []string{"pg_restore"},
	},
	{
		name: "a missing dump", script: "init.sh", answers: []answer{{When: "pg_read_file", Say: "upgrade/16-17-x\n"}},
		fails: true, wantText: []string{"the dump upgrade/16-17-x is not in the backups' claim"},
	},
	{
		name: "the newest backup", script: "init.sh", answers: []answer{{When: "pg_read_file", Say: "latest\n", Times: 1}, {When: "pg_read_file", Say: "restored final/20260202T000000Z\n"}},
		files: map[string]string{
			"backups/scheduled/20260303T000000Z/databases.txt": "app|app\n", "backups/final/20260101T000000Z/databases.txt": "app|app\n",
			"backups/final/20260202T000000Z/databases.txt": "app|app\n",
		},
		wantText: []string{"restoring final/20260202T000000Z"}, never: []string{"limits.sql"},
	},
	{
		name: "no backup to restore", script: "init.sh", answers: []answer{{When: "pg_read_file", Say: "latest\n"}},
		fails: true, wantText: []string{"there is no backup in the claim"},
	},
	{
		name: "restored, but without connections", script: "init.sh", files: map[string]string{"backups/limits.sql": "ALTER"}, answers: []answer{{When: "pg_read_file", Say: "restored upgrade/16-17-x\n"}},
		calls: []string{"limits.sql", "text=done"}, never: []string{"pg_restore -w"}, leaves: map[string]string{"backups/limits.sql": ""},
	},
	{
		name: "an aborted upgrade", script: "init.sh", files: map[string]string{"backups/limits.sql": "ALTER"},
		calls: []string{"file=upgrade -v text=\n", "limits.sql"}, wantText: []string{"take connections again"}, leaves: map[string]string{"backups/limits.sql": ""},
	},
	{
		name: "an aborted upgrade whose mark remains", script: "init.sh", files: map[string]string{"backups/limits.sql": "ALTER"}, answers: []answer{{When: "file=upgrade", Exit: 3}},
		fails: true, never: []string{"limits.sql"}, leaves: map[string]string{"backups/limits.sql": "ALTER"},
	},

	{
		name: "a scheduled backup", script: "backup.sh", args: []string{"scheduled"}, env: []string{"KEEP=2"},
		files: map[string]string{
			"backups/scheduled/20250101T000000Z/roles.sql": "", "backups/scheduled/20250102T000000Z/roles.sql": "x", "backups/final/20240101T000000Z/roles.sql": "x",
		},
		calls: []string{"pg_dumpall -w --roles-only", "pg_dump -w -Fc", "pg_restore --list"}, wantText: []string{"dumped database a b", "removed 20250101T000000Z"},
		leaves: map[string]string{"backups/scheduled/20250101T000000Z": "", "backups/scheduled/20250102T000000Z/roles.sql": "x", "backups/final/20240101T000000Z/roles.sql": "x"},
	},
	{
		name: "a backup that fails", script: "backup.sh", args: []string{"scheduled"}, env: []string{"KEEP=1"}, answers: []answer{{When: "--version", Say: "pg (PostgreSQL) 17.5\n"}, {When: "pg_dump ", Exit: 1}},
		files: map[string]string{"backups/scheduled/20250101T000000Z/roles.sql": "x", "backups/scheduled/20250102T000000Z/roles.sql": "x"},
		fails: true, leaves: map[string]string{"backups/scheduled/20250101T000000Z/roles.sql": "x"},
	},
	{
		name: "an unreadable backup", script: "backup.sh", args: []string{"final"}, answers: []answer{{When: "pg_restore --list", Exit: 1}},
		fails: true, leaves: map[string]string{"backups/final/20250101T000000Z": ""},
	},
	{
		name: "a snapshot", script: "backup.sh", args: []string{"final"}, files: map[string]string{"backups/scheduled/20250101T000000Z/roles.sql": "x"},
		wantText: []string{"the dump is final/"}, leaves: map[string]string{"backups/scheduled/20250101T000000Z/roles.sql": "x"},
	},
	{
		name: "a snapshot without a server", script: "backup.sh", args: []string{"final"}, env: []string{"WAIT=4"}, answers: []answer{{When: "server_version_num", Exit: down}},
		fails: true, wantText: []string{"does not answer"}, never: []string{"pg_dumpall"},
	},
	{
		name: "a snapshot after a restart of the server", script: "backup.sh", args: []string{"final"}, answers: []answer{{When: "server_version_num", Exit: down, Times: 1}},
		calls: []string{"sleep", "pg_dumpall"},
	},

	{name: "an image of the same version", script: "check.sh", wantText: []string{"nothing to do"}},
	{name: "an image of a later version", script: "check.sh", answers: []answer{{When: "server_version_num", Say: "160009\n"}}, wantText: []string{"PostgreSQL 16 is to become PostgreSQL 17"}},
	{
		name: "a later version that is refused", script: "check.sh", env: []string{"MAJOR_UPGRADE=Refuse"}, answers: []answer{{When: "server_version_num", Say: "160009\n"}},
		fails: true, wantText: []string{"majorUpgrade is Refuse"},
	},
	{name: "an image of an earlier version", script: "check.sh", answers: []answer{{When: "server_version_num", Say: "180001\n"}}, fails: true, wantText: []string{"cannot read them"}},
	{
		name: "rollback before the restore", script: "check.sh", answers: []answer{{When: "server_version_num", Say: "180001\n"}, {When: "pg_read_file", Say: "upgrade/17-18-x\n"}},
		wantText: []string{"going back"},
	},
	{
		name: "another upgrade before the restore", script: "check.sh", answers: []answer{{When: "server_version_num", Say: "160009\n"}, {When: "pg_read_file", Say: "upgrade/15-16-x\n"}},
		fails: true, wantText: []string{"is not finished"},
	},
	{name: "no server to query", script: "check.sh", answers: []answer{{When: "server_version_num", Exit: down}}, wantText: []string{"nothing can be said"}},
	{name: "no server for a snapshot", script: "check.sh", args: []string{"answers"}, answers: []answer{{When: "server_version_num", Exit: down}}, fails: true, wantText: []string{"snapshotOnDelete"}},
	{name: "a server for a snapshot", script: "check.sh", args: []string{"answers"}, answers: []answer{{When: "server_version_num", Say: "160009\n"}}, wantText: []string{"answers"}},

	{name: "no upgrade", script: "upgrade.sh", wantText: []string{"nothing to upgrade"}, never: []string{"CONNECTION LIMIT", "pg_dumpall"}},
	{name: "no server to upgrade", script: "upgrade.sh", answers: []answer{{When: "server_version_num", Exit: down}}, wantText: []string{"nothing to upgrade"}},
	{
		name: "an upgrade", script: "upgrade.sh", files: map[string]string{"backups/upgrade/14-16-x/roles.sql": "x"},
		answers: []answer{{When: "server_version_num", Say: "160009\n"}, {When: "datconnlimit", Say: "ALTER DATABASE app CONNECTION LIMIT -1;\n"}},
		calls:   []string{"datconnlimit", "CONNECTION LIMIT 0", "pg_terminate_backend", "pg_dumpall", "pg_dump", "text=17 upgrade/16-17-"},
		leaves:  map[string]string{"backups/limits.sql": "ALTER DATABASE app CONNECTION LIMIT -1;\n", "backups/upgrade/14-16-x": ""},
	},
	{
		name: "an upgrade after an interrupted one", script: "upgrade.sh", files: map[string]string{"backups/limits.sql": "the first"},
		answers: []answer{{When: "server_version_num", Say: "160009\n"}}, calls: []string{"CONNECTION LIMIT 0", "pg_dumpall", "text=17 upgrade/16-17-"}, never: []string{"datconnlimit"},
		leaves: map[string]string{"backups/limits.sql": "the first"},
	},
	{
		name: "an upgrade whose dump fails", script: "upgrade.sh", answers: []answer{{When: "server_version_num", Say: "160009\n"}, {When: "pg_dumpall", Exit: 1}},
		fails: true, wantText: []string{"take no connections", "take connections again"}, calls: []string{"CONNECTION LIMIT 0", "pg_dumpall", "file=upgrade -v text=\n", "limits.sql"}, never: []string{"text=17"},
		leaves: map[string]string{"backups/limits.sql": ""},
	},
	{
		name: "an upgrade that is refused", script: "upgrade.sh", env: []string{"MAJOR_UPGRADE=Refuse"}, answers: []answer{{When: "server_version_num", Say: "160009\n"}},
		fails: true, never: []string{"CONNECTION LIMIT 0", "pg_dumpall"},
	},

	{
		name: "helm test", script: "test.sh", env: []string{"PGDATABASE=app", "READ_HOST=db-read", "READ_PORT=5432"}, answers: []answer{{When: "psql", Say: "42\n"}},
		wantText: []string{"takes what is written"},
	},
	{name: "helm test without a response", script: "test.sh", env: []string{"PGDATABASE=app", "READ_HOST=db-read", "READ_PORT=5432"}, answers: []answer{{When: "psql", Exit: down}}, fails: true},
	{name: "helm test with lost data", script: "test.sh", env: []string{"PGDATABASE=app", "READ_HOST=db-read", "READ_PORT=5432"}, answers: []answer{{When: "psql", Say: "\n"}}, fails: true, wantText: []string{"wrote 42"}},
}

func TestScripts(t *testing.T) {
	for _, shell := range []string{"dash", "bash"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		for _, r := range runs {
			t.Run(shell+"/"+r.script+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				r.check(t, shell)
			})
		}
	}
}

func (r run) check(t *testing.T, shell string) {
	s := newStubs(t, r.answers...)
	s.env = append(s.env, r.env...)
	for path, text := range r.files {
		s.file(path, text)
	}
	out, err := s.run(shell, r.script, r.args...)
	if (err != nil) != r.fails {
		t.Errorf("the script ended with %v", err)
	}
	for _, wantText := range r.wantText {
		if !strings.Contains(out, wantText) {
			t.Errorf("the output does not contain %q", wantText)
		}
	}
	calls := s.calls()
	next := 0
	var text strings.Builder
	for _, c := range calls {
		text.WriteString(c.String() + "\n")
		for next < len(r.calls) && strings.Contains(c.String(), r.calls[next]) {
			next++
			if next < len(r.calls) && r.calls[next] == r.calls[next-1] {
				break
			}
		}
	}
	if next < len(r.calls) {
		t.Errorf("missing call, or wrong order: %q", r.calls[next])
	}
	for _, never := range r.never {
		if strings.Contains(text.String(), never) {
			t.Errorf("unexpected call: %q", never)
		}
	}
	for path, want := range r.leaves {
		s.leaves(path, want)
	}
	if t.Failed() {
		t.Logf("output:\n%s\ncalls:\n%s", out, text.String())
	}
}

// leaves checks a file: "" means that it must not exist, and a zero byte that
// it must be empty.
func (s *stubs) leaves(path, want string) {
	s.t.Helper()
	info, err := os.Stat(s.at(path))
	if want == "" {
		if err == nil {
			s.t.Errorf("%s exists", path)
		}
		return
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	got, err := os.ReadFile(s.at(path))
	if err != nil || info.IsDir() || string(got) != strings.Trim(want, "\x00") {
		s.t.Errorf("%s contains %q, %v, want %q", path, got, err, want)
	}
}
