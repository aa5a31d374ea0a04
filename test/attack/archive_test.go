package attack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestArchive: a chart archive of 49 KiB with subcharts of gigabytes is refused
// within the operator's memory limit.
func TestArchive(t *testing.T) {
	env := harness.New(t)
	// Helm limits each file to 5 MiB and each archive to 100 MiB.
	contents := map[string]io.Reader{"sub/Chart.yaml": strings.NewReader("apiVersion: v2\nname: sub\nversion: 1.0.0\n")}
	for i := range 16 {
		contents[fmt.Sprintf("sub/zeros-%d", i)] = io.LimitReader(zeros{}, 5<<20)
	}
	subchart := archive(t, contents)
	files := map[string]io.Reader{"bomb/Chart.yaml": strings.NewReader("apiVersion: v2\nname: bomb\nversion: 1.0.0\n")}
	for i := range 30 {
		files[fmt.Sprintf("bomb/charts/sub-%d-1.0.0.tgz", i)] = bytes.NewReader(subchart)
	}
	bomb := archive(t, files)
	t.Logf("the archive has %d KiB", len(bomb)>>10)
	file := filepath.Join(t.TempDir(), "bomb-1.0.0.tgz")
	if err := os.WriteFile(file, bomb, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := env.RunLimited(env.ManagerMemory(), "lint", file)
	if err != nil {
		t.Errorf("chartwright lint: %v", err)
	}
	if !strings.Contains(output, "MiB") {
		t.Errorf("chartwright lint does not report the limit: %s", output)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// archive returns a compressed archive of files.
func archive(t *testing.T, files map[string]io.Reader) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	writer := tar.NewWriter(compressed)
	for name, reader := range files {
		content, err := io.ReadAll(reader)
		if err == nil {
			err = writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		}
		if err == nil {
			_, err = writer.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writer.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// TestEditor_CannotWriteClusterScopedKinds: a user with the ClusterRole edit,
// even through a ClusterRoleBinding, can write the namespaced kinds of config/,
// but not the cluster-scoped ones, whose releases may be in any namespace.
func TestEditor_CannotWriteClusterScopedKinds(t *testing.T) {
	env := harness.New(t)
	const user = "attacker:everywhere"
	binding, err := env.Typed.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: env.Namespace + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := env.Typed.RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// The aggregation controller has processed the roles of config/ when the
	// last one in alphabetical order is aggregated.
	for _, kind := range []struct{ group, resource string }{
		{"app.example.com", "podsets"}, {"operator.example.com", "addons"}, {"vm.codeconnect.vmworld.com", "vmgroups"},
	} {
		env.Wait(kind.resource+" to be aggregated to the role edit", func(ctx context.Context) error {
			allowed, err := env.Allowed(ctx, user, env.Namespace, "create", kind.group, kind.resource)
			if err == nil && !allowed {
				err = errors.New("not allowed")
			}
			return err
		})
	}
	for _, resource := range []string{"configs", "clusteraddons"} {
		for _, verb := range []string{"create", "update", "patch", "delete"} {
			allowed, err := env.Allowed(t.Context(), user, "", verb, "operator.example.com", resource)
			if err != nil || allowed {
				t.Errorf("permission of the role edit to %s %s.operator.example.com: %t, %v", verb, resource, allowed, err)
			}
		}
	}
}
