//go:build !linux

package process

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
)

// started returns the start time of a process from ps(1), which every Unix has.
func started(pid int) (string, error) {
	out, err := exec.CommandContext(context.Background(), "ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", errGone
	}
	if err != nil {
		return "", err
	}
	state, moment, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if moment == "" || strings.HasPrefix(state, "Z") {
		return "", errGone
	}
	return strings.TrimSpace(moment), nil
}
