package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/release/signing"
	"github.com/chartwright/chartwright/internal/watches"
)

// ErrStale marks an action that found the release's records other than the
// index said. It counts as no failure; look again.
var ErrStale = errors.New("the stored release changed meanwhile")

// ErrRender marks an action that ended before anything was written, because
// the chart cannot be rendered with these values or renders what is no object.
var ErrRender = errors.New("the chart cannot be rendered")

// ErrConflict marks an action that ended before anything was written, because
// an object of the chart exists and is not owned by the release.
var ErrConflict = errors.New("an object of the chart exists already and is not owned by this release")

// Client runs Helm's actions. It holds what they share; see NewClient.
type Client struct {
	// Confined: the operator serves some namespaces, and asks for nothing beyond
	// them but what a kind's Allow names. To be set before the first action.
	Confined bool
	// Keys sign the release records that this client writes, and verify those that
	// it reads. To be set before the first action.
	Keys *signing.Keys
	// SigningKey is the Secret that holds the keys. No template reads it, and no
	// object of a chart may name it.
	SigningKey types.NamespacedName

	own          identity
	identitiesMu sync.Mutex
	identities   map[string]identity // by user name
	mapper       meta.RESTMapper
	kubernetes   kubernetes.Interface
	index        *release.Index
	inventory    Inventory
	capabilities *Capabilities
	renderer     *render.Renderer
}

