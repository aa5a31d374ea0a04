package stubs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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

// programs are the programs that the scripts call, including sleep.
var programs = []string{
	"initdb", "pg_basebackup", "pg_controldata", "pg_ctl", "pg_dump", "pg_dumpall", "pg_isready", "pg_restore", "postgres", "psql", "sleep", "vacuumdb",
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(stubFolder); dir != "" && slices.Contains(programs, filepath.Base(os.Args[0])) {
		os.Exit(stub(dir, filepath.Base(os.Args[0]), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// answer is the output of a program whose name, arguments or input contain a
// text.
type answer struct {
	When string
	Say  string
	Exit int
	// Times is how often the answer is used; 0 means always.
	Times int
}

// call is one call of a program.
type call struct {
	Program string
	Args    []string
	Input   string
}

func (c call) String() string { return c.Program + " " + strings.Join(c.Args, " ") + "\n" + c.Input }

func stub(dir, program string, args []string) int {
	c := call{Program: program, Args: args}
	// The other programs get no input.
	if program == "psql" {
		input, err := io.ReadAll(os.Stdin)
		if err != nil {
			panic(err)
		}
		c.Input = string(input)
	}
	log, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(log).Encode(c); err != nil {
		panic(err)
	}
	var answers []answer
	text, err := os.ReadFile(filepath.Join(dir, "answers")) // #nosec G304 -- the test's own file
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(text, &answers); err != nil {
		panic(err)
	}
	for i, a := range answers {
		if !strings.Contains(c.String(), a.When) {
			continue
		}
		if a.Times > 0 {
			used := filepath.Join(dir, fmt.Sprintf("used-%d", i))
			count, _ := os.ReadFile(used) // #nosec G304 -- the test's own file
			if len(count) >= a.Times {
				continue
			}
			if err := os.WriteFile(used, append(count, '.'), 0o600); err != nil { // #nosec G703 -- the test's own file
				panic(err)
			}
		}
		if a.Exit == 0 {
			createFiles(program, args)
		}
		fmt.Print(a.Say)
		return a.Exit
	}
	createFiles(program, args)
	return 0
}

// leave creates the files that a program creates.
func createFiles(program string, args []string) {
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	file, folder := "", ""
	switch {
	case slices.Contains(args, "--version"):
	case program == "pg_dump" || program == "pg_dumpall":
		file = value("-f")
	case program == "initdb" || program == "pg_basebackup":
		folder = value("-D")
	}
	if folder != "" {
		if err := os.MkdirAll(folder, 0o700); err != nil { // #nosec G703 -- the test's own folder
			panic(err)
		}
		file = filepath.Join(folder, "PG_VERSION")
	}
	if file != "" {
		if err := os.WriteFile(file, []byte("17\n"), 0o600); err != nil { // #nosec G703 -- the test's own file
			panic(err)
		}
	}
}

// stubs is a pod or Job with stubs as programs.
type stubs struct {
	t       *testing.T
	dir     string
	answers []answer
	env     []string
}

// newStubs returns stubs of PostgreSQL 17, programs and server. The given
// answers take precedence.
func newStubs(t *testing.T, answers ...answer) *stubs {
	t.Helper()
	s := &stubs{t: t, dir: t.TempDir(), answers: append(answers,
		answer{When: "--version", Say: "pg (PostgreSQL) 17.5 (Debian 17.5-1)\n"},
		answer{When: "server_version_num", Say: "170005\n"},
		answer{When: "FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY oid", Say: "postgres|postgres\napp|app\noid-7|a b\n"},
		answer{When: "shobj_description", Say: "1\n"},
		answer{When: "pg_controldata", Say: "pg_control version number: 1\nDatabase system identifier:           77\n"},
		answer{When: "system_identifier", Say: "77\n"},
		answer{When: "wal_status, 'unreserved'", Say: "reserved\n"},
		answer{When: "wal_status = 'lost'", Say: "0\n"},
	)}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "secrets", "run", "home", "backups"} {
		s.must(os.Mkdir(filepath.Join(s.dir, folder), 0o700))
	}
	for _, program := range programs {
		s.must(os.Symlink(self, filepath.Join(s.dir, "bin", program)))
	}
	s.file("secrets/superuser-password", superuserPassword)
	s.file("secrets/replication-password", replicationPassword)
	s.file("secrets/password", ownerPassword)
	s.env = []string{
		"PATH=" + filepath.Join(s.dir, "bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		stubFolder + "=" + s.dir, "POD_NAME=db-0", "PRIMARY_HOST=primary", "CONFIG=/etc/database",
		"DATABASE_HOME=" + s.at("home"), "RUN=" + s.at("run"), "SECRETS=" + s.at("secrets"), "BACKUPS=" + s.at("backups"),
		"PGHOST=primary", "PGPASSWORD=" + superuserPassword, "DATABASE=app", "OWNER=app", "REPLICAS=2", "MAJOR_UPGRADE=DumpAndRestore",
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
