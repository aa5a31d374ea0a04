package helm

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// Config holds what all actions of a process share.
type Config struct {
	REST      *rest.Config
	HTTP      *http.Client
	Clientset kubernetes.Interface
	Mapper    meta.RESTMapper
	Index     *release.Index
	Inventory Inventory
	// Keys sign the release records that actions write, and verify those that they
	// read. Plans need no keys.
	Keys *signing.Keys
	// SigningKey is the Secret that holds the keys. Templates cannot read it, and
	// objects of a chart must not refer to it.
	SigningKey types.NamespacedName
	// Confined reports that the operator watches a list of namespaces. It then sends no
	// requests about other namespaces, except for what a kind's allow block names.
	Confined bool
}

// Client runs Helm's actions.
type Client struct {
	config       Config
	own          identity
	identitiesMu sync.Mutex
	identities   *lru.Cache // of identity, by user name
	capabilities *chart.Capabilities
	renderer     *render.Renderer
}

// NewClient returns a Client.
func NewClient(config Config) (*Client, error) {
	own, err := newIdentity(config.REST, config.HTTP)
	if err != nil {
		return nil, err
	}
	if config.Keys == nil {
		config.Keys = &signing.Keys{}
	}
	return &Client{
		config:       config,
		own:          own,
		identities:   lru.New(maxIdentities),
		capabilities: chart.NewCapabilities(config.Clientset.Discovery()),
		renderer:     render.New(render.Defaults()),
	}, nil
}

// Capabilities returns what templates read as .Capabilities.
func (c *Client) Capabilities() *chart.Capabilities { return c.capabilities }

// run is one action on a release.
type run struct {
	Request
	client *Client
	config *engine.Configuration
	kube   *kubeClient
	driver *release.Driver
	// prepared is the input of the templates, if the action renders them.
	prepared *chart.Prepared
}

// run runs an action that neither applies objects nor stores a revision.
func (c *Client) run(ctx context.Context, r Request, act func(*run) error) error {
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	return run.outcome(act(run))
}

// apply runs an action that applies objects, and tells the inventory which objects to
// expect: as the action has left them, if it succeeded. If it failed after it had
// stored a revision, the objects are unknown until they are verified.
func (c *Client) apply(ctx context.Context, r Request, act func(*run) error) error {
	return c.run(ctx, r, func(run *run) error {
		err := act(run)
		switch {
		case err == nil && run.driver.WriteErr == nil:
			c.config.Inventory.Expect(r.Owner.UID, run.kube.applied)
		case run.driver.Created > 0:
			c.config.Inventory.Expect(r.Owner.UID, nil)
		}
		return err
	})
}

// history returns the records of the release, newest revision first.
func (r *run) history() []release.Record {
	return r.client.config.Index.History(r.Namespace, r.Release)
}

