package harness

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// guard is a child process that cleans up after this process has ended, however
// it ended: a test that panics or times out ends the process without running
// deferred functions.
type guard struct {
	cmd *exec.Cmd
	// alive is open while this process lives.
	alive io.Closer
	// children contains a file, named by process ID, for each operator and each
	// command of Background. ends contains a shell script for each cluster of a
	// test.
	children, ends string
}

// The script waits for the end of its input, which is always empty. Its
// arguments are the scratch folder and a command that stops the cluster.
const guardScript = `
cat
scratch=$1; shift
for child in "$scratch"/children/*; do
  [ -e "$child" ] && kill -KILL "${child##*/}" 2>/dev/null
done
for end in "$scratch"/ends/*; do
  [ -e "$end" ] && sh "$end"
done
"$@" || exit 1
rm -rf "$scratch"
`

// startGuard starts a guard for the scratch folder. The guard runs the stop
// command at the end.
func startGuard(scratch string, stop ...string) (*guard, error) {
	g := &guard{children: filepath.Join(scratch, "children"), ends: filepath.Join(scratch, "ends")}
	for _, folder := range []string{g.children, g.ends} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
	}
	// A separate process group, so that an interrupt does not end the guard
	// first.
	g.cmd = exec.CommandContext(context.Background(), "sh", append([]string{"-c", guardScript, "guard", scratch}, stop...)...)
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := g.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	g.alive, g.cmd.Stderr = input, os.Stderr
	return g, g.cmd.Start()
}

// close lets the guard clean up and waits for it.
func (g *guard) close() error {
	if err := g.alive.Close(); err != nil {
		return err
	}
	return g.cmd.Wait()
}

// adopt registers a process that the guard kills at the end, unless release is
// called.
func (g *guard) adopt(pid int) (release func(), err error) {
	file := filepath.Join(g.children, strconv.Itoa(pid))
	return func() { _ = os.Remove(file) }, os.WriteFile(file, nil, 0o600)
}

// end registers a shell command that the guard runs at the end, unless release
// is called.
func (g *guard) end(name, line string) (release func(), err error) {
	file := filepath.Join(g.ends, name)
	return func() { _ = os.Remove(file) }, os.WriteFile(file, []byte(line+"\n"), 0o600)
}
