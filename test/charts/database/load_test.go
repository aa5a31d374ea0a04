package database

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"sync/atomic"
)

// load is an application that inserts rows in one session, one after another.
type load struct {
	*pod
	cmd *exec.Cmd
	// acknowledged counts the rows whose insert the server has confirmed.
	acknowledged atomic.Int64
	ended        chan struct{}
}

// startLoad inserts rows into the table load, which it creates.
func (q *pod) startLoad() *load {
	q.t.Helper()
	if out, err := q.query("CREATE TABLE IF NOT EXISTS load (n serial)"); err != nil {
		q.t.Fatal(out)
	}
	cmd := exec.CommandContext(q.t.Context(), "psql", "-XAtqw", "-v", "ON_ERROR_STOP=1")
	cmd.Env = q.clientEnv("name-of-owner", ownerPassword)
	input, err := cmd.StdinPipe()
	q.must(err)
	output, err := cmd.StdoutPipe()
	q.must(err)
	q.must(cmd.Start())
	l := &load{pod: q, cmd: cmd, ended: make(chan struct{})}
	go func() {
		for {
			if _, err := io.WriteString(input, "INSERT INTO load DEFAULT VALUES RETURNING n;\n"); err != nil {
				return
			}
		}
	}()
	go func() {
		defer close(l.ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			l.acknowledged.Add(1)
		}
		_ = cmd.Wait()
	}()
	l.more(100)
	return l
}

// more waits until the server has acknowledged n more rows.
func (l *load) more(n int64) {
	l.t.Helper()
	until := l.acknowledged.Load() + n
	l.wait("rows of the load", func() error {
		if now := l.acknowledged.Load(); now < until {
			return fmt.Errorf("%d of %d", now, until)
		}
		return nil
	})
}

// end waits until the server has ended the session, and returns the number of
// acknowledged rows.
func (l *load) end() int64 {
	l.t.Helper()
	l.wait("the session of the load to end", func() error {
		select {
		case <-l.ended:
			return nil
		default:
			return fmt.Errorf("%d rows", l.acknowledged.Load())
		}
	})
	return l.acknowledged.Load()
}

// has fails unless the server has at least the given number of rows of the
// load, and returns the number of rows. The last row of a load can be committed
// without being acknowledged.
func (q *pod) has(rows int64) int64 {
	q.t.Helper()
	out, err := q.query("SELECT count(*) FROM load")
	var found int64
	if _, scanErr := fmt.Sscan(out, &found); err != nil || scanErr != nil || found < rows || found > rows+1 {
		q.t.Fatalf("%s has %q rows, want the %d that were acknowledged", q.name, out, rows)
	}
	q.t.Logf("%d rows acknowledged, %d found in %s", rows, found, q.name)
	return found
}