// begin prepares an action. Its requests end with ctx.
func (c *Client) begin(ctx context.Context, r Request) (*run, error) {
	capabilities, err := c.capabilities.Read()
	if err != nil {
		return nil, err
	}
	as, err := c.as(r.Namespace, r.ServiceAccount)
	if err != nil {
		return nil, err
	}
	c.config.Inventory.SetReleaseNamespace(r.Owner.UID, r.Namespace)
	for _, record := range c.config.Index.History(r.Namespace, r.Release) {
		c.config.Inventory.AddObjects(r.Owner.UID, release.OutsideObjects(record.Inventory))
	}
	as.objects.Served = func(kind schema.GroupKind) (*meta.RESTMapping, error) { return c.config.Mapper.RESTMapping(kind, "") }
	log := &logBuffer{redact: r.Redactor.Redact}
	stamp := release.NewStamp(r.Owner, r.Digests, r.Marks)
	stamp.Redact, stamp.Integers = r.Redactor.Redact, r.Integers
	records := c.config.Clientset.CoreV1().Secrets(r.Namespace)
	if r.plan != nil {
		as.objects.Plan = func(write apply.Write) { r.plan.Writes = append(r.plan.Writes, write) }
		records = unsentSecrets{records}
	}
	storage := release.NewDriver(ctx, release.DriverConfig{
		Secrets:    records,
		Namespace:  r.Namespace,
		Index:      c.config.Index,
		Stamp:      stamp,
		Keys:       c.config.Keys,
		AddValues:  r.Redactor.AddStoredValues,
		Warn:       r.Notifier.Warn,
		Trust:      r.plan != nil,
		NeverReady: r.NeverReady,
		Timeout:    r.Timeout,
	})
	objects := &kubeClient{
		Request:  r,
		identity: as,
		ctx:      ctx,
		driver:   storage,
		// A foreground deletion of the custom resource deletes the objects that refer to
		// it at once. Without the reference, they exist until the delete hooks have run.
		refer:         r.Chart != nil && !r.Chart.Features.DeleteHooks,
		log:           log,
		allow:         allow{Allow: r.Allow, signingKey: c.config.SigningKey},
		inventory:     c.config.Inventory,
		readings:      newLookupRecord(r.Owner.UID, r.Redactor.AddSecret, c.config.SigningKey),
		reported:      sets.Set[string]{},
		unowned:       sets.Set[apply.Key]{},
		approved:      map[apply.Key]types.UID{},
		crdFolder:     sets.Set[crdFolderKey]{},
		left:          map[apply.Key]string{},
		checked:       map[apply.Key]types.UID{},
		withheld:      map[apply.Key]string{},
		scaled:        map[apply.Key]bool{},
		finished:      map[apply.Key]apply.State{},
		hookLeftovers: map[apply.Key]types.UID{},
		builder: &builder{
			mapper:    c.config.Mapper,
			clients:   newBoundClients(ctx, as.config, as.http),
			namespace: r.Namespace,
			ctx:       ctx,
			built:     map[string]engine.ResourceList{},
			planned:   map[schema.GroupVersionKind]*meta.RESTMapping{},
		},
	}
	storage.Inventory, storage.Lookups, storage.Check = objects.stored, objects.lookupsAnnotation, objects.preflight
	config := engine.NewConfiguration(engine.Config{
		Getter:       lookupGetter{ctx: ctx, config: as.config, scope: r.Allow.LookupScope(), namespace: r.Namespace, readings: objects.readings},
		Driver:       storage,
		Kube:         objects,
		Capabilities: capabilities,
		Log:          log.printf,
		HookOutput:   log.output,
	})
	return &run{Request: r, client: c, config: config, kube: objects, driver: storage}, nil
}

// identity is the account that reads and writes the objects of a release. The operator
// always uses its own account for records, caches and custom resources.
type identity struct {
	config  *rest.Config
	http    *http.Client
	objects apply.Client
}

// maxIdentities limits the identities that are cached. Service accounts come and go.
const maxIdentities = 256

// as returns the identity of a service account, or the operator's own identity for an
// empty name. The identities used last are cached.
func (c *Client) as(namespace, serviceAccount string) (identity, error) {
	if serviceAccount == "" {
		return c.own, nil
	}
	c.identitiesMu.Lock()
	defer c.identitiesMu.Unlock()
	user := fmt.Sprintf("system:serviceaccount:%s:%s", namespace, serviceAccount)
	if known, ok := c.identities.Get(user); ok {
		return known.(identity), nil //nolint:errcheck,forcetypeassert // only identities are added
	}
	config := rest.CopyConfig(c.own.config)
	// The API server adds the groups of the service account. Naming them would need the
	// permission to impersonate groups, too.
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return identity{}, fmt.Errorf("impersonate %s: %w", user, err)
	}
	made, err := newIdentity(config, httpClient)
	if err != nil {
		return identity{}, fmt.Errorf("impersonate %s: %w", user, err)
	}
	c.identities.Add(user, made)
	return made, nil
}

// core returns a client that reads the logs of pods, which the other clients cannot.
func (i identity) core() (typedcorev1.CoreV1Interface, error) {
	return typedcorev1.NewForConfigAndClient(i.config, i.http)
}

func newIdentity(config *rest.Config, httpClient *http.Client) (identity, error) {
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return identity{}, err
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return identity{}, err
	}
	objects := apply.Client{Metadata: metadataClient, Dynamic: dynamicClient}
	return identity{config: config, http: httpClient, objects: objects}, nil
}
