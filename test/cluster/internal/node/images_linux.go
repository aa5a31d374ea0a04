package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// importImages imports the image archives that containerd does not have yet.
func (c *Config) importImages() error {
	for _, archive := range c.Images {
		info, err := os.Stat(archive)
		if err != nil {
			return err
		}
		// Archives are replaced when their inputs change.
		stamp := fmt.Sprintf("%d %s", info.Size(), info.ModTime())
		file := filepath.Join(c.imported(), filepath.Base(archive))
		known, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if string(known) == stamp {
			continue
		}
		cmd := exec.Command("ctr", "--namespace", "k8s.io", "images", "import", "--local", archive) //nolint:noctx // it ends with the node
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot import %s: %w\n%s", archive, err, output)
		}
		if err := os.WriteFile(file, []byte(stamp), 0o600); err != nil {
			return err
		}
	}
	return nil
}
