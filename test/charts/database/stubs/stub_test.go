package stubs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const chartDir = "../../../../charts/database"

// Passwords with special characters of the shell and SQL.
const (
	superuserPassword   = `su'p"e\r:$(word) x`
	replicationPassword = `re:p\l'ica`
	ownerPassword       = `own'er\ "s`
)

// This test's binary replaces PostgreSQL's programs under their names: it
// writes its arguments to a file, and reads its output from another.
const stubFolder = "CHARTWRIGHT_STUB_FOLDER"

// The number of the call at which the stub kills the script.
const stubKillAt = "CHARTWRIGHT_STUB_KILL_AT"

// "f" if another run of init.sh has the lock.
const stubLocked = "CHARTWRIGHT_STUB_LOCK"

// programs are the programs that the scripts call, including sleep.
var programs = []string{
	"df", "initdb", "pg_basebackup", "pg_controldata", "pg_ctl", "pg_dump", "pg_dumpall", "pg_isready", "pg_restore", "pg_waldump", "postgres", "psql", "sleep", "vacuumdb",
}

// tools are real programs that TestScripts_Killed counts as calls.
var tools = []string{"mv", "rm"}

func TestMain(m *testing.M) {
	if dir, name := os.Getenv(stubFolder), filepath.Base(os.Args[0]); dir != "" && (slices.Contains(programs, name) || slices.Contains(tools, name)) {
		os.Exit(stub(dir, name, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// answer is the output of a program whose call matches a text: see matches.
type answer struct {
	When string
	Say  string
	Exit int
	// Times is how often the answer is used; 0 means always.
	Times int
	// Signal is sent to the script.
	Signal syscall.Signal
}

// call is one call of a program.
type call struct {
	Program string
	Args    []string
	Input   string
	// Host is the server that psql connects to.
	Host string
}

func (c call) String() string {
	name := c.Program
	if c.Host != "" {
		name += "@" + c.Host
	}
	return name + " " + strings.Join(c.Args, " ") + "\n" + c.Input
}

// matches reports whether a text contains all parts of a pattern in order. The
// parts are separated by an ellipsis.
func matches(text, pattern string) bool {
	for part := range strings.SplitSeq(pattern, "…") {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func stub(dir, program string, args []string) int {
	killAt(dir)
	if slices.Contains(tools, program) {
		_, path, _ := strings.Cut(os.Getenv("PATH"), string(os.PathListSeparator))
		check(os.Setenv("PATH", path))
		found, err := exec.LookPath(program)
		check(err)
		check(syscall.Exec(found, append([]string{program}, args...), os.Environ())) // #nosec G204 -- a program of this machine
	}
	c := call{Program: program, Args: args}
	if slices.Contains(args, "purpose=lock") {
		// The session of a lock lasts until the script ends.
		fmt.Println(cmp.Or(os.Getenv(stubLocked), "t"))
		_, err := io.Copy(io.Discard, os.Stdin)
		check(err)
		return 0
	}
	// The other programs get no input.
	if program == "psql" {
		input, err := io.ReadAll(os.Stdin)
		check(err)
		c.Input, c.Host = string(input), os.Getenv("PGHOST")
		if host := value(args, "-h"); host != "" {
			c.Host = host
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // #nosec G304 -- the test's own file
	check(err)
	check(json.NewEncoder(log).Encode(c))
	var answers []answer
	text, err := os.ReadFile(filepath.Join(dir, "answers")) // #nosec G304 -- the test's own file
	check(err)
	check(json.Unmarshal(text, &answers))
	for i, a := range answers {
		if !matches(c.String(), a.When) {
			continue
		}
		if a.Times > 0 {
			used := filepath.Join(dir, fmt.Sprintf("used-%d", i))
			count, _ := os.ReadFile(used) // #nosec G304 -- the test's own file
			if len(count) >= a.Times {
				continue
			}
			check(os.WriteFile(used, append(count, '.'), 0o600)) // #nosec G703 -- the test's own file
		}
		if a.Signal != 0 {
			check(syscall.Kill(os.Getppid(), a.Signal))
		}
		if a.Exit == 0 {
			createFiles(dir, program, args)
		}
		fmt.Print(a.Say)
		return a.Exit
	}
	createFiles(dir, program, args)
	if program == "psql" {
		return serve(dir, c)
	}
	return 0
}

// killAt kills the script and all its children at the given call.
func killAt(dir string) {
	at, err := strconv.Atoi(os.Getenv(stubKillAt))
	if err != nil {
		return
	}
	counter := filepath.Join(dir, "count")
	count, _ := os.ReadFile(counter)                        // #nosec G304 -- the test's own file
	check(os.WriteFile(counter, append(count, '.'), 0o600)) // #nosec G703 -- the test's own file
	if len(count)+1 == at {
		check(syscall.Kill(0, syscall.SIGKILL))
	}
}

// serve is a server with its state files in a folder of the name of the host,
// and there also its role: "t" for a standby, as pg_is_in_recovery. A server
// without a role does not answer for its role.
func serve(dir string, c call) int {
	if strings.Contains(c.Host, "/") {
		return 0
	}
	home := filepath.Join(dir, c.Host)
	write := func(file, text string) {
		check(os.MkdirAll(home, 0o700))                                          // #nosec G703 -- the test's own folder
		check(os.WriteFile(filepath.Join(home, file), []byte(text+"\n"), 0o600)) // #nosec G703 -- the test's own file
	}
	read := func(file string) (string, error) {
		text, err := os.ReadFile(filepath.Join(home, file)) // #nosec G304 -- the test's own file
		return strings.TrimSpace(string(text)), err
	}
	file, text := "", ""
	for _, arg := range c.Args {
		if after, ok := strings.CutPrefix(arg, "file="); ok {
			file = after
		}
		if after, ok := strings.CutPrefix(arg, "text="); ok {
			text = after
		}
	}
	all := c.String()
	switch {
	case matches(all, "SELECT format('COPY (SELECT %L) TO"):
		write(file, text)
	case matches(all, "pg_read_file(:'file'"):
		text, _ := read(file)
		fmt.Println(text)
	case matches(all, "SELECT pg_is_in_recovery()"):
		role, err := read("role")
		if err != nil {
			return down
		}
		fmt.Println(role)
	case matches(all, "rm -f standby.signal"):
		_ = os.Remove(filepath.Join(home, "standby.signal")) // #nosec G703 -- the test's own file
	case matches(all, "TO PROGRAM…pg_ctl"):
		// The container restarts.
		if _, err := read("standby.signal"); err == nil {
			write("role", "t")
		}
		return 1
	case matches(all, "pg_promote"):
		write("role", "f")
		fmt.Println("t")
	}
	return 0
}

func value(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// createFiles creates the files that a program creates. A copy contains the
// files of the folder source.
func createFiles(dir, program string, args []string) {
	file, folder := "", ""
	switch {
	case slices.Contains(args, "--version"):
	case program == "pg_dump" || program == "pg_dumpall":
		file = value(args, "-f")
	case program == "initdb" || program == "pg_basebackup":
		folder = value(args, "-D")
	}
	if folder != "" {
		check(os.MkdirAll(folder, 0o700)) // #nosec G703 -- the test's own folder
		file = filepath.Join(folder, "PG_VERSION")
	}
	if _, err := os.Stat(filepath.Join(dir, "source")); err == nil && program == "pg_basebackup" {
		check(os.CopyFS(folder, os.DirFS(filepath.Join(dir, "source"))))
	}
	if file != "" {
		check(os.WriteFile(file, []byte("17\n"), 0o600)) // #nosec G703 -- the test's own file
	}
}

// stubs is a pod or Job with stubs as programs.
type stubs struct {
	t       *testing.T
	dir     string
	answers []answer
	env     []string
}

// podScripts run in the pods; the other scripts run in Jobs.
var podScripts = []string{"prepare.sh", "start.sh", "startup.sh", "ready.sh", "alive.sh"}

// newStubs returns stubs of PostgreSQL 17, programs and servers, for a script.
// Of three pods, only the first answers, as the primary. The given answers take
// precedence.
func newStubs(t *testing.T, script string, answers ...answer) *stubs {
	t.Helper()
	s := &stubs{t: t, dir: t.TempDir(), answers: append(slices.Clone(answers),
		answer{When: "--version", Say: "pg (PostgreSQL) 17.5 (Debian 17.5-1)\n"},
		answer{When: "server_version_num", Say: "170005\n"},
		answer{When: "FROM pg_database WHERE datallowconn AND datname NOT IN", Say: "postgres|postgres\napp|app\noid-7|a b\n"},
		answer{When: "shobj_description", Say: "1\n"},
		answer{When: "pg_controldata", Say: "pg_control version number: 1\nDatabase system identifier:           77\nMin recovery ending loc's timeline:   1\n"},
		answer{When: "IDENTIFY_SYSTEM", Say: "77|1|0/5|\n"},
		answer{When: "system_identifier", Say: "77\n"},
		answer{When: "wal_status, 'unreserved'", Say: "reserved\n"},
		answer{When: "wal_status = 'lost'", Say: "0\n"},
		answer{When: "pg_conf_load_time", Say: "t\n"},
		answer{When: "pg_terminate_backend", Say: "0\n"},
		answer{When: "pg_current_wal_flush_lsn", Say: "0/5\n"},
		answer{When: ">= :'lsn'", Say: "t\n"},
		answer{When: "> :'lsn'", Say: "f\n"},
		answer{When: "SELECT count(*) FROM pg_stat_wal_receiver", Say: "0\n"},
		answer{When: "df -Pk", Say: "Filesystem blocks Used Available Capacity Mounted\n/dev/a 9 9 999999999 1% /\n"},
	)}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "secrets", "run", "home", "backups", "cluster", "config"} {
		s.must(os.Mkdir(s.at(folder), 0o700))
	}
	for _, program := range programs {
		s.must(os.Symlink(self, s.at("bin/"+program)))
	}
	s.file("secrets/superuser-password", superuserPassword)
	s.file("secrets/replication-password", replicationPassword)
	s.file("secrets/password", ownerPassword)
	s.file("cluster/primary", "0\n")
	s.file("cluster/pods", "3\n")
	for _, level := range []string{"open", "locked", "closed"} {
		s.file("config/pg_hba."+level+".conf", level+"\n")
	}
	s.file("peer-0/role", "f\n")
	s.env = []string{
		"PATH=" + s.at("bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		stubFolder + "=" + s.dir, "PEER=peer-%d", "RUN=" + s.at("run"), "SECRETS=" + s.at("secrets"),
	}
	if slices.Contains(podScripts, script) {
		s.env = append(s.env, "POD_NAME=db-0", "CONFIG="+s.at("config"), "CLUSTER="+s.at("cluster"), "DATABASE_HOME="+s.at("home"))
	} else {
		s.env = append(s.env,
			"PGHOST=peer-0", "PGUSER=postgres", "PGPASSWORD="+superuserPassword, "PRIMARY=0", "PODS=3", "INCARNATION=first", "DATABASE=app", "OWNER=app",
			"MAJOR_UPGRADE=DumpAndRestore", "BACKUPS="+s.at("backups"), "TERMINATION_LOG="+s.at("termination-log"))
	}
	return s
}

func (s *stubs) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stubs) at(path string) string { return filepath.Join(s.dir, path) }

func (s *stubs) file(path, text string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(s.at(path)), 0o700))
	s.must(os.WriteFile(s.at(path), []byte(text), 0o600))
}

// run runs a script and checks that no command line, no input of a server and
// no output contains a password.
func (s *stubs) run(shell, script string, args ...string) (string, error) {
	s.t.Helper()
	text, err := json.Marshal(s.answers)
	s.must(err)
	s.file("answers", string(text))
	cmd := exec.CommandContext(s.t.Context(), shell, append([]string{filepath.Join(chartDir, "files", script)}, args...)...) // #nosec G204 -- the chart's scripts
	cmd.Env = s.env
	// The stubs end the script by its process group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	var all strings.Builder
	all.Write(out)
	for _, c := range s.calls() {
		all.WriteString(c.String())
	}
	printed := all.String()
	for _, password := range []string{superuserPassword, replicationPassword, ownerPassword} {
		if strings.Contains(printed, password) {
			s.t.Errorf("a password is disclosed: %s", printed)
		}
	}
	return string(out), err
}

func (s *stubs) calls() (calls []call) {
	s.t.Helper()
	text, err := os.ReadFile(s.at("calls"))
	if !os.IsNotExist(err) {
		s.must(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	for decoder.More() {
		var c call
		s.must(decoder.Decode(&c))
		calls = append(calls, c)
	}
	return calls
}
