//go:build helm4

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"helm.sh/helm/v4/pkg/action"
	charts "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/v2/lint/rules"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/provenance"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/repo/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	"helm.sh/helm/v4/pkg/strvals"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// NewConfiguration returns the configuration of an action.
func NewConfiguration(c Config) *Configuration {
	config := action.NewConfiguration(action.ConfigurationSetLogger(logger{c.Log}))
	config.RESTClientGetter, config.Capabilities, config.HookOutputFunc = c.Getter, c.Capabilities, c.HookOutput
	config.KubeClient = &fake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard}
	config.Releases = storage.Init(driver.NewMemory())
	if c.Kube != nil {
		config.KubeClient = kube4{cluster{c.Kube}}
	}
	if c.Driver != nil {
		config.Releases = NewStorage(c.Driver)
	}
	return config
}

// NewCLIConfiguration returns the configuration of the helm CLI.
func NewCLIConfiguration(getter genericclioptions.RESTClientGetter, namespace string) (*Configuration, error) {
	config := action.NewConfiguration()
	err := config.Init(getter, namespace, "secrets")
	return config, err
}

// logger passes Helm's messages on.
type logger struct {
	log func(format string, values ...any)
}

func (l logger) Enabled(context.Context, slog.Level) bool { return l.log != nil }

func (l logger) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	l.log("%s", text)
	return nil
}

func (l logger) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logger) WithGroup(string) slog.Handler      { return l }

// Install is an install that returns the release of the format in use.
type Install struct{ *action.Install }

// NewInstall returns an Install that waits for nothing but hooks. Kube applies on the server.
func NewInstall(config *Configuration) Install {
	install := action.NewInstall(config)
	install.WaitStrategy = kube.HookOnlyStrategy
	return Install{install}
}

// Run installs the chart.
func (i Install) Run(c *Chart, values map[string]any) (*Release, error) {
	return typed(i.Install.Run(c, values))
}

// DryRunClient lets an install only render, without a cluster.
func DryRunClient(install Install) { install.DryRunStrategy = action.DryRunClient }

// Upgrade is an upgrade that returns the release of the format in use.
type Upgrade struct{ *action.Upgrade }

// NewUpgrade returns an Upgrade that waits for nothing but hooks. Kube applies on the server.
func NewUpgrade(config *Configuration) Upgrade {
	upgrade := action.NewUpgrade(config)
	upgrade.WaitStrategy, upgrade.ServerSideApply = kube.HookOnlyStrategy, "true"
	return Upgrade{upgrade}
}

// Run upgrades the release.
func (u Upgrade) Run(name string, c *Chart, values map[string]any) (*Release, error) {
	return typed(u.Upgrade.Run(name, c, values))
}

// DryRunServer lets an upgrade only render, and lookup read from the cluster.
func DryRunServer(upgrade Upgrade) { upgrade.DryRunStrategy = action.DryRunServer }

// NewRollback returns a rollback that waits for nothing but hooks. Kube applies on the server.
func NewRollback(config *Configuration) *action.Rollback {
	rollback := action.NewRollback(config)
	rollback.WaitStrategy, rollback.ServerSideApply = kube.HookOnlyStrategy, "true"
	return rollback
}

// NewUninstall returns an uninstall, which waits until all objects are gone if wait is true.
func NewUninstall(config *Configuration, wait bool) *action.Uninstall {
	uninstall := action.NewUninstall(config)
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	if wait {
		uninstall.WaitStrategy = kube.StatusWatcherStrategy
	}
	return uninstall
}

// ReleaseTesting runs the tests of a release.
type ReleaseTesting struct{ *action.ReleaseTesting }

// NewReleaseTesting returns a ReleaseTesting.
func NewReleaseTesting(config *Configuration) ReleaseTesting {
	return ReleaseTesting{action.NewReleaseTesting(config)}
}

// Run runs the tests, and deletes their objects as their annotations request.
func (r ReleaseTesting) Run(name string) (*Release, error) {
	found, shutdown, err := r.ReleaseTesting.Run(name)
	if stopped := shutdown(); err == nil {
		err = stopped
	}
	return typed(found, err)
}

// CheckDependencies returns an error if the chart lacks some of its dependencies.
func CheckDependencies(c *Chart, dependencies []*Dependency) error {
	list := make([]charts.Dependency, len(dependencies))
	for i, d := range dependencies {
		list[i] = d
	}
	return action.CheckDependencies(c, list)
}

// LintTemplates checks the templates of a chart.
func LintTemplates(linter *Linter, values map[string]any, namespace string, version *KubeVersion, skipSchema bool) {
	rules.Templates(linter, namespace, values, rules.TemplateLinterKubeVersion(version), rules.TemplateLinterSkipSchemaValidation(skipSchema))
}

// Driver stores release records.
type Driver interface {
	Name() string
	Get(key string) (*Release, error)
	List(filter func(*Release) bool) ([]*Release, error)
	Query(labels map[string]string) ([]*Release, error)
	Create(key string, rls *Release) error
	Update(key string, rls *Release) error
	Delete(key string) (*Release, error)
}

// NewStorage returns the records of a driver.
func NewStorage(d Driver) *storage.Storage { return storage.Init(driver4{d}) }

// driver4 is a Driver as Helm 4 calls it.
type driver4 struct{ Driver }

func (d driver4) Get(key string) (release.Releaser, error)    { return untyped(d.Driver.Get(key)) }
func (d driver4) Delete(key string) (release.Releaser, error) { return untyped(d.Driver.Delete(key)) }

func (d driver4) List(filter func(release.Releaser) bool) ([]release.Releaser, error) {
	return untypedList(d.Driver.List(func(rls *Release) bool { return filter(rls) }))
}

