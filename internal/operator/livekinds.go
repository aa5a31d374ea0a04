package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/operator/chartcache"
	"github.com/chartwright/chartwright/internal/operator/chartkinds"
	"github.com/chartwright/chartwright/internal/operator/crdwatch"
	"github.com/chartwright/chartwright/internal/operator/kindset"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/operator/readiness"
)

// ChartKinds are the settings of ChartKinds.
type ChartKinds struct {
	// Enabled serves the kinds of ChartKinds.
	Enabled bool
	// Allow limits what ChartKinds may allow, in YAML.
	Allow string
	// Hosts may have private addresses and, with http:// in front, be used without TLS.
	Hosts []string
	// Keyring is a file with the keys that sign charts; empty requires no signature.
	Keyring string
	// CacheDir is the folder of the cache, and CacheSize its limit in bytes.
	CacheDir  string
	CacheSize int64
}

// defaultChartCache is the default limit of the cache.
const defaultChartCache = 256 << 20

// cacheDir returns CacheDir or its default.
func (c ChartKinds) cacheDir() string {
	if c.CacheDir != "" {
		return c.CacheDir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "chartwright", "chart-kinds")
}

// keyring reads the keyring.
func (c ChartKinds) keyring() (chartkinds.Keyring, error) {
	if c.Keyring == "" {
		return chartkinds.Keyring{}, nil
	}
	data, err := os.ReadFile(c.Keyring)
	if err != nil {
		return chartkinds.Keyring{}, err
	}
	sum := sha256.Sum256(data)
	return chartkinds.Keyring{Path: c.Keyring, ID: hex.EncodeToString(sum[:])}, nil
}

// validate reports all problems of the settings.
func (c ChartKinds) validate() error {
	if !c.Enabled {
		if c.Allow != "" || len(c.Hosts) > 0 || c.Keyring != "" || c.CacheDir != "" {
			return errors.New("--chart-kinds is not set: expected it with --chart-kinds-allow, --chart-hosts, --chart-keyring and --chart-cache-dir")
		}
		return nil
	}
	_, allowErr := chartkind.ParseAllow(c.Allow)
	errs := []error{allowErr}
	for _, host := range c.Hosts {
		parsed, err := url.Parse("http://" + strings.TrimPrefix(host, "http://"))
		if err != nil || parsed.Host == "" || parsed.Path != "" || parsed.RawQuery != "" || parsed.User != nil {
			errs = append(errs, fmt.Errorf("%s %q: expected HOST or HOST:PORT, with http:// in front for a registry without TLS", chartkinds.FlagHosts, host))
		}
	}
	if _, err := c.keyring(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", chartkinds.FlagKeyring, err))
	}
	if c.CacheSize < 1 {
		errs = append(errs, fmt.Errorf("--chart-cache-size is %d: expected a size such as 256Mi", c.CacheSize))
	}
	return errors.Join(errs...)
}

// liveKinds are the parts of the operator that a Controller of ChartKinds works with.
type liveKinds struct {
	options     Options
	clientset   kubernetes.Interface
	objects     dynamic.Interface
	metadata    metadata.Interface
	recorder    record.EventRecorder
	metrics     *metrics.Metrics
	set         *kindset.Set
	readiness   *readiness.Checker
	permissions *permissions.Checker
}

// newController adds the Controller of ChartKinds to the manager. The channel is closed when
// the kinds in the cache are served. If ChartKinds are disabled, the Controller is nil.
func (l liveKinds) newController(mgr manager.Manager) (*chartkinds.Controller, <-chan struct{}, error) {
	if !l.options.ChartKinds.Enabled {
		return nil, closedChannel, nil
	}
	config, err := l.config(mgr)
	if err != nil {
		return nil, nil, err
	}
	controller := chartkinds.New(config)
	l.readiness.OnChange(controller.Enqueue)
	if err := mgr.Add(everyReplica(controller.Start)); err != nil {
		return nil, nil, err
	}
	loaded := controller.Loaded()
	return controller, loaded, nil
}

// config returns the configuration of the Controller.
func (l liveKinds) config(mgr manager.Manager) (config chartkinds.Config, err error) {
	o := l.options.ChartKinds
	allow, err := chartkind.ParseAllow(o.Allow)
	if err != nil {
		return config, err
	}
	keyring, err := o.keyring()
	if err != nil {
		return config, fmt.Errorf("read the keyring: %w", err)
	}
	cache, err := chartcache.Open(o.cacheDir(), o.CacheSize)
	if err != nil {
		return config, fmt.Errorf("%w: set --chart-cache-dir to a folder that the operator can write", err)
	}
	namespace := l.options.signingKeySecret().Namespace
	return chartkinds.Config{
		Operator: l.options.Name, Namespace: namespace, Namespaces: l.options.Namespaces,
		Allow: allow, Hosts: o.Hosts, Keyring: keyring, Cache: cache, Fetch: source.Fetch,
		Client: l.objects, Metadata: l.metadata, Mapper: mgr.GetRESTMapper(), Secrets: l.clientset.CoreV1().Secrets(namespace),
		Recorder: l.recorder, Metrics: l.metrics, Logger: mgr.GetLogger(), Elected: mgr.Elected(), Kinds: l, Changes: l.set.Changes(), Now: time.Now,
		InstallCRD: func(ctx context.Context, kind catalog.Kind, write bool) error {
			done, err := crdwatch.Install(ctx, mgr.GetClient(), kind, l.options.Name, write)
			if done != "" {
				mgr.GetLogger().Info(done, "kind", kind.Kind, "group", kind.Group)
			}
			return err
		},
	}, nil
}

// Put adds or replaces the kind of a ChartKind.
func (l liveKinds) Put(name string, kind catalog.Kind) { l.set.Put(kindset.ChartKind, name, kind) }

// Remove removes the kind of a ChartKind.
func (l liveKinds) Remove(name string) { l.set.Remove(kindset.ChartKind, name) }

// Claim notes that a ChartKind defines a kind whose chart is not available yet.
func (l liveKinds) Claim(name string, kind schema.GroupKind) {
	l.set.Claim(kindset.ChartKind, name, kind)
}

// Conflict returns who serves the kind of a ChartKind instead.
func (l liveKinds) Conflict(_ string, kind catalog.Kind) string {
	return l.set.Owner(kindset.ChartKind, kind)
}

// ServedByFile reports whether the operator serves a kind from a file.
func (l liveKinds) ServedByFile(kind schema.GroupKind) bool {
	return slices.ContainsFunc(l.set.List(), func(entry kindset.Entry) bool {
		return entry.Source < kindset.ChartKind && entry.GroupKind() == kind
	})
}

// State returns the state of a kind. It requests the derivation of the rules that the
// kind's chart needs, because the administrator cannot see them before the first release.
func (l liveKinds) State(kind schema.GroupKind) chartkinds.State {
	found, ok := l.readiness.Get(kind)
	if !ok {
		return chartkinds.State{}
	}
	state, reason := found.State()
	result := chartkinds.State{State: state, Reason: reason, Missing: found.Missing, Unknown: found.Unknown}
	if rules := l.permissions.Kind(kind); rules != nil {
		rules.Derive()
		_, result.Known = rules.Missing("")
	}
	return result
}
