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

// guard is a process that cleans up when this one has ended, in whatever way: a
// test that panics or takes too long ends it with nothing deferred done.
type guard struct {
	cmd *exec.Cmd
	// alive is open for as long as this process lives.
	alive io.Closer
	// children holds a file, named by its process id, for each operator, and
	// ends a script for each thing else that is to be ended.
	children, ends string
}

// The script waits for the end of its input, which nobody writes to. Its
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

// startGuard makes a guard for the scratch folder. It runs the command given.
func startGuard(scratch string, stop ...string) (*guard, error) {
	g := &guard{children: filepath.Join(scratch, "children"), ends: filepath.Join(scratch, "ends")}
	for _, folder := range []string{g.children, g.ends} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return nil, err
		}
	}
	// Its own process group, for an interrupt must not end it first.
	g.cmd = exec.CommandContext(context.Background(), "sh", append([]string{"-c", guardScript, "guard", scratch}, stop...)...)
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := g.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	g.alive, g.cmd.Stderr = input, os.Stderr
	return g, g.cmd.Start()
}

// close lets the guard do its work and waits for it.
func (g *guard) close() error {
	if err := g.alive.Close(); err != nil {
		return err
	}
	return g.cmd.Wait()
}

// adopt makes the guard end a process, until release is called.
func (g *guard) adopt(pid int) (release func(), err error) {
	file := filepath.Join(g.children, strconv.Itoa(pid))
	return func() { _ = os.Remove(file) }, os.WriteFile(file, nil, 0o600)
}

// end makes the guard run a line of shell, until release is called.
func (g *guard) end(name, line string) (release func(), err error) {
	file := filepath.Join(g.ends, name)
	return func() { _ = os.Remove(file) }, os.WriteFile(file, []byte(line+"\n"), 0o600)
}
