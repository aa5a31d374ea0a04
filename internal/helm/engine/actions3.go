//go:build !helm4

package engine

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/provenance"
	"helm.sh/helm/v3/pkg/repo"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// NewConfiguration returns the configuration of an action. Each field of c may be empty.
func NewConfiguration(c Config) *Configuration {
	config := &Configuration{
		RESTClientGetter: c.Getter, Capabilities: c.Capabilities, Log: c.Log, HookOutputFunc: c.HookOutput,
		KubeClient: &fake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard},
		Releases:   storage.Init(driver.NewMemory()),
	}
	if c.Kube != nil {
		config.KubeClient = kube3{cluster{c.Kube}}
	}
	if c.Driver != nil {
		config.Releases = NewStorage(c.Driver)
	}
	if c.Log == nil {
		config.Log = func(string, ...any) {}
	}
	return config
}

// NewCLIConfiguration returns the configuration of the helm CLI. Only tests use it.
func NewCLIConfiguration(getter genericclioptions.RESTClientGetter, namespace string) (*Configuration, error) {
	config := &Configuration{}
	err := config.Init(getter, namespace, "secrets", func(string, ...any) {})
	return config, err
}

// NewUninstall returns an uninstall, which waits until all objects are gone if wait is true.
func NewUninstall(config *Configuration, wait bool) *action.Uninstall {
	uninstall := action.NewUninstall(config)
	uninstall.Wait = wait
	return uninstall
}

// DryRunClient lets an install only render, without a cluster.
func DryRunClient(install *action.Install) {
	install.ClientOnly, install.DryRun, install.DryRunOption = true, true, "client"
}

// DryRunServer lets an upgrade only render, and lookup read from the cluster.
func DryRunServer(upgrade *action.Upgrade) { upgrade.DryRun, upgrade.DryRunOption = true, "server" }

// kube3 is a Kube as Helm 3 calls it.
type kube3 struct{ cluster }

var (
	_ kube.Interface                    = kube3{}
	_ kube.InterfaceExt                 = kube3{}
	_ kube.InterfaceThreeWayMerge       = kube3{}
	_ kube.InterfaceDeletionPropagation = kube3{}
	_ kube.InterfaceLogs                = kube3{}
)

func (k kube3) Update(original, target ResourceList, _ bool) (*Result, error) {
	return k.Kube.Update(original, target)
}

// UpdateThreeWayMerge is called to take over objects, as a forced apply does anyway.
func (k kube3) UpdateThreeWayMerge(original, target ResourceList, _ bool) (*Result, error) {
	return k.Kube.Update(original, target)
}

func (k kube3) Delete(hooks ResourceList) (*Result, []error) { return k.DeleteHooks(hooks) }

func (k kube3) DeleteWithPropagationPolicy(resources ResourceList, policy metav1.DeletionPropagation) (*Result, []error) {
	return k.Kube.Delete(resources, policy)
}

func (kube3) WaitAndGetCompletedPodPhase(name string, _ time.Duration) (corev1.PodPhase, error) {
	return "", fmt.Errorf("pod %s: waiting for a pod's phase is not supported", name)
}

// HelmClient creates, updates and deletes objects as Helm does. Only tests use it, to compare.
type HelmClient struct{ kube.Client }

// NewHelmClient returns a HelmClient.
func NewHelmClient() *HelmClient { return &HelmClient{kube.Client{Log: func(string, ...any) {}}} }

// Update updates objects.
func (c *HelmClient) Update(original, target ResourceList) (*Result, error) {
	return c.Client.Update(original, target, false)
}

// Time is the type of times in records.
type Time = helmtime.Time

// GoTime returns a time in a record.
func GoTime(t Time) time.Time { return t.Time }

// At returns a time for a record.
func At(t time.Time) Time { return Time{Time: t} }

// VerifyArchive returns who signed the archive of a chart. The name is that of its file. Helm 3
// reads files, so it needs a temporary folder.
func VerifyArchive(keys *provenance.Signatory, archive, signature []byte, name string) (*provenance.Verification, error) {
	folder, err := os.MkdirTemp("", "chartwright-verify-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, name)
	err = os.WriteFile(file, archive, 0o600)
	if err == nil {
		err = os.WriteFile(file+".prov", signature, 0o600)
	}
	if err != nil {
		return nil, err
	}
	return keys.Verify(file, file+".prov")
}

// SkipsTLSVerify reports whether the certificate of a repository is not verified.
func SkipsTLSVerify(entry *repo.Entry) bool { return entry.InsecureSkipTLSverify }