// NewClient returns a client over what a process has once: its configuration,
// HTTP client, clientset and mapper.
func NewClient(config *rest.Config, httpClient *http.Client, clientset kubernetes.Interface, mapper meta.RESTMapper, index *release.Index, inventory Inventory) (*Client, error) {
	own, err := newIdentity(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &Client{
		own:          own,
		identities:   map[string]identity{},
		mapper:       mapper,
		kubernetes:   clientset,
		index:        index,
		inventory:    inventory,
		capabilities: newCapabilities(clientset.Discovery()),
		renderer:     render.New(render.Defaults()),
	}, nil
}

// Capabilities returns what charts see as .Capabilities.
func (c *Client) Capabilities() *Capabilities { return c.capabilities }

// Request is what an action needs to know.
type Request struct {
	Owner     apply.Owner
	Release   string
	Namespace string
	Chart     *Chart
	// Values are given to the chart; the action may change them.
	Values map[string]any
	// CurrentValues returns the values that an upgrade would give to the chart now.
	// Actions that render nothing call it to compare a stored revision with a
	// render. Nil returns Values.
	CurrentValues func() (map[string]any, error)
	Digests       Digests
	// Overrides are those of the values that the watches entry has set. Nobody may
	// change them.
	Overrides map[string]any
	// Timeout bounds each hook; it must be more than 0.
	Timeout time.Duration
	// Allow says where the chart may act.
	Allow watches.Allow
	// Ignore names fields that are others' once an object is made.
	Ignore []watches.DriftIgnore
	// CRDs says what to do with the chart's crds/.
	CRDs watches.CRDPolicy
	// CreateNamespace has an install make the namespace where there is none,
	// and an uninstall delete it if it was made so and holds no other release.
	CreateNamespace bool
	// ServiceAccount is in whose name objects are read and written, an account
	// of the release's namespace; empty means the operator's own.
	ServiceAccount string
	// FormerManagers are field managers, beside Helm's own, whose fields Adopt
	// takes over.
	FormerManagers []string
	// Marks go onto the revision that the action makes, or onto the newest.
	Marks release.Marks
	// NeverReady: the deployed revision, whose place the action takes, never
	// had its objects ready.
	NeverReady bool
	// DisableHooks skips the action's hooks.
	DisableHooks bool
	// Description takes the place of Helm's own on the revision.
	Description string
	// TakeOwnership takes over objects that belong to another release, or to
	// nobody.
	TakeOwnership bool
	// Force deletes and makes again what cannot be changed otherwise.
	Force bool
	// Verify applies what seems unchanged, too.
	Verify bool
	// OwnedOnly has an uninstall delete only what the inventory holds for the owner,
	// and nothing that a record alone names.
	OwnedOnly bool
	// Deleting: the custom resource is being deleted.
	Deleting bool
	// Uninstall says what an uninstall then deletes of what hooks have created.
	Uninstall watches.Uninstall
	// WaitForDelete waits until the objects of an uninstalled release are gone.
	WaitForDelete bool
	// Hook is called when the action begins to wait for a hook. What it returns is
	// called when the wait is over, and whether in vain; it then returns what is
	// known of the cause, in a sentence. Nil is not called.
	Hook func(HookWait) (ended func(failed bool) (why string))
	// Lend gives back the slot that the action has while it only waits, and
	// returns how to take one again; nil has none to give.
	Lend func() (resume func())
	// Warn is told, as an event's reason and a sentence, what a person should
	// know of an action that goes on all the same; nil is told nothing.
	Warn func(reason, what string)
	// Redact takes out of a text what nobody may read in errors, logs and the
	// status, for values may be secret; nil takes out nothing.
	Redact func(string) string
	// RedactParts is Redact for what parsers say, of templates and manifests: it
	// takes out parts of secrets, too. Nil takes out nothing.
	RedactParts func(string) string
	// Read is told of the values of each record that the action reads, before
	// anything is done by it: some may be secret. Nil is told nothing.
	Read func(stored map[string]any)
	// LookedUp is called with the decoded data of each Secret that a template
	// has looked up; nil is not called.
	LookedUp func(data map[string]any)
}

// run holds what belongs to one action.
type run struct {
	config *action.Configuration
	kube   *kubeClient
	driver *recordDriver
	log    *tail
	// redactParts is for errors of rendering.
	redactParts redact
	// input is what an action that renders renders.
	input *input
}

// begin prepares an action that ends when the context does.
func (c *Client) begin(ctx context.Context, r Request) (*run, error) {
	capabilities, _, err := c.capabilities.read()
	if err != nil {
		return nil, err
	}
	as, err := c.as(r.Namespace, r.ServiceAccount)
	if err != nil {
		return nil, err
	}
	c.inventory.Place(r.Owner.UID, r.Namespace)
	for _, record := range c.index.History(r.Namespace, r.Release) {
		c.inventory.Name(r.Owner.UID, OutsideObjects(record.Inventory))
	}
	log := &tail{redact: r.Redact}
	objects := &kubeClient{
		ctx:       ctx,
		objects:   as.objects,
		core:      as.core,
		owner:     r.Owner,
		release:   r.Release,
		namespace: r.Namespace,
		log:       log.printf,
		warn:      r.Warn,
		allow:     allow{Allow: r.Allow, signingKey: c.SigningKey},
		ignore:    r.Ignore,
		verify:    r.Verify,
		force:     r.Force,
		lend:      r.Lend,
		follow:    r.Hook,
		inventory: c.inventory,
		readings:  newReadings(r.Owner.UID, r.LookedUp, c.SigningKey),
		scaled:    map[apply.Key]bool{},
		left:      map[string]bool{},
		unowned:   map[apply.Key]bool{},
		ownedOnly: r.OwnedOnly,
		finished:  map[apply.Key]apply.State{},

		hookLeftovers: map[apply.Key]types.UID{},

		takeOwnership: r.TakeOwnership,
		builder: &builder{
			mapper:    c.mapper,
			clients:   newBoundClients(ctx, as.config, as.http),
			namespace: r.Namespace,
			ctx:       ctx,
			built:     map[string]kube.ResourceList{},
		},
	}
	if objects.warn == nil {
		objects.warn = func(string, string) {}
	}
	if objects.lend == nil {
		objects.lend = func() func() { return func() {} }
	}
	// Where delete hooks must run before the objects go, the garbage collector
	// must not be the first: a foreground deletion takes what is owned at once.
	objects.refer = r.Chart != nil && !r.Chart.Features.DeleteHooks
	storedBy := &recordDriver{
		ctx:       ctx,
		secrets:   c.kubernetes.CoreV1().Secrets(r.Namespace),
		index:     c.index,
		stamp:     newStamp(r.Release, r.Owner, r.Digests, r.Marks),
		namespace: r.Namespace,
		versions:  map[string]string{},

		keys:       c.Keys,
		unverified: map[string]error{},

		annotations: map[string]map[string]string{},

		stubs:     map[*helmrelease.Release]bool{},
		read:      r.Read,
		warn:      objects.warn,
		inventory: objects.stored,
		looked:    objects.looked,

		neverReady: r.NeverReady,
	}
	storedBy.stamp.redact = r.Redact
	if storedBy.keys == nil {
		// It signs nothing and verifies nothing.
		storedBy.keys = &signing.Keys{}
	}
	objects.recordedHooks = func() []*helmrelease.Hook { return storedBy.hooks }
	objects.recordedManifests = func() []string { return storedBy.manifests }
	storedBy.check = func(rls *helmrelease.Release) error {
		return objects.preflight(rls, storedBy.manifests, storedBy.readUnverified())
	}
	config := &action.Configuration{
		RESTClientGetter: lookupGetter{ctx: ctx, config: as.config, scope: r.Allow.LookupScope(), namespace: r.Namespace, readings: objects.readings},
		Releases:         storage.Init(storedBy),
		KubeClient:       objects,
		Capabilities:     capabilities,
		Log:              log.printf,
		HookOutputFunc:   log.output,
	}
	return &run{config: config, kube: objects, driver: storedBy, log: log, redactParts: r.RedactParts}, nil
}

// outcome turns what Helm returned into what happened. That Helm returned no
// error is not enough: it only logs some writes of the record that failed.
func (r *run) outcome(ctx context.Context, err error) error {
	switch {
	case err == nil && r.driver.writeErr != nil:
		err = r.driver.writeErr
	case err == nil:
		return nil
	case errors.Is(err, ErrStale), errors.Is(err, ErrTooLarge), errors.Is(err, ErrInvalidValues),
		errors.Is(err, ErrNotAllowed), errors.Is(err, ErrRefused):
	case errors.Is(r.driver.readErr, ErrUntrusted):
		err = r.driver.readErr
	case errors.Is(r.driver.writeErr, ErrStale):
		err = r.driver.writeErr
	case errors.Is(r.kube.failedHook, ErrInterrupted):
		// Helm makes a text of some errors.
		err = interruptedError{error: err, hook: r.kube.failedHook}
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	hide := r.log.redact
	if errors.Is(err, ErrRender) {
		hide = r.redactParts
	}
	return &ActionError{Err: hide.error(err), Log: r.log.lines()}
}

// ActionError is an action that failed, with the end of Helm's log.
type ActionError struct {
	Err error
	// Log holds the last lines that Helm logged, oldest first.
	Log []string
}

// Error returns the cause alone.
func (e *ActionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ActionError) Unwrap() error { return e.Err }
