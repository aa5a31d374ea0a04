package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PeakMemory returns the most memory that the running process has ever used, in
// MiB.
func (o *Operator) PeakMemory() int {
	o.env.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.cmd.Process.Pid))
	o.env.must(err)
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == "VmHWM:" {
			kib, err := strconv.Atoi(fields[1])
			o.env.must(err)
			return kib >> 10
		}
	}
	o.env.t.Fatal("the status of the operator's process has no VmHWM")
	return 0
}