func (d driver4) Query(labels map[string]string) ([]release.Releaser, error) {
	return untypedList(d.Driver.Query(labels))
}

func (d driver4) Create(key string, rls release.Releaser) error {
	one, err := typed(rls, nil)
	if err != nil {
		return err
	}
	return d.Driver.Create(key, one)
}

func (d driver4) Update(key string, rls release.Releaser) error {
	one, err := typed(rls, nil)
	if err != nil {
		return err
	}
	return d.Driver.Update(key, one)
}

func typed(rls release.Releaser, err error) (*Release, error) {
	one, ok := rls.(*Release)
	if rls != nil && !ok {
		return nil, fmt.Errorf("unsupported release %T", rls)
	}
	return one, err
}

// untyped returns a nil interface for no release.
func untyped(rls *Release, err error) (release.Releaser, error) {
	if rls == nil {
		return nil, err
	}
	return rls, err
}

func untypedList(list []*Release, err error) ([]release.Releaser, error) {
	untyped := make([]release.Releaser, len(list))
	for i, rls := range list {
		untyped[i] = rls
	}
	return untyped, err
}

// SecretsDriver is Helm's own driver of records in Secrets.
type SecretsDriver struct{ helm *driver.Secrets }

// NewSecretsDriver returns a SecretsDriver.
func NewSecretsDriver(secrets corev1.SecretInterface) SecretsDriver {
	return SecretsDriver{driver.NewSecrets(secrets)}
}

// Query returns the records with the labels.
func (d SecretsDriver) Query(labels map[string]string) ([]release.Releaser, error) {
	return d.helm.Query(labels)
}

// Get reads a record.
func (d SecretsDriver) Get(key string) (*Release, error) { return typed(d.helm.Get(key)) }

// Create creates a record.
func (d SecretsDriver) Create(key string, rls *Release) error { return d.helm.Create(key, rls) }

// Update replaces a record.
func (d SecretsDriver) Update(key string, rls *Release) error { return d.helm.Update(key, rls) }

// kube4 is a Kube as Helm 4 calls it.
type kube4 struct{ cluster }

var _ kube.Interface = kube4{}

func (k kube4) Create(list ResourceList, _ ...kube.ClientCreateOption) (*Result, error) {
	return k.Kube.Create(list)
}

func (k kube4) Update(original, target ResourceList, _ ...kube.ClientUpdateOption) (*Result, error) {
	return k.Kube.Update(original, target)
}

func (k kube4) Delete(list ResourceList, policy metav1.DeletionPropagation) (*Result, []error) {
	if areHooks(list) {
		return k.DeleteHooks(list)
	}
	return k.Kube.Delete(list, policy)
}

func (k kube4) GetWaiter(strategy kube.WaitStrategy) (kube.Waiter, error) {
	return waiter{k.cluster, strategy}, nil
}

// Get and BuildTable are only called for the status command of the helm CLI.
func (kube4) Get(ResourceList, bool) (map[string][]runtime.Object, error) { return nil, nil }
func (k kube4) BuildTable(r io.Reader, validate bool) (ResourceList, error) {
	return k.Build(r, validate)
}

type waiter struct {
	cluster
	strategy kube.WaitStrategy
}

func (w waiter) WaitForDelete(list ResourceList, timeout time.Duration) error {
	if w.strategy == kube.HookOnlyStrategy && !areHooks(list) {
		return nil
	}
	return w.Kube.WaitForDelete(list, timeout)
}

func areHooks(list ResourceList) bool { return len(list) > 0 && list[0].Source == HookSource }

// Time is the type of times in records.
type Time = time.Time

// GoTime returns a time in a record.
func GoTime(t Time) time.Time { return t }

// At returns a time for a record.
func At(t time.Time) Time { return t }

// VerifyArchive returns who signed a chart.
func VerifyArchive(keys *provenance.Signatory, archive, signature []byte, name string) (*provenance.Verification, error) {
	return keys.Verify(archive, signature, name)
}

// SkipsTLSVerify reports whether the certificate of a repository is not verified.
func SkipsTLSVerify(entry *repo.Entry) bool { return entry.InsecureSkipTLSVerify }

// HelmClient creates, updates and deletes objects as Helm 3 does.
type HelmClient struct{ client *kube.Client }

// NewHelmClient returns a HelmClient.
func NewHelmClient() HelmClient { return HelmClient{kube.New(nil)} }

// Create creates objects.
func (c HelmClient) Create(list ResourceList) (*Result, error) {
	return c.client.Create(list, kube.ClientCreateOptionServerSideApply(false, false))
}

// Update updates objects by patches against the original.
func (c HelmClient) Update(original, target ResourceList) (*Result, error) {
	return c.client.Update(original, target, kube.ClientUpdateOptionServerSideApply(false, false))
}

// Delete deletes objects.
func (c HelmClient) Delete(list ResourceList) (*Result, []error) {
	return c.client.Delete(list, metav1.DeletePropagationBackground)
}

// openIndex matches a key with an index that does not end. Helm 4 ignores such a key.
var openIndex = regexp.MustCompile(`^(\\.|[^=\\])*\[[^\]=]*=`)

var errOpenIndex = errors.New("the index of the key does not end")

// ParseSetValue sets a value as --set does.
func ParseSetValue(text string, values map[string]any) error {
	if openIndex.MatchString(text) {
		return errOpenIndex
	}
	return strvals.ParseInto(text, values)
}

// ParseSetFile sets a value as --set-file does.
func ParseSetFile(text string, values map[string]any, read strvals.RunesValueReader) error {
	if openIndex.MatchString(text) {
		return errOpenIndex
	}
	return strvals.ParseIntoFile(text, values, read)
}
