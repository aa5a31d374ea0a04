package migrate_test

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/authoring/migrate"
)

func TestLiveFindings_FailsForInvalidConfig(t *testing.T) {
	project, err := migrate.Read(filepath.Join("testdata", "nginx"), nil)
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: "https://cluster.test", TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "missing.crt")}}
	if found, err := project.LiveFindings(t.Context(), config, nil); err == nil || !strings.Contains(err.Error(), "missing.crt") {
		t.Errorf("got findings %v and error %v, want an error about missing.crt", found, err)
	}
}
